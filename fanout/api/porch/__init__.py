"""Porch's objects as fanout's: what goes where, field by field, and what has no place here."""
