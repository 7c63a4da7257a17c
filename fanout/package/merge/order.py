"""The order of merged entries: local order, with what upstream added where upstream has it."""

from collections.abc import Hashable, Sequence
from typing import TypeVar

K = TypeVar("K", bound=Hashable)


def merged_order(origin: Sequence[K], upstream: Sequence[K], local: Sequence[K]) -> list[K]:
    """All keys of both sides once.

    The local order holds, unless upstream alone changed the order of what all three have. What only
    one side has stands behind what precedes it there.
    """
    if upstream == local:
        return list(local)
    everywhere = set(origin).intersection(upstream, local)
    o, u, mine = ([key for key in side if key in everywhere] for side in (origin, upstream, local))
    first, second = (upstream, local) if mine == o != u else (local, upstream)
    return woven(first, second)


def woven(first: Sequence[K], second: Sequence[K]) -> list[K]:
    """The first order, and each key that only the second has behind its predecessor there."""
    known = set(first)
    behind: dict[K | None, list[K]] = {}
    last: K | None = None
    for key in second:
        if key in known:
            last = key
        else:
            behind.setdefault(last, []).append(key)
    found = list(behind.get(None, ()))
    for key in first:
        found.append(key)
        found += behind.get(key, ())
    return found
