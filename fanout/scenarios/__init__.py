"""Scenarios: stated policies and events, evaluated by the gates of a sweep."""
