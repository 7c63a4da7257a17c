"""Lookup of fields in plain data by path patterns, for tables of validation rules.

Rules look at the data as written and not at the models: a field of the wrong type must
not hide errors elsewhere. Data that does not fit a pattern is skipped; the models
report it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.field_errors import FieldPath


def find_fields(data: object, pattern: str) -> Iterator[tuple[FieldPath, Any]]:
    """Yield (path, value) of every field that matches a pattern: `spec.stages[*].after`."""
    steps = tuple(pattern.replace("[*]", ".*").strip(".").split(".")) if pattern else ()
    yield from _find_below(data, steps, ())


def _find_below(
    data: object, steps: tuple[str, ...], path: FieldPath
) -> Iterator[tuple[FieldPath, Any]]:
    if not steps:
        yield path, data
        return
    step, rest = steps[0], steps[1:]
    if step == "*":
        for index, item in enumerate(as_list(data)):
            yield from _find_below(item, rest, (*path, index))
    elif isinstance(data, Mapping) and step in data:
        yield from _find_below(data[step], rest, (*path, step))


def matches_pattern(path: FieldPath, pattern: str) -> bool:
    """Return whether a pattern like `spec.stages[*].after` matches the path."""
    steps = pattern.replace("[*]", ".*").split(".")
    normalized = ["*" if isinstance(part, int) else part for part in path]
    return steps == normalized


def as_list(data: object) -> list[Any] | tuple[Any, ...]:
    """Return the data if it is a list, else an empty one."""
    return data if isinstance(data, (list, tuple)) else ()


def as_mapping(data: object) -> Mapping[str, Any]:
    """Return the data if it is an object, else an empty one."""
    return data if isinstance(data, Mapping) else {}
