"""Removal of variants whose targets no longer exist."""
