"""One value becomes another: which elements of its lists are which, and the text that follows them.

A program answers values, not edits. Where it put an element into a list, took one out or moved one,
the others are found again and keep their lines and comments, as they do in a merge.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from fanout.package.edits import REMOVE, Path, same
from fanout.package.elements import origins
from fanout.package.merge.documents import Reader
from fanout.package.merge.keys import Shape, element_keys
from fanout.package.merge.order import woven
from fanout.package.merge.outcome import NOTHING, Entry, Outcome, local, mapping, sequence, upstream
from fanout.package.merge.sides import Value
from fanout.package.merge.splice import CannotSplice, resumed


class Rearranged(NamedTuple):
    """A list whose elements came, went or moved."""

    path: Path
    after: list[Any]
    shape: Shape


class Changes(NamedTuple):
    """What makes one value another: fields to set or to remove, and lists outside of them."""

    fields: list[tuple[Path, Any]]
    lists: list[Rearranged]


def compared(before: Any, after: Any, shape: Shape) -> Changes:
    """The changes that make the second of the first, each as deep as it can be."""
    found = Changes([], [])
    _compare(before, after, shape, (), found)
    return found


def _compare(before: Any, after: Any, shape: Shape, path: Path, found: Changes) -> None:
    if same(before, after):
        return
    if _both(before, after, dict):
        found.fields.extend(((*path, key), REMOVE) for key in before if key not in after)
        for key, value in after.items():
            if key in before:
                _compare(before[key], value, shape.child(key), (*path, key), found)
            else:
                found.fields.append(((*path, key), value))
    elif not _both(before, after, list):
        found.fields.append((path, after))
    elif _origins(before, after, shape.keys) != list(range(len(before))):
        found.lists.append(Rearranged(path, after, shape))
    else:
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            _compare(one, other, shape.element(), (*path, number), found)


def _both(one: Any, other: Any, kind: type) -> bool:
    return isinstance(one, kind) and isinstance(other, kind) and bool(one) and bool(other)


def rearranged(text: str, lists: Sequence[Rearranged]) -> str | None:
    """The text of a document with these lists in it; None where it is not of a form for that.

    The caller reads the result: here nothing is proved.
    """
    documents = Reader().documents("", text)
    if documents is None or len(documents) != 1:
        return None
    root = documents[0].value
    outcomes: list[tuple[Value, Outcome]] = []
    for path, after, shape in lists:
        value = root
        for part in path:
            value = value.children[part]
        outcomes.append((value, _outcome(value, after, shape)))
    try:
        return resumed(root, outcomes)
    except CannotSplice:
        return None


def _outcome(value: Value, after: Any, shape: Shape) -> Outcome:
    """The same as a merge in which only upstream has changed anything, told entry by entry."""
    before = value.data
    if same(before, after):
        return local(value)
    entries: list[Entry] = []
    if _both(before, after, dict):
        for name in woven(list(before), list(after)):
            mine = value.children.get(name)
            if name not in after:
                entries.append(Entry(name, (mine, None, mine), NOTHING))
            else:
                entries.append(_entry(name, mine, after[name], shape.child(name)))
        return mapping(entries)
    if not _both(before, after, list):
        return upstream(_bare(after))
    places = _origins(before, after, shape.keys)
    for origin, item in zip(places, after, strict=True):
        mine = None if origin is None else value.children[origin]
        entries.append(_entry("", mine, item, shape.element()))
    kept = set(places)
    gone = [value.children[number] for number in range(len(before)) if number not in kept]
    return sequence([*entries, *(Entry("", (mine, None, mine), NOTHING) for mine in gone)])


def _entry(name: str, mine: Value | None, after: Any, shape: Shape) -> Entry:
    theirs = _bare(after)
    outcome = upstream(theirs) if mine is None else _outcome(mine, after, shape)
    return Entry(name, (mine, theirs, mine), outcome)


def _bare(data: Any) -> Value:
    return Value(data, "", None, None)


def _origins(before: list[Any], after: list[Any], keys: tuple[str, ...]) -> list[int | None]:
    """For each element of the later list its place in the earlier one, if it comes from there."""
    known, wanted = (element_keys(side, keys) if keys else None for side in (before, after))
    if known is None or wanted is None:
        return origins(before, after)
    places = {key: number for number, key in enumerate(known)}
    return [places.get(key) for key in wanted]
