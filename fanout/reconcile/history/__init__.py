"""Reading of the publications of a policy from its records and repositories."""
