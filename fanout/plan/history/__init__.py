"""History of what a policy published: what was in force when, and what released it."""
