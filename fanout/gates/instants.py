"""When a record counts: one that is dated ahead counts for nothing yet. (Design §6.)

That nothing is back-dated is seen to before: `fanout.plan.dates`.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from functools import lru_cache

AHEAD = timedelta(minutes=5)
"""By how much the clock of whoever recorded something may run ahead of ours."""


def from_the_future(at: datetime, now: datetime) -> bool:
    """Is a record dated so far ahead that it does not count yet?"""
    return at > now + AHEAD


def counts_from(at: datetime) -> datetime:
    """The instant at which a record from the future begins to count."""
    return at - AHEAD


def soonest(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    """The next instant after now, if there is any."""
    return min((at for at in instants if at is not None and at > now), default=None)


@lru_cache(4096)
def written(at: datetime) -> str:
    """An instant as sentences show it; times are UTC everywhere."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
