"""When a record counts. Nothing can be back-dated, and clocks that run ahead hold. (Design §6.)"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Protocol, TypeVar

AHEAD = timedelta(minutes=5)
"""By how much the clock of whoever recorded something may run ahead of ours."""


class Dated(Protocol):
    """Anything that was recorded."""

    @property
    def at(self) -> datetime:
        """When."""


Said = TypeVar("Said", bound=Dated)


def from_the_future(at: datetime, now: datetime) -> bool:
    """Is a record dated so far ahead that it does not count yet?"""
    return at > now + AHEAD


def counts_from(at: datetime) -> datetime:
    """The instant at which a record from the future begins to count."""
    return at - AHEAD


def in_record_order(records: Iterable[Said], now: datetime) -> Iterator[tuple[datetime, Said]]:
    """Each record with its instant: its own, but never before that of the one before it.

    A record from the future moves none of those that follow it: one wrong clock must not hold
    everything that is said afterwards.
    """
    limit = now + AHEAD
    latest: datetime | None = None
    for record in records:
        at = record.at
        if at > limit:
            yield at, record
            continue
        if latest is None or at > latest:
            latest = at
        yield latest, record


def soonest(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    """The next instant after now, if there is any."""
    return min((at for at in instants if at is not None and at > now), default=None)


@lru_cache(4096)
def written(at: datetime) -> str:
    """An instant as sentences show it; times are UTC everywhere."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
