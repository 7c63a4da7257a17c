"""Downstream edits of people: detection, damage reports, and merges into drafts."""
