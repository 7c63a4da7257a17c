"""Rollback of variants to earlier publications."""
