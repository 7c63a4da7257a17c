"""Who gets a variant, and what it is called."""
