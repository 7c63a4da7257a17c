"""Numbers and shares of a total, counted exactly. (Design §6, "What counts".)

Budgets round up, tolerances round down: 29 % of 100 is 29, and 7 % of 100 is 7.
"""

from math import ceil, floor

from fanout.gates.rules import Amount


def budget(amount: Amount, total: int) -> int:
    """So many of a total may be, or must be; a share is rounded up."""
    return amount if isinstance(amount, int) else ceil(amount * total)


def tolerance(amount: Amount, total: int) -> int:
    """So many of a total are borne; a share is rounded down."""
    return amount if isinstance(amount, int) else floor(amount * total)
