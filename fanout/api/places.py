"""Finding fields in plain data by a pattern, so that rules can be tables.

Rules look at the data as written and not at the models: one field of the wrong type must not hide
what is wrong elsewhere. Whatever does not fit the pattern is passed over; the models complain.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.faults import Path


def places(data: object, pattern: str) -> Iterator[tuple[Path, Any]]:
    """All (path, value) in the data that a pattern like ``spec.stages[*].after`` names."""
    steps = tuple(pattern.replace("[*]", ".*").strip(".").split(".")) if pattern else ()
    yield from _walk(data, steps, ())


def _walk(data: object, steps: tuple[str, ...], path: Path) -> Iterator[tuple[Path, Any]]:
    if not steps:
        yield path, data
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        for index, item in enumerate(items(data)):
            yield from _walk(item, rest, (*path, index))
    elif isinstance(data, Mapping) and step in data:
        yield from _walk(data[step], rest, (*path, step))


def fits(path: Path, pattern: str) -> bool:
    """Is this one of the paths that the pattern names?"""
    steps = pattern.replace("[*]", ".*").split(".")
    parts = ["*" if isinstance(part, int) else part for part in path]
    return steps == parts


def items(data: object) -> list[Any] | tuple[Any, ...]:
    """The data if it is a list, else an empty one."""
    return data if isinstance(data, (list, tuple)) else ()


def fields(data: object) -> Mapping[str, Any]:
    """The data if it is an object, else an empty one."""
    return data if isinstance(data, Mapping) else {}
