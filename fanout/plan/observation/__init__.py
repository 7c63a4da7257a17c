"""State of downstream repositories and of variants before candidates are selected."""
