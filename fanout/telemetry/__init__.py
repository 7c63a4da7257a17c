"""Logs without secrets, and counts."""
