"""Rendering of drafts, results of functions, and commit messages."""
