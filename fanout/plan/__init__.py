"""Observed state of variants and the actions of a pass, both as plain data."""
