"""Records and status lines of one policy, as the record store keeps them."""
