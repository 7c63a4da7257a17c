"""From fields that were put to an object that is valid, with whatever cannot stay taken out.

What is taken out with a faulty field is whatever would mean something else without it: a function
without its selectors changes other objects, a target without its package goes elsewhere.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Any

from fanout.api.faults import Fault, Path, field_name
from fanout.api.foreign.pieces import Put, Remark
from fanout.api.kinds import known_fields
from fanout.api.meta import KRMObject
from fanout.values import frozen

Judge = Callable[[Mapping[str, Any]], Iterable[Fault]]
_REMOVE = re.compile("^remove it(; |$)")  # it is removed already
WHOLE = "the object"
Units = Mapping[str, str]
"""What goes as a whole and what it is called, by pattern; the longest that fits a path counts.

A `*` is any key or index. The one of "" is there in any case.
"""


Leaves = dict[Path, tuple[Any, Path]]
"""Every value without values of its own, and the other program's field that it comes from."""


@frozen
class _Built:
    """An object made of leaves; `before` has each of its paths as the leaves have it."""

    data: dict[str, Any]
    before: Mapping[Path, Path]
    leaves: Leaves
    units: Units

    def nearest(self, path: Path) -> Path:
        """The path, or the longest piece of it that is there."""
        return next(path[:n] for n in range(len(path), -1, -1) if path[:n] in self.before)

    def source(self, path: Path) -> Path:
        """The other program's field behind a path: that of the first value at or below it."""
        old = self.before[path]
        found, (_, source) = next(
            (at, leaf) for at, leaf in self.leaves.items() if at[: len(old)] == old
        )
        return source[: max(len(source) - (len(found) - len(old)), 0)]

    def unit(self, path: Path) -> tuple[Path, str]:
        """What goes with a field, as the leaves have it: all, if there is nothing else to go."""
        nearest = self.nearest(path)
        unit, noun = _unit((*self.before[nearest], *path[len(nearest) :]), self.units)
        if any(leaf[: len(unit)] == unit for leaf in self.leaves):
            return unit, noun
        return (), WHOLE


@frozen
class Assembled:
    """The object, if anything is left of it, and what is to be said about it."""

    data: Mapping[str, Any] | None
    remarks: tuple[Remark, ...]
    built: _Built | None = field(default=None, repr=False)

    def source(self, path: Path) -> Path:
        """The other program's field behind a field of the object, or the nearest above it."""
        return self.built.source(self.built.nearest(path)) if self.built else ()


def assemble(
    kind: type[KRMObject], pieces: Iterable[Put | Remark], judge: Judge, units: Units
) -> Assembled:
    """An object of this kind that `judge` finds no fault with, or none."""
    leaves: Leaves = {}
    remarks: list[Remark] = []
    spoiled: list[Path] = []
    for piece in pieces:
        if isinstance(piece, Put):
            leaves.update(_leaves(piece.path, piece.value, piece.source))
        elif piece.spoils is None:
            remarks.append(piece)
        else:
            unit, noun = _unit(piece.spoils, units)
            spoiled.append(unit)
            remarks.append(Remark(piece.path, piece.problem, _left_out(noun, piece.remedy)))
    leaves = _without(leaves, spoiled)
    while leaves:
        built = _build(kind, leaves, units)
        faults = [fault for fault in judge(built.data) if fault.severity == "error"]
        if not faults:
            return Assembled(built.data, tuple(remarks), built)
        remarks += [_told(fault, built) for fault in faults]
        leaves = _without(leaves, [built.unit(fault.path)[0] for fault in faults])
    return Assembled(None, tuple(remark for remark in remarks if remark.lost))


def _leaves(path: Path, value: Any, source: Path) -> Iterator[tuple[Path, tuple[Any, Path]]]:
    if value and isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves((*path, key), inner, (*source, key))
    elif value and isinstance(value, list | tuple):
        for index, inner in enumerate(value):
            yield from _leaves((*path, index), inner, (*source, index))
    else:
        yield path, (value, source)


def _without(leaves: Leaves, units: Iterable[Path]) -> Leaves:
    gone = set(units)
    return {
        path: leaf
        for path, leaf in leaves.items()
        if not any(path[:length] in gone for length in range(len(path) + 1))
    }


def _build(kind: type[KRMObject], leaves: Leaves, units: Units) -> _Built:
    root: dict[str | int, Any] = {}
    for path, leaf in leaves.items():
        here = root
        for part in path[:-1]:
            here = here.setdefault(part, {})
        here[path[-1]] = leaf
    before: dict[Path, Path] = {}
    return _Built(_plain(kind, root, (), (), before), before, leaves, units)


def _plain(
    kind: type[KRMObject], node: Any, path: Path, old: Path, before: dict[Path, Path]
) -> Any:
    """The value of a node; lists closed up, fields in the order in which the kind has them."""
    before[path] = old
    if isinstance(node, tuple):
        return node[0]
    if all(isinstance(key, int) for key in node):
        return [
            _plain(kind, node[key], (*path, index), (*old, key), before)
            for index, key in enumerate(sorted(node))
        ]
    order = known_fields(kind, path)
    keys = sorted(node, key=lambda key: order.index(key) if key in order else len(order))
    return {key: _plain(kind, node[key], (*path, key), (*old, key), before) for key in keys}


def _unit(path: Path, units: Units) -> tuple[Path, str]:
    """What goes with a field: its path and what it is called."""
    return max(
        (
            (path[: len(steps)], noun)
            for pattern, noun in {"": WHOLE, **units}.items()
            for steps in [tuple(pattern.split(".")) if pattern else ()]
            if len(steps) <= len(path)
            and all(step in ("*", part) for step, part in zip(steps, path, strict=False))
        ),
        key=lambda found: len(found[0]),
    )


def _told(fault: Fault, built: _Built) -> Remark:
    nearest = built.nearest(fault.path)
    missing = field_name(fault.path[len(nearest) :])
    problem = f"{missing} {fault.problem}" if missing else fault.problem
    advice = _REMOVE.sub("", fault.remedy)
    return Remark(built.source(nearest), problem, _left_out(built.unit(fault.path)[1], advice))


def _left_out(noun: str, advice: str) -> str:
    return f"{noun} is left out{': ' if advice else ''}{advice}"
