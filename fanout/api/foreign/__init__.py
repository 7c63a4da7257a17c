"""Translating objects of other programs: what all translations have in common."""
