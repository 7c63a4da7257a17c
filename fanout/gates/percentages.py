"""Amounts of variants or stages: numbers, and percentages of how many there are.

A percentage is a Fraction and a number an int, as `fanout.api` parses them. Budgets round up,
tolerances round down: 29 % of 100 is 29, and 7 % of 100 is 7.
"""

from fractions import Fraction
from math import ceil, floor

Amount = int | Fraction


def compute_budget(amount: Amount, total: int) -> int:
    """Compute how many of `total` an amount allows or requires. A percentage is rounded up."""
    return amount if isinstance(amount, int) else ceil(amount * total)


def compute_tolerance(amount: Amount, total: int) -> int:
    """Compute how many of `total` an amount tolerates; a percentage is rounded down."""
    return amount if isinstance(amount, int) else floor(amount * total)
