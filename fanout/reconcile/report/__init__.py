"""Results of a pass for people and machines: problems, conditions, object views."""
