"""Memos between passes: unchanged cases, unchanged policies, and passes without work."""
