"""Declared and cluster objects from files, records and status in Git, secrets."""
