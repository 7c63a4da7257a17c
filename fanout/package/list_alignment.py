"""Matching of the elements of two versions of a list without merge keys."""

import json
from collections import Counter, deque
from difflib import SequenceMatcher
from typing import Any, Final

# Pairs of equal elements that alignment may have to look at; it is quadratic where they repeat.
_MAX_PAIRS: Final = 2_000_000


def match_elements(before: list[Any], after: list[Any]) -> list[int | None]:
    """Return the earlier index of each element of the later list, None for new ones.

    Elements are matched by `name` if every one has a unique name; else by content, and the
    rest between equal neighbors in their order.
    """
    names_before, names_after = _unique_names(before), _unique_names(after)
    if names_before and names_after:
        return [names_before.get(name) for name in names_after]
    return _match_by_content(before, after)


def _unique_names(elements: list[Any]) -> dict[str, int]:
    """Return the indices of the elements by name; {} if some element has no unique name."""
    positions: dict[str, int] = {}
    for number, element in enumerate(elements):
        name = element.get("name") if isinstance(element, dict) else None
        if not isinstance(name, str) or name in positions:
            return {}
        positions[name] = number
    return positions


def _match_by_content(before: list[Any], after: list[Any]) -> list[int | None]:
    first, second = ([json.dumps(it, sort_keys=True) for it in side] for side in (before, after))
    matches: list[int | None] = [None] * len(after)
    gaps: list[tuple[range, range]] = []  # what stands between the same neighbours
    i = j = 0
    for a, b, size in _equal_blocks(first, second):
        gaps.append((range(i, a), range(j, b)))
        for step in range(size):
            matches[b + step] = a + step
        i, j = a + size, b + size
    _match_moved(first, second, matches)
    matched = set(matches)
    for range_before, range_after in gaps:
        unmatched = (number for number in range_before if number not in matched)
        for number, origin in zip(
            (n for n in range_after if matches[n] is None), unmatched, strict=False
        ):
            matches[number] = origin
    return matches


def _match_moved(first: list[str], second: list[str], matches: list[int | None]) -> None:
    """Match equal elements that stand in another order; adds to `matches`."""
    matched = set(matches)
    unmatched: dict[str, deque[int]] = {}
    for number, text in enumerate(first):
        if number not in matched:
            unmatched.setdefault(text, deque()).append(number)
    for number, text in enumerate(second):
        if matches[number] is None and unmatched.get(text):
            matches[number] = unmatched[text].popleft()


def _equal_blocks(first: list[str], second: list[str]) -> list[tuple[int, int, int]]:
    """Return the common runs (index before, index after, length), in order.

    The empty run at the end is included.
    """
    counts = Counter(first)
    if sum(counts[text] for text in second) > _MAX_PAIRS:
        return [(len(first), len(second), 0)]
    # Without junk: elements that occur often must not be left unaligned.
    return list(SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
