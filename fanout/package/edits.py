"""Edits as data: what is to change in a manifest, and what that means for plain data.

This is the definition that text patches and round trips are checked against.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Final, NamedTuple

Path = tuple[str | int, ...]


class _Remove(Enum):
    """The one value that no YAML file can hold."""

    REMOVE = "remove"

    def __repr__(self) -> str:
        """As it is written in code."""
        return "REMOVE"


REMOVE: Final = _Remove.REMOVE
MISSING: Final = object()


class Edit(NamedTuple):
    """Set the value at a path of a document, or remove it.

    `document` is `Document.index`. Missing mappings on the way are created, null counts as missing;
    the position right behind a list's last element appends to it. Removing what is not there
    changes nothing.
    """

    document: int
    path: Path
    value: Any = REMOVE


class BlockedPath(Exception):
    """A path leads through something that is neither mapping nor list; carries how far it got."""

    def __init__(self, depth: int, sentence: str) -> None:
        super().__init__(sentence)
        self.depth = depth
        self.sentence = sentence


def applied(data: Any, edits: Iterable[Edit]) -> Any:
    """The data after the edits, in their order; what is given is not changed.

    Raises BlockedPath.
    """
    for edit in edits:
        data = with_value(data, edit.path, edit.value)
    return data


def with_value(data: Any, path: Path, value: Any, depth: int = 0) -> Any:
    """The data with one value set or removed; raises BlockedPath."""
    if depth == len(path):
        return value
    part = path[depth]
    last = depth + 1 == len(path)
    if value is REMOVE and get(data, (part,)) is MISSING:
        return data
    if isinstance(part, str):
        copied: Any = _mapping(data, path, depth)
        old = copied.get(part)
    else:
        copied = _list(data, path, depth)
        old = copied[part] if part < len(copied) else None
    if last and value is REMOVE:
        del copied[part]
        return copied
    new = with_value(old, path, value, depth + 1)
    if isinstance(part, int) and part == len(copied):
        copied.append(new)
    else:
        copied[part] = new
    return copied


def _mapping(data: Any, path: Path, depth: int) -> dict[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise BlockedPath(depth, f"{show(path[:depth])} is no mapping")
    return dict(data)


def _list(data: Any, path: Path, depth: int) -> list[Any]:
    if data is None:
        data = []
    if not isinstance(data, list):
        raise BlockedPath(depth, f"{show(path[:depth])} is no list")
    part = path[depth]
    assert isinstance(part, int)
    if not 0 <= part <= len(data):
        raise BlockedPath(depth, f"{show(path[:depth])} has {len(data)} elements, no [{part}]")
    return list(data)


def get(data: Any, path: Path) -> Any:
    """The value at a path, or MISSING."""
    for part in path:
        if isinstance(part, str):
            data = data.get(part, MISSING) if isinstance(data, dict) else MISSING
        else:
            data = data[part] if isinstance(data, list) and 0 <= part < len(data) else MISSING
        if data is MISSING:
            return MISSING
    return data


def same(one: Any, other: Any) -> bool:
    """Are these equal as JSON? 1, 1.0 and true are three values; the order of keys is none."""
    if one is other:
        return True
    if one.__class__ is not other.__class__:
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(v, other[k]) for k, v in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def changes(before: Any, after: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """What to set and to remove so that one value becomes another, as deep as it can be."""
    if isinstance(before, dict) and isinstance(after, dict):
        found: list[tuple[Path, Any]] = [
            ((*path, name), REMOVE) for name in before if name not in after
        ]
        for name, value in after.items():
            if name not in before:
                found.append(((*path, name), value))
            elif not same(before[name], value):
                found += changes(before[name], value, (*path, name))
        return found
    if isinstance(before, list) and isinstance(after, list) and 0 < len(before) <= len(after):
        found = []
        for number, value in enumerate(after):
            if number >= len(before):
                found.append(((*path, number), value))
            elif not same(before[number], value):
                found += changes(before[number], value, (*path, number))
        return found
    return [] if same(before, after) else [(path, after)]


def show(path: Path) -> str:
    """`spec.containers[0].image`; a key that is no name is shown as `metadata.labels[a.b/c]`."""
    text = ""
    for part in path:
        named = isinstance(part, str) and part.replace("-", "").replace("_", "").isalnum()
        text += (f".{part}" if text else str(part)) if named else f"[{part}]"
    return text or "the document"


def independent(edits: Sequence[Edit]) -> bool:
    """Does no edit touch what another one touches, so that their order means nothing?"""
    keys = sorted((edit.document, _sortable(edit.path)) for edit in edits)
    for (document, path), (after, longer) in pairwise(keys):
        if document == after and longer[: len(path)] == path:
            return False
    # removing an element moves those behind it
    lists = {
        (edit.document, edit.path[:-1])
        for edit in edits
        if edit.value is REMOVE and isinstance(edit.path[-1], int)
    }
    for index, place in lists:
        if sum(e.document == index and e.path[: len(place)] == place for e in edits) > 1:
            return False
    return True


def _sortable(path: Path) -> tuple[tuple[bool, str | int], ...]:
    return tuple((isinstance(part, int), part) for part in path)
