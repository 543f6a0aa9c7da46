"""What is measured of Everturn alone."""
