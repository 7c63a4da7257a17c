"""Edits of manifests as data, and their meaning for plain data.

The functions here define what an edit does; text patches and round trips are verified against them.
"""

import json
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise
from typing import Any, Final, NamedTuple

Path = tuple[str | int, ...]


class _Remove(Enum):
    """Type of REMOVE, the one value that no YAML file can contain."""

    REMOVE = "remove"

    def __repr__(self) -> str:
        return "REMOVE"


REMOVE: Final = _Remove.REMOVE
MISSING: Final = object()


class Edit(NamedTuple):
    """Setting or removal of the value at a path of a document.

    `document` is `Document.index`. Missing mappings on the way are created, and null counts
    as missing. The position behind a list's last element appends to it. Removing a missing
    value changes nothing.
    """

    document: int
    path: Path
    value: Any = REMOVE


class BlockedPath(Exception):
    """Path that leads through a value that is neither mapping nor list.

    `depth` is how far it got.
    """

    def __init__(self, depth: int, sentence: str) -> None:
        super().__init__(sentence)
        self.depth = depth
        self.message = sentence


def with_value(data: Any, path: Path, value: Any) -> Any:
    """Return the data with one value set or removed; the argument is not changed.

    Raises BlockedPath.
    """
    edited = ValueEditor(data)
    edited.set(path, value)
    return edited.value


class ValueEditor:
    """Editor of a value. Neither the original nor a `value` that was read changes any more.

    Maps and lists are copied by the first edit below them after that. If each edit copied them, to
    set all elements of one list would take quadratic time.
    """

    __slots__ = ("_copies", "_value")

    def __init__(self, value: Any) -> None:
        self._value = value
        # By identity; kept here, so that no other object gets the id of one that was dropped.
        self._copies: dict[int, Any] = {}

    @property
    def value(self) -> Any:
        """The value after the edits so far."""
        if self._copies:
            self._copies = {}
        return self._value

    def peek(self, path: Path) -> Any:
        """Return the value at a path, or MISSING. The next edit may change it."""
        return get_value(self._value, path)

    def set(self, path: Path, value: Any) -> None:
        """Set or remove one value. Raises BlockedPath, with nothing changed."""
        self._value = self._set(self._value, path, value, 0)

    def _set(self, data: Any, path: Path, value: Any, depth: int) -> Any:
        if depth == len(path):
            return value
        part = path[depth]
        if value is REMOVE and get_value(data, (part,)) is MISSING:
            return data
        if data is None:
            data = {} if isinstance(part, str) else []
        if isinstance(part, str):
            if not isinstance(data, dict):
                raise BlockedPath(depth, f"{format_path(path[:depth])} is not a mapping")
        elif not isinstance(data, list):
            raise BlockedPath(depth, f"{format_path(path[:depth])} is not a list")
        elif not 0 <= part <= len(data):
            problem = f"{format_path(path[:depth])} has {len(data)} elements, no [{part}]"
            raise BlockedPath(depth, problem)
        is_new = isinstance(part, int) and part == len(data)
        if value is REMOVE and depth + 1 == len(path):
            copied = self._copy(data)
            del copied[part]
            return copied
        old = None if is_new else data.get(part) if isinstance(part, str) else data[part]
        # First what is below, which may be blocked.
        child = self._set(old, path, value, depth + 1)
        copied = self._copy(data)
        if is_new:
            copied.append(child)
        else:
            copied[part] = child
        return copied

    def _copy(self, data: Any) -> Any:
        """Return a map or list that may be changed: a copy, or the one that is a copy already."""
        if id(data) in self._copies:
            return data
        copied = data.copy()
        self._copies[id(copied)] = copied
        return copied


def get_value(data: Any, path: Path) -> Any:
    """Return the value at a path, or MISSING."""
    for part in path:
        if isinstance(part, str):
            data = data.get(part, MISSING) if isinstance(data, dict) else MISSING
        else:
            data = data[part] if isinstance(data, list) and 0 <= part < len(data) else MISSING
        if data is MISSING:
            return MISSING
    return data


def same_json(left: Any, right: Any) -> bool:
    """Compare two values as JSON: 1, 1.0 and true differ; the order of keys is ignored."""
    if left is right:
        return True
    # Python's `==` holds for 1, 1.0 and True, which are three different values in a manifest.
    if left.__class__ is not right.__class__:
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_json(v, right[k]) for k, v in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def diff_values(before: Any, after: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Return the shortest edits (path, value) that make the first value the second."""
    if isinstance(before, dict) and isinstance(after, dict):
        edits: list[tuple[Path, Any]] = [
            ((*path, name), REMOVE) for name in before if name not in after
        ]
        for name, value in after.items():
            if name not in before:
                edits.append(((*path, name), value))
            elif not same_json(before[name], value):
                edits += diff_values(before[name], value, (*path, name))
        return edits
    # A list that became shorter is replaced: by positions alone nobody can tell which element went.
    if isinstance(before, list) and isinstance(after, list) and 0 < len(before) <= len(after):
        edits = []
        for number, value in enumerate(after):
            if number >= len(before):
                edits.append(((*path, number), value))
            elif not same_json(before[number], value):
                edits += diff_values(before[number], value, (*path, number))
        return edits
    return [] if same_json(before, after) else [(path, after)]


def format_path(path: Path) -> str:
    """Format a path as `spec.containers[0].image`; other keys as `metadata.labels[a.b/c]`."""
    text = ""
    for part in path:
        is_name = isinstance(part, str) and part.replace("-", "").replace("_", "").isalnum()
        text += (f".{part}" if text else str(part)) if is_name else f"[{part}]"
    return text or "the document"


def are_independent(edits: Sequence[Edit]) -> bool:
    """Return whether no two edits overlap, so that their order is irrelevant."""
    # Sorted, a path stands right before the paths inside it, so neighbors are all that can overlap.
    keys = sorted(
        (edit.document, tuple((isinstance(part, int), part) for part in edit.path))
        for edit in edits
    )
    for (document, path), (next_document, next_path) in pairwise(keys):
        if document == next_document and next_path[: len(path)] == path:
            return False
    # Removing an element moves the elements behind it, so their edits are not independent.
    lists = {
        (edit.document, edit.path[:-1])
        for edit in edits
        if edit.value is REMOVE and isinstance(edit.path[-1], int)
    }
    for index, list_path in lists:
        if sum(e.document == index and e.path[: len(list_path)] == list_path for e in edits) > 1:
            return False
    return True


# Plain data never reaches `default`; any other value gets a text of its own.
canonical_text = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=True, check_circular=False, default=repr
).encode
