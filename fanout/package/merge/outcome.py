"""What becomes of a value: a tree of decisions, from which the text is made."""

from collections.abc import Sequence
from enum import Enum, auto
from typing import Any, Final

from fanout.package.edits import MISSING
from fanout.package.merge.sides import Value


class How(Enum):
    """Where the value comes from."""

    LOCAL = auto()
    UPSTREAM = auto()
    PARTS = auto()  # a collection with entries of both
    TEXT = auto()  # a scalar that neither side has
    GONE = auto()


class Outcome:
    """The decision on one value; `data` is MISSING when it goes."""

    __slots__ = ("data", "entries", "gone", "how")

    def __init__(
        self,
        how: How,
        data: Any,
        entries: Sequence["Entry"] = (),
        gone: Sequence["Entry"] = (),
    ) -> None:
        self.how = how
        self.data = data
        self.entries = entries  # those that stay
        self.gone = gone  # those that were here and go


class Entry:
    """One entry of a collection, in the order of the result, and what the three sides have."""

    __slots__ = ("local", "name", "origin", "outcome", "upstream")

    def __init__(
        self, name: str, sides: tuple[Value | None, Value | None, Value | None], outcome: Outcome
    ) -> None:
        self.name = name  # of a mapping's entry
        self.origin, self.upstream, self.local = sides
        self.outcome = outcome


NOTHING: Final = Outcome(How.GONE, MISSING)


def local(value: Value | None) -> Outcome:
    """As it is here."""
    return NOTHING if value is None else Outcome(How.LOCAL, value.data)


def upstream(value: Value | None) -> Outcome:
    """As it is upstream."""
    return NOTHING if value is None else Outcome(How.UPSTREAM, value.data)


def mapping(entries: Sequence[Entry]) -> Outcome:
    """A mapping of those entries that stay."""
    stay, gone = _parted(entries)
    return Outcome(How.PARTS, {entry.name: entry.outcome.data for entry in stay}, stay, gone)


def sequence(entries: Sequence[Entry]) -> Outcome:
    """A list of those entries that stay."""
    stay, gone = _parted(entries)
    return Outcome(How.PARTS, [entry.outcome.data for entry in stay], stay, gone)


def _parted(entries: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    stay = [entry for entry in entries if entry.outcome.how is not How.GONE]
    gone = [e for e in entries if e.outcome.how is How.GONE and e.local is not None]
    return stay, gone
