"""Memos between passes: unchanged variants, unchanged policies, and passes without work."""
