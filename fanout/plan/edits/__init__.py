"""Edits made downstream: merge with new renderings, conflicts, faults."""
