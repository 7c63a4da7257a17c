"""Three texts or lists into one, by their common base; edits that touch are a conflict.

Whoever wins a conflict wins the stretches that both sides changed, and no other line.
"""

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from fanout.package.merge.conflicts import Side, common

# Pairs of equal lines that alignment may have to look at; it is quadratic where lines repeat.
_MOST_PAIRS: Final = 2_000_000


class Run(NamedTuple):
    """Consecutive elements of one side; or of all three, with where they begin in the others."""

    upstream: bool
    start: int
    end: int
    others: tuple[int, int] | None = None  # origin, upstream
    # what goes here: start, end, and where it starts in the origin, -1 where that has none of it
    replaced: tuple[int, int, int] = (0, 0, 0)


def merge_sequences(
    origin: Sequence[str],
    upstream: Sequence[str],
    local: Sequence[str],
    winner: Side | None = None,
) -> list[Run] | None:
    """Where the elements of the result come from, in order.

    What both sides have is taken from the local one; where edits touch each other, what the winner
    has. None when they do and nobody wins, and for what would take too long to align. (Design §4:
    lists without keys, texts.)
    """
    head = common(origin, upstream, local)
    shortest = min(map(len, (origin, upstream, local))) - head
    tail = common(*(side[::-1][:shortest] for side in (origin, upstream, local)))
    o, u, mine = (side[head : len(side) - tail] for side in (origin, upstream, local))
    counts = Counter(o)
    if sum(counts[line] for side in (u, mine) for line in side) > _MOST_PAIRS:
        return None
    runs = [Run(False, 0, head, (0, 0))]
    o_at = u_at = l_at = 0
    for o_sync, o_end, l_sync, l_end, u_sync, u_end in _aligned(o, mine, u):
        before = o[o_at:o_sync]
        theirs, ours = u[u_at:u_sync], mine[l_at:l_sync]
        settled = theirs in (before, ours)
        if not settled and ours != before and winner is None:
            return None
        if ours == before or (not settled and winner is Side.UPSTREAM):
            gone = l_at + head, l_sync + head, o_at + head if ours == before else -1
            runs.append(Run(True, u_at + head, u_sync + head, None, gone))
        else:
            runs.append(Run(False, l_at + head, l_sync + head))
        runs.append(Run(False, l_sync + head, l_end + head, (o_sync + head, u_sync + head)))
        o_at, u_at, l_at = o_end, u_end, l_end
    others = len(origin) - tail, len(upstream) - tail
    runs.append(Run(False, len(local) - tail, len(local), others))
    return runs


def _aligned(
    o: Sequence[str], mine: Sequence[str], u: Sequence[str]
) -> list[tuple[int, int, int, int, int, int]]:
    """The stretches that all three have, the empty one at the end included.

    Where both sides match the origin, they match each other.
    """
    # no junk: frequent lines (`}`, blank ones) must not be left unaligned
    ours = SequenceMatcher(None, o, mine, autojunk=False).get_matching_blocks()
    theirs = SequenceMatcher(None, o, u, autojunk=False).get_matching_blocks()
    found = []
    i = j = 0
    while i < len(ours) and j < len(theirs):
        here, there = ours[i], theirs[j]
        ends = here.a + here.size, there.a + there.size
        start, end = max(here.a, there.a), min(ends)
        if start < end:
            l_at, u_at = here.b + start - here.a, there.b + start - there.a
            size = end - start
            found.append((start, end, l_at, l_at + size, u_at, u_at + size))
        if ends[0] < ends[1]:
            i += 1
        else:
            j += 1
    return [*found, (len(o), len(o), len(mine), len(mine), len(u), len(u))]


def merge_texts(origin: str, upstream: str, local: str, winner: Side | None = None) -> str | None:
    """The merged text, by lines; None when edits touch each other and nobody wins."""
    sides = upstream.splitlines(keepends=True), local.splitlines(keepends=True)
    runs = merge_sequences(origin.splitlines(keepends=True), *sides, winner)
    if runs is None:
        return None
    lines = [line for run in runs for line in sides[not run.upstream][run.start : run.end]]
    # a last line without its break may have got company
    return "".join(line if line.endswith("\n") or n == len(lines) - 1 else line + "\n"
                   for n, line in enumerate(lines))  # fmt: skip
