"""Adoption of existing packages."""
