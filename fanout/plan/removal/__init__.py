"""Removal of variants without a target and of packages that moved away."""
