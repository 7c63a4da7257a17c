"""Errors and warnings about fields of an object: path, problem, remedy.

Validation collects all of them and never stops at the first. A validator of a single
value raises `InvalidValue`, which validation turns into a `FieldError` at the value's
path.
"""

import re
from collections.abc import Iterable
from typing import Literal

from fanout.values import frozen

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


@frozen
class FieldError:
    """Error or warning about one field; an object with an error is not used.

    `intended_field`: for an unknown field, the known field that it is probably a
    misspelling of.
    """

    path: FieldPath
    problem: str
    remedy: str
    severity: Severity = "error"
    intended_field: str = ""  # field that was probably meant by an unknown one

    @property
    def field(self) -> str:
        """The path as text: `spec.stages[3].after`."""
        return format_path(self.path)


class InvalidValue(ValueError):
    """A value that no field of its type may have, with the problem and its remedy."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def sort_errors(errors: Iterable[FieldError]) -> tuple[FieldError, ...]:
    """Remove duplicates and sort by path; entries of a list in numeric order."""
    return tuple(sorted(dict.fromkeys(errors), key=_sort_key))


def _sort_key(error: FieldError) -> tuple[tuple[tuple[bool, int, str], ...], str]:
    path = tuple(
        (False, part, "") if isinstance(part, int) else (True, 0, part) for part in error.path
    )
    return path, error.problem
