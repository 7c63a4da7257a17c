"""Import of Porch and Kargo objects as objects of fanout."""
