"""One turn's history, read as time."""
