"""Schemas of the built-in Kubernetes kinds, which are part of fanout."""
