"""Shared parts of the verbs that record evidence, approvals and decisions."""
