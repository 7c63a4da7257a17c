"""Resolution of declared policies, dependencies, conditions, and findings about them."""
