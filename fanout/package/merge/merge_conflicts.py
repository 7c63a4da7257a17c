"""Merge conflicts: values that both sides changed, their three values, and the winner."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from hashlib import sha256
from typing import Any, Final

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.errors import ErrorLocation
from fanout.package.field_edits import MISSING
from fanout.package.sequence_alignment import common_prefix_length
from fanout.values import Value, field, replace


class ConflictCause(StrEnum):
    """Changes of the two sides that conflict."""

    BOTH_CHANGED = "both changed"
    DELETED_HERE = "deleted here, changed there"
    DELETED_THERE = "changed here, deleted there"
    BOTH_ADDED = "both added"


class MergeConflict(Value):
    """One disputed value. A missing value is MISSING; files have their bytes."""

    # Locally, or upstream when it is not there locally. An object has its namespace if it has one,
    # and a plain file no object; the whole object or file has no field, and a file no line.
    where: ErrorLocation
    cause: ConflictCause
    origin: Any
    upstream: Any
    local: Any
    winner: ConflictWinner = ConflictWinner.UPSTREAM
    is_decided: bool = False  # somebody chose the winner
    key: str = ""  # names this dispute, whatever line it stands on; what decisions refer to
    difference: str = ""  # how the values differ, where they would tell people nothing

    def __str__(self) -> str:
        """Format as one line for people."""
        if not (difference := self.difference):
            lines_above, values = self._shown_values()
            difference = ", ".join(f"{side} {value}" for side, value in values.items())
            if lines_above:
                difference = f"from line {lines_above + 1} of it: {difference}"
        return f"{self.where}: {self.cause} ({difference}); {self.winner} won"

    @property
    def resolution(self) -> str:
        """One line with the place, the value in the result, the value not taken, and the base."""
        place, winner = replace(self.where, line=0), self.winner
        [loser] = set(ConflictWinner) - {winner}
        if self.difference:
            return f"{place}: {winner} stands, {loser} not taken ({self.difference})"
        _, values = self._shown_values()
        taken, rejected = f"{winner} {values[winner]} stands", f"{loser} {values[loser]} not taken"
        return f"{place}: {taken}, {rejected} (base {values['base']})"

    @property
    def is_secret(self) -> bool:
        """True if a value may belong to a Secret; such values are never shown."""
        values = (self.origin, self.upstream, self.local)
        return self.where.object.partition("/")[0] == _HIDDEN_KIND or any(
            map(_contains_secret, values)
        )

    def _shown_values(self) -> tuple[int, dict[str, str]]:
        """Return how many first lines are left out, and the values by side, for people."""
        values, lines_above = (self.origin, self.upstream, self.local), 0
        if self.is_secret:
            texts = ["absent" if value is MISSING else "(not shown)" for value in values]
        else:
            texts = []
            lines_above, values = _differing_lines(values)
            for value in values:
                if isinstance(value, bytes):
                    text = f"{len(value)} bytes"
                else:
                    text = "absent" if value is MISSING else json.dumps(value)
                is_long = len(text) > _MAX_SHOWN_LENGTH
                texts.append(f"{text[:_MAX_SHOWN_LENGTH]}…" if is_long else text)
        sides = ("base", ConflictWinner.UPSTREAM, ConflictWinner.LOCAL)
        return lines_above, dict(zip(sides, texts, strict=True))


Winners = Mapping[str, ConflictWinner]
"""Winners by the key of the conflict."""


class ConflictChoices(Value):
    """Chosen winners: by conflict key from decisions, and a default for all others."""

    by_key: Winners = field(default_factory=dict)
    default_side: ConflictWinner | None = None  # None: the merge's own rule names the winner

    def winner(self, key: str, default: ConflictWinner) -> ConflictWinner:
        """Return the winner of the conflict with this key."""
        return self.by_key.get(key) or self.default_side or default


NO_CHOICES: Final = ConflictChoices()
_MAX_SHOWN_LENGTH: Final = 60
_HIDDEN_KIND: Final = "Secret"
_SECRET_IN_TEXT: Final = re.compile(rb"""kind["']?\s*:\s*["']?Secret\b""")


def _contains_secret(value: Any) -> bool:
    """Return whether a value contains a Secret, in a text or among a List's items."""
    if isinstance(value, str):
        value = value.encode(errors="replace")
    if isinstance(value, bytes):
        return _SECRET_IN_TEXT.search(value) is not None
    if isinstance(value, Mapping):
        return value.get("kind") == _HIDDEN_KIND or any(map(_contains_secret, value.values()))
    return isinstance(value, list | tuple) and any(map(_contains_secret, value))


def _differing_lines(values: tuple[Any, Any, Any]) -> tuple[int, tuple[Any, Any, Any]]:
    """Return texts of several lines without their common first and last lines.

    The first result is the number of common first lines. Other values are returned as they are.
    """
    texts: list[str] = []
    for value in values:
        text = value
        if isinstance(value, bytes) and b"\0" not in value:
            with suppress(UnicodeDecodeError):
                text = value.decode()
        if not isinstance(text, str):
            return 0, values
        texts.append(text)
    if not any("\n" in text for text in texts):
        return 0, values
    sides = [text.splitlines(keepends=True) for text in texts]
    lines_above = common_prefix_length(*sides)
    lines_below = common_prefix_length(*(side[lines_above:][::-1] for side in sides))
    cut = ["".join(side[lines_above : len(side) - lines_below]) for side in sides]
    return lines_above, (cut[0], cut[1], cut[2])


def build_conflict(
    where: ErrorLocation,
    cause: ConflictCause,
    values: tuple[Any, Any, Any],
    default: ConflictWinner,
    choices: ConflictChoices,
) -> MergeConflict:
    """Build a conflict with the winner that was chosen, or else the default one.

    Only a choice by key decides the conflict: a rule for all conflicts is applied anew in
    each merge and holds no longer than the rule.
    """
    origin, upstream, local = values
    # Equal if place and values are. Without the line: a decision on a conflict must survive edits
    # elsewhere in the file. Records keep these keys, so neither the inputs nor their order may
    # change.
    digest = sha256(f"{where.object or where.file}\0{where.field}".encode())
    for value in values:
        digest.update(b"\0")
        if isinstance(value, bytes):
            digest.update(sha256(value).digest())
        elif value is not MISSING:
            digest.update(json.dumps(value, sort_keys=True).encode())
    key = digest.hexdigest()[:16]
    return MergeConflict(
        where,
        cause,
        origin=origin,
        upstream=upstream,
        local=local,
        winner=choices.winner(key, default),
        is_decided=key in choices.by_key,
        key=key,
    )
