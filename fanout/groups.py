"""Groups of items by a key, both in the order in which they come."""

from collections.abc import Iterable
from typing import TypeVar

Key = TypeVar("Key")
Item = TypeVar("Item")


def group_pairs(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, list[Item]]:
    """Return the items by key, given pairs of key and item."""
    groups: dict[Key, list[Item]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return groups
