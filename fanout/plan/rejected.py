"""Rejected values: the value that each merge conflict was decided against, in lines for people.

The commit of a draft has a line for each of its conflicts. They go from there into the message of
the publication and the status of the variant, so that nobody has to merge again to tell them. Of a
Secret no value is in them. (Design §4, "A conflict".)
"""

from collections.abc import Iterable, Sequence
from typing import Final

from fanout.gates.wording import counted
from fanout.package.merge.conflicts import Conflict
from fanout.plan.disputes import Dispute, read
from fanout.plan.observation import OpenDraft
from fanout.plan.trailers import NONE

HEADING: Final = "Merge conflicts:"
_BULLET: Final = "* "
_MOST_LINES: Final = 50
_MOST_CHARACTERS: Final = 8000


def lines_of(conflicts: Iterable[Conflict]) -> tuple[str, ...]:
    """Return a line for each conflict, by its key: its place, what stands and what was not taken.

    Two merges that make one draft can meet the same conflict; it has one line.
    """
    return tuple({it.key: f"{it.key} {_one_line(it.outcome)}" for it in conflicts}.values())


def paragraph(lines: Sequence[str]) -> str:
    """Return the paragraph of a commit message that lists the lines; "" if there are none.

    It is cut by whole lines, and what is left out is counted in a last line.
    """
    if not lines:
        return ""
    return "".join(f"{line}\n" for line in (HEADING, *(_BULLET + it for it in bounded(lines))))


def bounded(lines: Sequence[str]) -> tuple[str, ...]:
    """Return as many of the lines as may be shown at once, and how many more there are."""
    shown: list[str] = []
    characters = 0
    for line in lines[:_MOST_LINES]:
        characters += len(line) + 1
        if characters > _MOST_CHARACTERS:
            break
        shown.append(line)
    left = len(lines) - len(shown)
    return (*shown, f"and {counted(left, 'more conflict')}") if left else tuple(shown)


def read_lines(message: str) -> tuple[str, ...]:
    """Return the lines that `paragraph` wrote into a message."""
    for part in message.split("\n\n"):
        heading, *lines = part.strip("\n").split("\n")
        if heading == HEADING:
            return tuple(line.removeprefix(_BULLET) for line in lines)
    return ()


def of_draft(draft: OpenDraft) -> tuple[str, ...]:
    """Return the lines of an open draft, and which of them a person's commit has decided since.

    Of a draft that an older fanout wrote, only files and winners are known.
    """
    if draft.trailers.conflicts == NONE:
        return ()
    known = draft.rejected or tuple(map(_without_values, read(draft.trailers.conflicts)))
    return tuple(
        f"{line}; a commit on the draft has decided it since"
        if line.partition(" ")[0] in draft.settled
        else line
        for line in known
    )


def _without_values(dispute: Dispute) -> str:
    place = f" {_one_line(dispute.file)}:" if dispute.file else ""
    return f"{dispute.key}{place} {dispute.winner} stands"


def _one_line(text: str) -> str:
    """Escape line breaks and control characters, which names of files and keys can have."""
    return "".join(it if it.isprintable() else f"\\x{ord(it):02x}" for it in text)
