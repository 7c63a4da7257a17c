"""Printer of data on stdout: columns that awk can read, JSON or YAML."""
