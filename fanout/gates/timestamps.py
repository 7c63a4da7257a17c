"""Timestamps of records: those dated ahead beyond the clock skew do not count yet.

That nothing is back-dated is ensured before, where records are read (docs/concepts/records.md).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

CLOCK_SKEW = timedelta(minutes=5)
"""By how much the clock of whoever recorded something may run ahead of ours."""


def is_from_the_future(at: datetime, now: datetime) -> bool:
    """Return whether a record is dated so far ahead that it does not count yet."""
    return at > now + CLOCK_SKEW


def effective_from(at: datetime) -> datetime:
    """Return the instant at which a record that is dated ahead begins to count."""
    return at - CLOCK_SKEW


def find_next(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    """Return the earliest of the instants after `now`, or None."""
    return min((at for at in instants if at is not None and at > now), default=None)
