"""Moves of variants whose path or repository changed."""
