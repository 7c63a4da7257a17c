"""Integrity of records: lost or restored records, recovered publications."""
