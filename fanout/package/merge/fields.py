"""Fields three ways: the rules of design §4 for mappings, lists and scalars.

Nothing here touches text; the outcome is a tree of decisions (`outcome`), and `splice` writes it.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fanout.errors import Where
from fanout.package.edits import MISSING, Path, show
from fanout.package.merge.bookkeeping import is_bookkeeping
from fanout.package.merge.conflicts import NO_CHOICES, Cause, Choices, Conflict, Side, disputed
from fanout.package.merge.functions import function_keys
from fanout.package.merge.keys import FUNCTION, OBJECT, Shape, element_keys
from fanout.package.merge.order import merged_order
from fanout.package.merge.outcome import (
    NOTHING,
    Entry,
    How,
    Outcome,
    local,
    mapping,
    sequence,
    upstream,
)
from fanout.package.merge.sides import Value, same_data, same_text
from fanout.package.merge.texts import merge_sequences, merge_texts

Sides = tuple[Value | None, Value | None, Value | None]  # origin, upstream, local
Key = tuple[object, ...]


@dataclass(slots=True)
class Fields:
    """The merge of one document; conflicts are collected on the way."""

    file: str
    subject: str  # the object's name, for people
    choices: Choices = NO_CHOICES
    items: Callable[[Sides], Outcome] | None = None  # how the objects of a List are merged
    whole: frozenset[Path] = frozenset()  # values that are never mixed
    quiet: frozenset[Path] = frozenset()  # values in which a local change always stays
    lines: tuple[int, int, int] = (0, 0, 0)  # before each side's stretch of its file
    line_of: Callable[[Path], int] = lambda _: 0  # where values themselves do not know it
    conflicts: list[Conflict] = field(default_factory=list)

    def merge(self, sides: Sides, shape: Shape, path: Path = ()) -> Outcome:
        """The outcome for one value."""
        o, u, mine = sides
        if same_text(u, o) or same_text(u, mine) or is_bookkeeping(path):
            return local(mine)
        if same_text(mine, o):
            return upstream(u)
        if path in self.whole or path in self.quiet:
            return self.single(sides, path)
        kinds = {type(value.data) for value in (u, mine) if value is not None}
        if kinds == {dict} and (shape.free or (u and mine)):
            return self.mapping(sides, shape, path)
        if kinds == {list} and (shape.keys or (u and mine)):
            return self.sequence(sides, shape, path)
        return self.single(sides, path)

    # ---- what is decided as a whole -----------------------------------------------------------

    def single(self, sides: Sides, path: Path) -> Outcome:
        """Scalars, changes of kind, and what one side has not."""
        o, u, mine = sides
        if same_data(u, o) or same_data(u, mine):
            return local(mine)
        if same_data(mine, o):
            return upstream(u)
        if path in self.quiet:
            return local(mine)
        merged = _lines(sides)
        if merged is None:
            winner = self.dispute(sides, path)
            merged = _lines(sides, winner)
            if merged is None or (u and merged == u.data) or (mine and merged == mine.data):
                return upstream(u) if winner is Side.UPSTREAM else local(mine)
        return Outcome(How.TEXT, merged)

    def dispute(self, sides: Sides, path: Path, default: Side = Side.UPSTREAM) -> Side:
        """Record a conflict; says who wins it."""
        o, u, mine = sides
        values = [side.data if side else MISSING for side in sides]
        if mine is None and o is not None:
            cause = Cause.DELETED_HERE
        elif u is None:
            cause = Cause.DELETED_THERE
        else:
            cause = Cause.BOTH_CHANGED if o is not None else Cause.BOTH_ADDED
        before = zip(sides[::-1], (self.lines[2], self.lines[1], self.lines[0]), strict=True)
        known = (side.line + above for side, above in before if side and side.line)
        line = next(known, 0) or self.line_of(path)
        where = Where(self.subject, show(path) if path else "", self.file, line)
        three = values[0], values[1], values[2]
        conflict = disputed(where, cause, three, default, self.choices)
        self.conflicts.append(conflict)
        return conflict.winner

    # ---- mappings -----------------------------------------------------------------------------

    def mapping(self, sides: Sides, shape: Shape, path: Path) -> Outcome:
        """Entry by entry. An emptied mapping goes where one side has none."""
        o, u, mine = (_parts(side, dict) for side in sides)
        entries: list[Entry] = []
        for name in merged_order(list(o), list(u), list(mine)):
            three = o.get(name), u.get(name), mine.get(name)
            assert isinstance(name, str)
            entries.append(Entry(name, three, self.merge(three, shape.child(name), (*path, name))))
        return unless_empty(mapping(entries), sides)

    # ---- lists --------------------------------------------------------------------------------

    def sequence(self, sides: Sides, shape: Shape, path: Path) -> Outcome:
        """By merge keys where every element has them, else as texts are merged."""
        if shape.keys == OBJECT and self.items is not None:
            return self.items(sides)
        if shape.keys and (keys := _keys(sides, shape)) is not None:
            return self.keyed(sides, keys, shape, path)
        if sides[1] is None or sides[2] is None:
            return self.single(sides, path)
        return self.keyless(sides, shape, path)

    def keyed(
        self, sides: Sides, keys: Sequence[Sequence[Key]], shape: Shape, path: Path
    ) -> Outcome:
        """Element by element; one that a side deleted comes or goes whole."""
        o, u, mine = (
            dict(zip(names, _parts(side, list).values(), strict=True))
            for side, names in zip(sides, keys, strict=True)
        )
        place = {key: number for number, key in enumerate(keys[2])}
        entries: list[Entry] = []
        for key in merged_order(*keys):
            three = o.get(key), u.get(key), mine.get(key)
            at = (*path, place[key] if key in place else keys[1].index(key))
            entries.append(Entry("", three, self.element(three, shape, at)))
        return unless_empty(sequence(entries), sides)

    def element(self, sides: Sides, shape: Shape, path: Path) -> Outcome:
        """One element of a list with keys."""
        o, u, mine = sides
        if o is None and u and mine and shape.keys != FUNCTION:
            return self.single(sides, path)  # never a mixture of two additions
        return self.merge(sides, shape.element(), path)

    def keyless(self, sides: Sides, shape: Shape, path: Path) -> Outcome:
        """Elements are aligned like lines; edits that touch each other are one conflict."""
        first, second, third = (
            [json.dumps(value.data, sort_keys=True) for value in _parts(side, list).values()]
            for side in sides
        )
        runs = merge_sequences(first, second, third)
        if runs is None:
            winner = self.dispute(sides, path)
            runs = merge_sequences(first, second, third, winner)
            if runs is None:
                return upstream(sides[1]) if winner is Side.UPSTREAM else local(sides[2])
        o, u, mine = (_parts(side, list) for side in sides)
        entries: list[Entry] = []
        for run in runs:
            start, end, origin = run.replaced
            for step in range(end - start):
                gone = (o[origin + step] if origin >= 0 else None), None, mine[start + step]
                entries.append(Entry("", gone, NOTHING))
            for step, at in enumerate(range(run.start, run.end)):
                if run.others is not None:
                    origin, theirs = run.others
                    three = o[origin + step], u[theirs + step], mine[at]
                    outcome = self.merge(three, shape.element(), (*path, at))
                    entries.append(Entry("", three, outcome))
                elif run.upstream:
                    entries.append(Entry("", (None, u[at], None), upstream(u[at])))
                else:
                    entries.append(Entry("", (None, None, mine[at]), local(mine[at])))
        return unless_empty(sequence(entries), sides)


def _lines(sides: Sides, winner: Side | None = None) -> str | None:
    """Texts of several lines, merged by line; None for other values, as `merge_texts` says."""
    texts = [side.data for side in sides if side and isinstance(side.data, str)]
    if len(texts) < len(sides) or not all("\n" in text for text in texts):
        return None
    return merge_texts(texts[0], texts[1], texts[2], winner)


def _keys(sides: Sides, shape: Shape) -> Sequence[Sequence[Key]] | None:
    """The elements' keys on each side; None when one has none."""
    lists = [_elements(side) for side in sides]
    if shape.keys == FUNCTION:
        return function_keys(lists)
    keys = [element_keys(elements, shape.keys) for elements in lists]
    known = [names for names in keys if names is not None]
    return known if len(known) == len(keys) else None


def _parts(side: Value | None, kind: type) -> dict[Any, Value]:
    """The entries of a side that has a mapping, or list, here."""
    return side.children if side is not None and isinstance(side.data, kind) else {}


def _elements(side: Value | None) -> list[Any]:
    return side.data if side is not None and isinstance(side.data, list) else []


def unless_empty(outcome: Outcome, sides: Sides) -> Outcome:
    """Design §4: what the merge emptied goes where one side has none; what is one side's is it."""
    _, u, mine = sides
    if not outcome.entries:
        if u is None or mine is None:
            return NOTHING
        if not mine.data:
            return local(mine)
        return outcome if u.data else upstream(u)
    hows = {entry.outcome.how for entry in outcome.entries}
    if hows == {How.UPSTREAM} and mine is None and u and len(outcome.entries) == len(u.data):
        return upstream(u)
    if hows == {How.LOCAL} and u is None and mine and len(outcome.entries) == len(mine.data):
        return local(mine)
    return outcome
