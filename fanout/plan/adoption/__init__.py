"""Adoption of packages that fanout did not write."""
