"""Explanations: what blocks a fleet, a policy, a stage or a variant, and what unblocks it."""
