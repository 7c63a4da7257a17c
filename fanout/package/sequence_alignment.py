"""Alignment of sequences of texts: which ranges are equal, in bounded time."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Final

# Pairs of equal elements times elements, beyond which a stretch is cut first: comparing all of it
# is quadratic in its length, and cubic where elements repeat.
_MIN_STEPS: Final = 1_000_000
_STEPS_PER_ELEMENT: Final = 500  # of all stretches together
_MAX_CUTS: Final = 32  # inside each other; each looks at every element once


def common_prefix_length(*sides: Sequence[str]) -> int:
    """Return how many elements all sequences begin with."""
    rows = zip(*sides, strict=False)
    return sum(1 for _ in takewhile(lambda row: row.count(row[0]) == len(row), rows))


def equal_blocks(left: Sequence[str], right: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return the aligned ranges of equal elements, in order, and the empty one at the end.

    Long sequences are cut at elements that both have once (patience), and only what is
    between them is compared with all its elements. What would exceed the budget stays
    unaligned, so the steps grow with n log n.
    """
    budget = _MIN_STEPS + _STEPS_PER_ELEMENT * (len(left) + len(right))
    blocks: list[tuple[int, int, int]] = []
    pending = [(0, len(left), 0, len(right), _MAX_CUTS)]
    while pending:
        l_at, l_end, r_at, r_end, cuts = pending.pop()
        if size := common_prefix_length(left[l_at:l_end], right[r_at:r_end]):
            blocks.append((l_at, r_at, size))
            l_at, r_at = l_at + size, r_at + size
        if size := common_prefix_length(left[l_at:l_end][::-1], right[r_at:r_end][::-1]):
            l_end, r_end = l_end - size, r_end - size
            blocks.append((l_end, r_end, size))
        left_counts, right_counts = Counter(left[l_at:l_end]), Counter(right[r_at:r_end])
        pairs = sum(count * right_counts[element] for element, count in left_counts.items())
        if not pairs:
            continue
        steps = pairs * min(l_end - l_at, r_end - r_at)
        if steps <= min(_MIN_STEPS, budget):
            budget -= steps
            # Without junk: frequent lines (`}`, blank ones) must not be left unaligned.
            matcher = SequenceMatcher(None, left[l_at:l_end], right[r_at:r_end], autojunk=False)
            blocks += [(a + l_at, b + r_at, n) for a, b, n in matcher.get_matching_blocks() if n]
            continue
        anchors = _find_anchors(left, right, (l_at, l_end, r_at, r_end), left_counts, right_counts)
        if not anchors or not cuts:
            continue
        blocks += [(l_anchor, r_anchor, 1) for l_anchor, r_anchor in anchors]
        for l_next, r_next in [*anchors, (l_end, r_end)]:
            pending.append((l_at, l_next, r_at, r_next, cuts - 1))
            l_at, r_at = l_next + 1, r_next + 1
    return [*sorted(blocks), (len(left), len(right), 0)]


def _find_anchors(
    left: Sequence[str],
    right: Sequence[str],
    ranges: tuple[int, int, int, int],
    left_counts: Mapping[str, int],
    right_counts: Mapping[str, int],
) -> list[tuple[int, int]]:
    """Return the longest rising sequence of positions of elements that both ranges have once."""
    l_at, l_end, r_at, r_end = ranges
    positions = {right[at]: at for at in range(r_at, r_end) if right_counts[right[at]] == 1}
    last_positions: list[int] = []  # on the right, of the best sequence of each length
    ends: list[int] = []  # and their numbers in `steps`
    steps: list[tuple[int, int, int]] = []  # positions, and the number of the step before
    for at in range(l_at, l_end):
        if (position := positions.get(left[at], -1)) < 0 or left_counts[left[at]] != 1:
            continue
        length = bisect_left(last_positions, position)
        steps.append((at, position, ends[length - 1] if length else -1))
        last_positions[length : length + 1] = [position]
        ends[length : length + 1] = [len(steps) - 1]
    anchors: list[tuple[int, int]] = []
    number = ends[-1] if ends else -1
    while number >= 0:
        l_anchor, r_anchor, number = steps[number]
        anchors.append((l_anchor, r_anchor))
    return anchors[::-1]
