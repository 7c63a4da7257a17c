"""Declared and cluster objects from files, policy state in Git, secrets."""
