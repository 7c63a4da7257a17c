"""What changed between two looks, other than time itself.

An instant that is not on record yet is taken as the present one; it moves with each look and is no
news.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from fanout.cli.output import Object
from fanout.plan.status import instant, written

_INSTANT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def changed(before: Iterable[Object], after: Iterable[Object], elapsed: timedelta) -> list[Object]:
    """The items that are new or other than `elapsed` ago; instants that moved are no change."""
    known = {_identity(item): item for item in before}
    return [item for item in after if not _same(known.get(_identity(item)), item, elapsed)]


def _identity(item: Object) -> tuple[Any, ...]:
    """Several policies may have one target, so its name is not enough."""
    return item["kind"], item["metadata"]["namespace"], item["metadata"]["name"], item.get("policy")


def _same(old: Any, new: Any, elapsed: timedelta) -> bool:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return old.keys() == new.keys() and all(_same(old[it], new[it], elapsed) for it in old)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        pairs = zip(old, new, strict=False)
        return len(old) == len(new) and all(_same(one, two, elapsed) for one, two in pairs)
    if isinstance(old, str) and isinstance(new, str):
        return old == new or _moved_along(old, new, elapsed)
    return bool(old == new)


def _moved_along(old: str, new: str, elapsed: timedelta) -> bool:
    """Are the texts alike but for instants that stayed, or moved by the time between?"""
    ours, theirs = _INSTANT.findall(old), _INSTANT.findall(new)
    return (
        len(ours) == len(theirs)
        and _INSTANT.sub("", old) == _INSTANT.sub("", new)
        and all(
            it in (was, written(instant(was) + elapsed))
            for was, it in zip(ours, theirs, strict=True)
        )
    )
