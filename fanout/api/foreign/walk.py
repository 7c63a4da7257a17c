"""Going through one object of another program's along a table, field by field."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fanout.api.faults import Path
from fanout.api.foreign.pieces import Found, Put, Remark
from fanout.api.foreign.rows import Origin, Row
from fanout.api.texts import shown

Fill = Callable[[str, Path], Path]
"""From the pattern of a counterpart and the path of what was found: the counterpart's path."""


def in_turn(pattern: str, path: Path) -> Path:
    """The path of a counterpart, with the indices of the field that was found."""
    indices = (part for part in path if isinstance(part, int))
    steps = pattern.replace("[*]", ".*").split(".") if pattern else []
    return tuple(next(indices) if step == "*" else step for step in steps)


def walk(origin: Origin, item: Mapping[str, Any], fill: Fill = in_turn) -> Iterator[Put | Remark]:
    """What becomes of the fields of an object, in its own order."""
    return _Walk(origin, item, fill).below(item, (), "")


class _Walk:
    """Goes through one object along the table."""

    def __init__(self, origin: Origin, item: Mapping[str, Any], fill: Fill) -> None:
        self._rows: dict[str, Row] = {row.source: row for row in origin.rows}
        self._above = {part for row in origin.rows for part in _above(row.source)}
        self._known = self._above | self._rows.keys()
        self._kind = origin.kind
        self._object = item
        self._fill = fill

    def below(self, value: Any, path: Path, pattern: str) -> Iterator[Put | Remark]:
        """What becomes of the fields of an object."""
        if not isinstance(value, Mapping):
            yield Remark(path, f"must be an object and is {shown(value)}", "correct it")
            return
        for key, inner in value.items():
            if not path and key in ("apiVersion", "kind"):
                continue
            inside = f"{pattern}.{key}" if pattern else str(key)
            yield from self._field(inner, (*path, str(key)), inside)

    def _field(self, value: Any, path: Path, pattern: str) -> Iterator[Put | Remark]:
        if value is None:  # as Go reads it: not there
            return
        if pattern in self._rows:
            row = self._rows[pattern]
            yield from row.convert(Found(path, value, self._fill(row.target, path), self._object))
        elif f"{pattern}[*]" in self._known:
            yield from self._list(value, path, f"{pattern}[*]")
        elif pattern in self._above:
            yield from self.below(value, path, pattern)
        else:
            problem = f"is no field of a {self._kind} that is known"
            yield Remark(path, problem, "correct or remove it")

    def _list(self, value: Any, path: Path, pattern: str) -> Iterator[Put | Remark]:
        if not isinstance(value, list | tuple):
            yield Remark(path, f"must be a list and is {shown(value)}", "correct it")
            return
        for index, inner in enumerate(value):
            if inner in (None, {}, ""):
                yield Remark((*path, index), "is empty", "remove it")
            else:
                yield from self._field(inner, (*path, index), pattern)


def _above(pattern: str) -> Iterator[str]:
    """The patterns of all that a field is in: `spec`, `spec.targets[*]`."""
    steps = pattern.split(".")
    yield from (".".join(steps[:length]) for length in range(1, len(steps)))
