"""Outlines of expressions turned into closures, which answer in process as celpy would.

A closure takes what the expression reads of a row, once, and computes from that alone. Each node is
called at most once, none sees or makes a text or list beyond a fixed size, and none follows how
deep data is. So the cost is bounded by the text (1,024 characters) and the size of what it reads.
Where the answer is not beyond doubt, or is an error, it is `ASK`: the words of errors are celpy's.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from fanout.sandbox.operations import PAIRS, SINGLE, FaultError, UnsureError
from fanout.sandbox.projection import Reads
from fanout.sandbox.taking import MISSING, read, taken

ASK: Any = object()  # the answer where celpy has to be asked

Path = tuple[str, ...]
Node = Callable[[Sequence[Any]], Any]  # over the values that the expression reads


def closure_of(outline: Sequence[Any], reads: Reads) -> Callable[[Mapping[str, Any]], Any]:
    """From a row of variables to plain data or `ASK`."""
    paths = _paths(reads)
    if outline[0] == "path" and paths == [tuple(outline[1:])]:
        return _plain(*paths)
    node = _node(outline, {path: number for number, path in enumerate(paths)})
    ways = [(path[0], path[1:]) for path in paths]

    def answer(row: Mapping[str, Any]) -> Any:
        try:
            return _handed_out(node([read(row, name, way) for name, way in ways]))
        except (FaultError, UnsureError):
            return ASK

    return answer


def _plain(path: Path) -> Callable[[Mapping[str, Any]], Any]:
    """Most expressions are a path and nothing else: what is read there is the answer."""
    name, *way = path

    def answer(row: Mapping[str, Any]) -> Any:
        try:
            value = read(row, name, way)
        except UnsureError:
            return ASK
        return ASK if value is MISSING else value

    return answer


def _paths(reads: Reads, above: Path = ()) -> list[Path]:
    """The paths of all leaves: what is read as a whole."""
    if not reads:
        return [above] if above else []
    return [path for name, below in reads.items() for path in _paths(below, (*above, name))]


def _handed_out(value: Any) -> Any:
    """An answer as a child would send it: fractions that are whole are numbers, in lists too."""
    kind = value.__class__
    if kind is str or kind is bool or kind is int or value is None:
        return value
    return taken(value)


def _node(outline: Sequence[Any], numbers: Mapping[Path, int]) -> Node:
    """The closure for a node and all below it; `numbers`: of the values, by their paths."""
    word, *parts = outline
    if word == "value":
        return _constant(parts[0])
    if word == "path":
        return _value_at(*_place(tuple(parts), numbers))
    nodes = [_node(part, numbers) for part in parts]
    if word in SINGLE:
        return _single(SINGLE[word], *nodes)
    if word in FORMS:
        return FORMS[word](*nodes)
    return _pair(PAIRS[word], *nodes)


def _place(path: Path, numbers: Mapping[Path, int]) -> tuple[int, Path]:
    """Which value, and the way that is left from there: it may be read as part of a whole."""
    length = next(length for length in range(1, len(path) + 1) if path[:length] in numbers)
    return numbers[path[:length]], path[length:]


def _constant(value: Any) -> Node:
    return lambda _: value


def _value_at(number: int, way: Path) -> Node:
    def here(values: Sequence[Any]) -> Any:
        value = values[number]
        if value is MISSING:
            raise FaultError
        return value

    def below(values: Sequence[Any]) -> Any:
        value = values[number]
        for name in way:
            if value.__class__ is not dict or name not in value:
                raise FaultError
            value = value[name]
        return value

    return below if way else here


def _has(node: Node) -> Node:
    def has(values: Sequence[Any]) -> bool:
        try:
            node(values)
        except FaultError:
            return False
        return True

    return has


def _certain(node: Node) -> Node:
    """Where celpy makes something of a fault, it has to be asked."""

    def certain(values: Sequence[Any]) -> Any:
        try:
            return node(values)
        except FaultError:
            raise UnsureError from None

    return certain


def _list(*nodes: Node) -> Node:
    certain = [_certain(node) for node in nodes]
    return lambda values: [each(values) for each in certain]


def _map(*nodes: Node) -> Node:
    items = _list(*nodes)

    def node(values: Sequence[Any]) -> dict[str, Any]:
        found = items(values)
        return dict(zip(found[0::2], found[1::2], strict=True))

    return node


def _choice(condition: Node, one: Node, other: Node) -> Node:
    def node(values: Sequence[Any]) -> Any:
        try:
            chosen = condition(values)
        except FaultError:
            one(values)  # as celpy does
            raise
        if chosen is True:
            return one(values)
        if chosen is False:
            return other(values)
        raise UnsureError

    return node


def _logic(left: Node, right: Node, *, decided: bool) -> Node:
    """`&&` (decided by false) and `||` (by true), whatever is on the other side, faults included.

    celpy always looks at both sides, and lets through what is no truth beside one that decides
    nothing.
    """

    def node(values: Sequence[Any]) -> Any:
        try:
            one = left(values)
        except FaultError:
            if right(values) is decided:
                return decided
            raise
        try:
            other = right(values)
        except FaultError:
            if one is decided:
                return decided
            raise
        if one is decided or other is decided:
            return decided
        if one is (not decided):
            return other
        if other is (not decided):
            return one
        raise FaultError

    return node


def _single(operation: Callable[[Any], Any], of: Node) -> Node:
    return lambda values: operation(of(values))


def _pair(operation: Callable[[Any, Any], Any], left: Node, right: Node) -> Node:
    def node(values: Sequence[Any]) -> Any:
        try:
            one = left(values)
        except FaultError:
            right(values)  # celpy looks at both, and what it does there may be worse than a fault
            raise
        return operation(one, right(values))

    return node


def _remainder(left: Node, right: Node) -> Node:
    """celpy takes `%` after a text for a format, and fills a fault in."""
    return _pair(PAIRS["%"], _certain(left), _certain(right))


FORMS: dict[str, Callable[..., Node]] = {
    "%": _remainder,
    "&&": partial(_logic, decided=False),
    "?:": _choice,
    "has": _has,
    "list": _list,
    "map": _map,
    "||": partial(_logic, decided=True),
}
