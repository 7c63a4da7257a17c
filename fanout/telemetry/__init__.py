"""Logging without secrets, metrics, progress, and isolation of internal errors."""
