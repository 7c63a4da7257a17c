"""Continuous operation: work queue, the loop that makes passes, and the threads beside it."""
