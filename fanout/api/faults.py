"""What is wrong with an object: the field, the sentence, the remedy.

Validation collects faults and never stops at the first; a single bad value inside a model is told
as `BadValue`, which validation turns into a fault at the value's path.
"""

import re
from collections.abc import Iterable
from typing import Literal

from fanout.values import frozen

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
Path = tuple[str | int, ...]
Severity = Literal["error", "warning"]


def field_name(path: Path) -> str:
    """A path as people write it: ``spec.stages[3].after``; odd keys in quotes."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif not _WORD.fullmatch(part):
            text += f'["{part}"]'
        else:
            text += f".{part}" if text else part
    return text


@frozen
class Fault:
    """One thing that is wrong with one field; an error keeps the object from being used."""

    path: Path
    problem: str
    remedy: str
    severity: Severity = "error"
    meant: str = ""  # the field that an unknown one stands for

    @property
    def field(self) -> str:
        """The path as text: ``spec.stages[3].after``."""
        return field_name(self.path)


class BadValue(ValueError):
    """A value that no field of its type may have; says what is wrong and what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def in_order(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Without repetitions, by path; list entries in the order of their numbers."""
    return tuple(sorted(dict.fromkeys(faults), key=_position))


def _position(fault: Fault) -> tuple[tuple[tuple[bool, int, str], ...], str]:
    path = tuple(
        (False, part, "") if isinstance(part, int) else (True, 0, part) for part in fault.path
    )
    return path, fault.problem
