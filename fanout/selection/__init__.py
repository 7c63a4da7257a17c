"""Selection of targets, and the variants that policies make for them."""
