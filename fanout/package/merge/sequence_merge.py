"""Three-way merge of sequences: the order of keys, texts, and lists without keys.

Edits that adjoin are a conflict. The winner of a conflict wins the ranges that both
sides changed, and no other line.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple, TypeVar

from fanout.package.merge.merge_conflicts import MergeSide, common_prefix_length

K = TypeVar("K", bound=Hashable)


def merge_order(origin: Sequence[K], upstream: Sequence[K], local: Sequence[K]) -> list[K]:
    """Return all keys of upstream and local once.

    The local order holds, unless upstream alone changed the order of the keys that all
    sides have. Keys of one side stand behind their predecessor there.
    """
    if upstream == local:
        return list(local)
    common_keys = set(origin).intersection(upstream, local)
    origin_order, upstream_order, local_order = (
        [key for key in side if key in common_keys] for side in (origin, upstream, local)
    )
    # Order is a value like others: a change by upstream alone is taken, and otherwise
    # the local one stays.
    first, second = (
        (upstream, local) if local_order == origin_order != upstream_order else (local, upstream)
    )
    return interleave(first, second)


def interleave(first: Sequence[K], second: Sequence[K]) -> list[K]:
    """Return the first order, with keys of the second behind their predecessors there."""
    first_keys = set(first)
    keys_behind: dict[K | None, list[K]] = {}
    predecessor: K | None = None
    for key in second:
        if key in first_keys:
            predecessor = key
        else:
            keys_behind.setdefault(predecessor, []).append(key)
    result = list(keys_behind.get(None, ()))
    for key in first:
        result.append(key)
        result += keys_behind.get(key, ())
    return result


# Pairs of equal lines that alignment may have to look at; it is quadratic where lines repeat.
_MAX_PAIRS: Final = 2_000_000


class SequenceRun(NamedTuple):
    """Consecutive elements of one side.

    Or of all three, with their starts in the other sides.
    """

    is_upstream: bool
    start: int
    end: int
    other_starts: tuple[int, int] | None = None  # origin, upstream
    # The range that this run replaces: start, end, and its start in the origin, or -1 if the origin
    # has none of it.
    replaced_range: tuple[int, int, int] = (0, 0, 0)


def merge_sequences(
    origin: Sequence[str],
    upstream: Sequence[str],
    local: Sequence[str],
    winner: MergeSide | None = None,
) -> list[SequenceRun] | None:
    """Return the runs of the result, in order (design §4: lists without keys, texts).

    Common elements are taken from the local side; where edits adjoin, the winner's are
    taken. None if they do and there is no winner, and if alignment would take too long.
    """
    head = common_prefix_length(origin, upstream, local)
    shortest = min(map(len, (origin, upstream, local))) - head
    tail = common_prefix_length(*(side[::-1][:shortest] for side in (origin, upstream, local)))
    origin_middle, upstream_middle, local_middle = (
        side[head : len(side) - tail] for side in (origin, upstream, local)
    )
    counts = Counter(origin_middle)
    # Checked before aligning: generated files with thousands of equal lines would block
    # a sweep.
    if sum(counts[line] for side in (upstream_middle, local_middle) for line in side) > _MAX_PAIRS:
        return None
    runs = [SequenceRun(False, 0, head, (0, 0))]
    o_at = u_at = l_at = 0
    for o_sync, o_end, l_sync, l_end, u_sync, u_end in _align(
        origin_middle, local_middle, upstream_middle
    ):
        origin_part = origin_middle[o_at:o_sync]
        upstream_part, local_part = upstream_middle[u_at:u_sync], local_middle[l_at:l_sync]
        is_settled = upstream_part in (origin_part, local_part)
        if not is_settled and local_part != origin_part and winner is None:
            return None
        if local_part == origin_part or (not is_settled and winner is MergeSide.UPSTREAM):
            replaced_range = (
                l_at + head,
                l_sync + head,
                o_at + head if local_part == origin_part else -1,
            )
            runs.append(SequenceRun(True, u_at + head, u_sync + head, None, replaced_range))
        else:
            runs.append(SequenceRun(False, l_at + head, l_sync + head))
        runs.append(SequenceRun(False, l_sync + head, l_end + head, (o_sync + head, u_sync + head)))
        o_at, u_at, l_at = o_end, u_end, l_end
    other_starts = len(origin) - tail, len(upstream) - tail
    runs.append(SequenceRun(False, len(local) - tail, len(local), other_starts))
    return runs


def _align(
    origin: Sequence[str], local: Sequence[str], upstream: Sequence[str]
) -> list[tuple[int, int, int, int, int, int]]:
    """Return the ranges that all three sides have, the empty one at the end included.

    Where both sides match the origin, they match each other.
    """
    # Without junk: frequent lines (`}`, blank ones) must not be left unaligned.
    local_blocks = SequenceMatcher(None, origin, local, autojunk=False).get_matching_blocks()
    upstream_blocks = SequenceMatcher(None, origin, upstream, autojunk=False).get_matching_blocks()
    aligned = []
    i = j = 0
    while i < len(local_blocks) and j < len(upstream_blocks):
        local_block, upstream_block = local_blocks[i], upstream_blocks[j]
        ends = local_block.a + local_block.size, upstream_block.a + upstream_block.size
        start, end = max(local_block.a, upstream_block.a), min(ends)
        if start < end:
            l_at, u_at = (
                local_block.b + start - local_block.a,
                upstream_block.b + start - upstream_block.a,
            )
            size = end - start
            aligned.append((start, end, l_at, l_at + size, u_at, u_at + size))
        if ends[0] < ends[1]:
            i += 1
        else:
            j += 1
    return [
        *aligned,
        (len(origin), len(origin), len(local), len(local), len(upstream), len(upstream)),
    ]


def merge_texts(
    origin: str, upstream: str, local: str, winner: MergeSide | None = None
) -> str | None:
    """Merge texts by lines; None if edits adjoin and there is no winner."""
    sides = upstream.splitlines(keepends=True), local.splitlines(keepends=True)
    runs = merge_sequences(origin.splitlines(keepends=True), *sides, winner)
    if runs is None:
        return None
    lines = [line for run in runs for line in sides[not run.is_upstream][run.start : run.end]]
    # A last line without its break may be followed by other lines now.
    return "".join(line if line.endswith("\n") or n == len(lines) - 1 else line + "\n"
                   for n, line in enumerate(lines))  # fmt: skip
