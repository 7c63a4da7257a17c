"""Objects that users declare, as one value that does not know where they come from."""
