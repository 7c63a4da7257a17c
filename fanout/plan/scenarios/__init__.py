"""Scenarios: a stated world, judged by the gates as an observed one is."""
