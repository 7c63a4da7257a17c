"""A place where both sides changed the same thing: what each said, and whose word it got."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from fanout.errors import Where
from fanout.package.edits import MISSING


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


@dataclass(frozen=True, slots=True)
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

    def __str__(self) -> str:
        """One line for people."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        parts = [part for part in (place, self.object, self.field) if part]
        return (
            f"{': '.join(parts)}: {self.cause} (base {_shown(self.origin)}, upstream "
            f"{_shown(self.upstream)}, local {_shown(self.local)}); {self.winner} won"
        )


Choices = Mapping[str, Side]  # winners that people chose, by the conflict's key
NO_CHOICES: Final[Choices] = {}
_LONGEST: Final = 60


def _shown(value: Any) -> str:
    if value is MISSING:
        return "absent"
    text = f"{len(value)} bytes" if isinstance(value, bytes) else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def disputed(
    where: Where, cause: Cause, values: tuple[Any, Any, Any], default: Side, choices: Choices
) -> Conflict:
    """A conflict, with the winner that somebody chose, or else the default one."""
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
        winner=choices.get(key, default),
        decided=key in choices,
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
