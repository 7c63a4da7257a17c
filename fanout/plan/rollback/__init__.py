"""Rollback to an earlier publication, and publications reverted by hand."""
