"""What is made of the samples: tables, targets, a chart, the documentation's section."""
