"""Observation of repositories: listings, mirrors, states, upstream packages."""
