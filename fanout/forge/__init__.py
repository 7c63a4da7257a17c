"""Clients of the programs that host repositories: pull requests, reviews, statuses, merging."""
