"""An expression that can be asked in process, once per variant, without knowing how it was made."""

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from fanout.values import frozen


@frozen
class Closure:
    """Called with a row of variables it answers plain data, not to be changed, or `Broken`.

    The same row gives the same answer, and it is the one that the sandbox gives. What it costs is
    bounded by the length of its text and by the size of what it reads.
    """

    text: str
    reads: Mapping[str, Any]  # field names below the variables; an empty mapping: the whole value
    answer: Callable[[Mapping[str, Any]], Any] = field(repr=False, compare=False)

    def __call__(self, row: Mapping[str, Any]) -> Any:
        """The expression over the row: plain data, or `Broken`."""
        return self.answer(row)
