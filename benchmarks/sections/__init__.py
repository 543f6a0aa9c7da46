"""What is measured of every contender; each section gives samples."""
