"""Which values of a draft are in dispute, who won, and what people have decided about them.

A draft commit lists its disputes by the keys that the merge gives them: the same place and the same
three values have the same key. So a decision made once holds for the next revision too, until one
of the values is another.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field
from urllib.parse import quote, unquote

from fanout.package.merge.conflicts import Choices, Conflict, Side, Winners
from fanout.plan.book import Recorded
from fanout.values import frozen

Files = Mapping[str, object]  # what stands at each path: equal where nothing changed

RESOLVE = "Resolve"
NONE = "none"


@frozen
class Dispute:
    """One value that both sides changed."""

    key: str
    winner: Side
    decided: bool = False
    file: str = ""  # where it stands in the package; "" where that was not written down


@frozen
class Resolution:
    """A Decision of action Resolve: winners by key, or with none the drafts as they stand."""

    stage: str
    variants: tuple[str, ...]
    revision: str
    choices: Winners = field(default_factory=dict)

    def is_about(self, stage: str, variant: str) -> bool:
        """Is the variant meant?"""
        return self.stage in ("", stage) and (not self.variants or variant in self.variants)


def disputes_of(conflicts: Iterable[Conflict], settled: Iterable[str]) -> tuple[Dispute, ...]:
    """What a merge found, with what people had settled before by a commit on the draft."""
    known = frozenset(settled)
    found = {
        item.key: Dispute(item.key, item.winner, item.decided or item.key in known, item.file)
        for item in conflicts
    }
    return tuple(found[key] for key in sorted(found))


def written(disputes: Iterable[Dispute]) -> str:
    """The disputes as a trailer's value: `key=winner`; while undecided `key=winner?@file`."""
    return " ".join(map(_written, disputes)) or NONE


def _written(it: Dispute) -> str:
    file = f"@{quote(it.file)}" if it.file else ""
    return f"{it.key}={it.winner}" if it.decided else f"{it.key}={it.winner}?{file}"


def read(text: str) -> tuple[Dispute, ...]:
    """The same, read. Fail closed: what is not understood is a dispute that nobody decided."""
    return tuple(_read(word) for word in text.split() if word != NONE)


def _read(word: str) -> Dispute:
    key, _, said = word.partition("=")
    winner, _, file = said.partition("@")
    decided = not winner.endswith("?")
    side = winner.removesuffix("?")
    if side not in tuple(Side):
        return Dispute(word, Side.UPSTREAM)
    return Dispute(key, Side(side), decided, unquote(file))


def settled_by(disputes: Iterable[Dispute], wrote: Files, made: Files) -> frozenset[str]:
    """The keys of those that commits on a draft decided: who changed the file has looked at it.

    `wrote` and `made` are the files of fanout's commit and of the draft's tip. A dispute about a
    file that is in neither, such as one that moved, is decided by any commit.
    """
    both = wrote.keys() | made.keys()
    changed = {path for path in both if wrote.get(path) != made.get(path)}
    return frozenset(it.key for it in disputes if it.file in changed or it.file not in both)


def chosen_winners(disputes: Iterable[Dispute]) -> Choices:
    """The winners as they stand, to make the same merge again."""
    return Choices({item.key: item.winner for item in disputes})


def winners_for(resolutions: Iterable[Resolution], stage: str, variant: str) -> Winners:
    """What people chose for a variant; the later decision about a value counts."""
    choices: dict[str, Side] = {}
    for item in resolutions:
        if item.choices and item.is_about(stage, variant):
            choices |= item.choices
    return choices


def resolutions(found: Iterable[Recorded]) -> tuple[Resolution, ...]:
    """The Decisions that decide conflicts, in the order in which they were recorded."""
    return tuple(
        Resolution(
            item.spec.get("stage", ""),
            tuple(item.spec.get("variants", ())),
            item.spec.get("revision", ""),
            _sides(item.spec.get("choices", {})),
        )
        for item in found
        if item.kind == "Decision" and item.spec["action"] == RESOLVE
    )


def _sides(choices: Mapping[str, str]) -> Winners:
    return {key: Side(side) for key, side in choices.items()}
