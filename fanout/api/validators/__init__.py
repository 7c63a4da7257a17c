"""Validation of objects: rules for fields, stages and references, and messages."""
