"""Import of Porch objects: field table, conversions, and CEL expressions."""
