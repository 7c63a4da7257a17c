"""Errors and warnings about fields of an object, suggested and repeated names, lookup of fields.

Validation collects all of them and never stops at the first. A validator of a single value raises
`InvalidValue`, which validation turns into a `FieldError` at the value's path.

Rules look at the data as written and not at the models: a field of the wrong type must not hide
errors elsewhere. Data that does not fit a pattern is skipped; the models report it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Literal

from fanout.values import Value

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
FieldPath = tuple[str | int, ...]
Severity = Literal["error", "warning"]


def format_path(path: FieldPath) -> str:
    """Format a path as people write it: `spec.stages[3].after`, unusual keys in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _PLAIN_KEY.fullmatch(part):
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text


class FieldError(Value):
    """Error or warning about one field; an object with an error is not used."""

    path: FieldPath
    problem: str
    remedy: str
    severity: Severity = "error"
    intended_field: str = ""  # of an unknown field: the known one that was probably meant

    @property
    def field(self) -> str:
        """The path as text: `spec.stages[3].after`."""
        return format_path(self.path)


Rule = Callable[[Mapping[str, Any]], Iterator[FieldError]]
"""Rule about the fields of an object, on its data as written."""


class InvalidValue(ValueError):
    """A value that no field of its type may have, with the problem and its remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def sort_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Remove duplicates and sort by path; entries of a list in numeric order."""

    def sort_key(error: FieldError) -> tuple[object, str]:
        return [(isinstance(part, str), part) for part in error.path], error.problem

    return tuple(sorted(dict.fromkeys(errors), key=sort_key))


SIMILAR = 0.6
VERY_SIMILAR = 0.85  # a letter too many, a plural


def find_similar_name(name: str, candidates: Sequence[str], cutoff: float = SIMILAR) -> str:
    """Return the candidate that is most like the name, or "" if none is similar.

    Case, dashes and underscores do not count: DEV written for dev is one mistake, not
    three. A prefix that only one candidate has means that candidate: repo is repository.
    """
    # Reversed, so that of two names that differ only in case or dashes the first one wins.
    by_folded_name = {_fold_name(candidate): candidate for candidate in reversed(candidates)}
    # Two letters are the beginning of too many names to mean one of them.
    prefix_matches = [
        candidate
        for candidate in by_folded_name
        if len(name) > 2 and candidate.startswith(_fold_name(name))
    ]
    if cutoff <= SIMILAR and len(prefix_matches) == 1:
        return by_folded_name[prefix_matches[0]]
    similar = get_close_matches(_fold_name(name), by_folded_name, n=1, cutoff=cutoff)
    return by_folded_name[similar[0]] if similar else ""


def suggest_name(name: str, candidates: Sequence[str], otherwise: str) -> str:
    """Return `did you mean ...?` with the most similar candidate, else `otherwise`."""
    similar = find_similar_name(name, candidates)
    return f"did you mean {similar}?" if similar else otherwise


def _fold_name(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


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


def is_field_of_list(data: Any, path: FieldPath) -> bool:
    """Return whether a path goes through a list by the name of a field."""
    for part in path:
        if isinstance(data, list) and isinstance(part, str):
            return True
        is_present = part in data if isinstance(data, Mapping) else isinstance(data, list)
        data = data[part] if is_present else None
    return False


def as_list(data: object, *keys: str) -> list[Any] | tuple[Any, ...]:
    """Return the data, or what it has below these keys, if it is a list, else an empty one."""
    value = as_mapping(data, *keys[:-1]).get(keys[-1]) if keys else data
    return value if isinstance(value, (list, tuple)) else ()


def as_mapping(data: object, *keys: str) -> Mapping[str, Any]:
    """Return the data, or what it has below these keys, if it is an object, else an empty one."""
    for key in keys:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def check_unique(data: Mapping[str, Any], pattern: str, noun: str) -> Iterator[FieldError]:
    """Yield an error for each value that occurred before at a path of the same pattern."""
    first_paths: dict[str, FieldPath] = {}
    for path, value in find_fields(data, pattern):
        if not isinstance(value, str):
            continue
        if value in first_paths:
            yield FieldError(path, f"duplicate name {value}", f"rename one {noun}")
        first_paths.setdefault(value, path)
