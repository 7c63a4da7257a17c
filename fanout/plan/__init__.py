"""What was observed and what is to be done, both as data."""
