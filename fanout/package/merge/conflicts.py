"""A place where both sides changed the same thing: what each said, and whose word it got."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from hashlib import sha256
from itertools import takewhile
from typing import Any, Final

from fanout.errors import Where
from fanout.package.edits import MISSING
from fanout.values import frozen


class Side(StrEnum):
    """Whose value stands in the result."""

    UPSTREAM = "upstream"
    LOCAL = "local"


class Cause(StrEnum):
    """What the two sides did to the value."""

    BOTH_CHANGED = "both changed"
    DELETED_HERE = "deleted here, changed there"
    DELETED_THERE = "changed here, deleted there"
    BOTH_ADDED = "both added"


@frozen
class Conflict:
    """One disputed value. A value that is not there is MISSING; files have their bytes."""

    file: str  # where it stands locally, or upstream when it is not there locally
    line: int  # from 1; 0 for a file as a whole
    object: str  # "Deployment/web", with its namespace if it has one; "" for a plain file
    field: str  # "spec.replicas"; "" for the whole object or file
    cause: Cause
    origin: Any
    upstream: Any
    local: Any
    winner: Side = Side.UPSTREAM
    decided: bool = False  # somebody chose the winner
    key: str = ""  # names this dispute, whatever line it stands on; what decisions refer to
    gist: str = ""  # how the values differ, where they would tell people nothing

    def __str__(self) -> str:
        """One line for people."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        values = "" if self.gist else ", ".join(f"{side} {value}" for side, value in self._values())
        lines = f"from line {self._above + 1} of it: " if self._above and not self.gist else ""
        return (
            f"{self._named(place)}: {self.cause} ({lines}{self.gist or values}); {self.winner} won"
        )

    @property
    def outcome(self) -> str:
        """One line with the place, the value that stands and the value that was not taken."""
        values = dict(self._values())
        loser = Side.LOCAL if self.winner is Side.UPSTREAM else Side.UPSTREAM
        if self.gist:
            return (
                f"{self._named(self.file)}: {self.winner} stands, {loser} not taken ({self.gist})"
            )
        stands, rejected = values[self.winner], values[loser]
        return (
            f"{self._named(self.file)}: {self.winner} {stands} stands, {loser} {rejected} not taken"
        )

    @property
    def is_secret(self) -> bool:
        """Whether the values may be those of a Secret, which are never shown."""
        values = (self.origin, self.upstream, self.local)
        return self.object.partition("/")[0] == _HIDDEN_KIND or any(map(_holds_secret, values))

    @property
    def _above(self) -> int:
        return 0 if self.is_secret else _apart((self.origin, self.upstream, self.local))[0]

    def _named(self, place: str) -> str:
        return ": ".join(part for part in (place, self.object, self.field) if part)

    def _values(self) -> list[tuple[str, str]]:
        """The three values by side, as people are shown them."""
        values = (self.origin, self.upstream, self.local)
        if self.is_secret:
            texts = ["absent" if value is MISSING else "(not shown)" for value in values]
        else:
            texts = [_shown(value) for value in _apart(values)[1]]
        return list(zip(("base", Side.UPSTREAM, Side.LOCAL), texts, strict=True))


Winners = Mapping[str, Side]
"""Winners by the key of the conflict."""


@frozen
class Choices:
    """Winners that were chosen: one by one by people, and for all other conflicts by a rule."""

    by_key: Winners = field(default_factory=dict)
    otherwise: Side | None = None  # None: the merge's own rule names the winner

    def winner(self, key: str, default: Side) -> Side:
        """Return the winner of the conflict of this key."""
        return self.by_key.get(key) or self.otherwise or default


NO_CHOICES: Final = Choices()
_LONGEST: Final = 60
_HIDDEN_KIND: Final = "Secret"
_SECRET_IN_TEXT: Final = re.compile(rb"""kind["']?\s*:\s*["']?Secret\b""")


def _holds_secret(value: Any) -> bool:
    """Is a Secret in it: in a file that was merged as text, or among the items of a List?"""
    if isinstance(value, str):
        value = value.encode(errors="replace")
    if isinstance(value, bytes):
        return _SECRET_IN_TEXT.search(value) is not None
    if isinstance(value, Mapping):
        return value.get("kind") == _HIDDEN_KIND or any(map(_holds_secret, value.values()))
    return isinstance(value, list | tuple) and any(map(_holds_secret, value))


def _apart(values: tuple[Any, Any, Any]) -> tuple[int, tuple[Any, Any, Any]]:
    """Texts of several lines without the lines that all begin and end with; how many came first."""
    texts = [_text(value) for value in values]
    if any(text is None for text in texts) or not any("\n" in text for text in texts if text):
        return 0, values
    sides = [(text or "").splitlines(keepends=True) for text in texts]
    above = common(*sides)
    below = common(*(side[above:][::-1] for side in sides))
    cut = ["".join(side[above : len(side) - below]) for side in sides]
    return above, (cut[0], cut[1], cut[2])


def _text(value: Any) -> str | None:
    if isinstance(value, bytes) and b"\0" not in value:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None


def common(*sides: Sequence[str]) -> int:
    """How many elements all sides begin with."""
    rows = zip(*sides, strict=False)
    return sum(1 for _ in takewhile(lambda row: row.count(row[0]) == len(row), rows))


def _shown(value: Any) -> str:
    if value is MISSING:
        return "absent"
    text = f"{len(value)} bytes" if isinstance(value, bytes) else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def disputed(
    where: Where, cause: Cause, values: tuple[Any, Any, Any], default: Side, choices: Choices
) -> Conflict:
    """A conflict, with the winner that was chosen, or else the default one.

    Only a choice by key makes it decided: what a rule says of all conflicts is asked anew each time
    and holds no longer than the rule.
    """
    origin, upstream, local = values
    key = _key(where, values)
    return Conflict(
        where.file,
        where.line,
        where.object,
        where.field,
        cause,
        origin=origin,
        upstream=upstream,
        local=local,
        winner=choices.winner(key, default),
        decided=key in choices.by_key,
        key=key,
    )


def _key(where: Where, values: tuple[Any, Any, Any]) -> str:
    """The same place and the same three values have the same key."""
    digest = sha256(f"{where.object or where.file}\0{where.field}".encode())
    for value in values:
        digest.update(b"\0")
        if isinstance(value, bytes):
            digest.update(sha256(value).digest())
        elif value is not MISSING:
            digest.update(json.dumps(value, sort_keys=True).encode())
    return digest.hexdigest()[:16]
