"""Kargo's objects as fanout's: stages and gates are kept, what steps did is named."""
