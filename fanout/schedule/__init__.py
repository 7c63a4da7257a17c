"""Continuous operation: wakes the loop at the instants computed by `calendar`."""
