"""Scenarios of `fanout simulate` and `test`: stated inputs and expected results."""
