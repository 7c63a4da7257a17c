"""Checks that machines answer, and the instants at which records count."""
