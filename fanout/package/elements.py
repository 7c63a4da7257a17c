"""Which elements of a changed list are which, where no schema names merge keys."""

import json
from collections import Counter, deque
from difflib import SequenceMatcher
from typing import Any, Final

# Pairs of equal elements that alignment may have to look at; it is quadratic where they repeat.
_MOST_PAIRS: Final = 2_000_000


def origins(before: list[Any], after: list[Any]) -> list[int | None]:
    """For each element of the later list its place in the earlier one, if it comes from there.

    By `name` where all elements have one of their own; else by content, and what is left between
    the same neighbours by its order.
    """
    known, wanted = _names(before), _names(after)
    if known and wanted:
        return [known.get(name) for name in wanted]
    return _by_content(before, after)


def _names(elements: list[Any]) -> dict[str, int]:
    """The places of the elements by their names; empty where one has none of its own."""
    found: dict[str, int] = {}
    for number, element in enumerate(elements):
        name = element.get("name") if isinstance(element, dict) else None
        if not isinstance(name, str) or name in found:
            return {}
        found[name] = number
    return found


def _by_content(before: list[Any], after: list[Any]) -> list[int | None]:
    first, second = ([json.dumps(it, sort_keys=True) for it in side] for side in (before, after))
    found: list[int | None] = [None] * len(after)
    gaps: list[tuple[range, range]] = []  # what stands between the same neighbours
    i = j = 0
    for a, b, size in _blocks(first, second):
        gaps.append((range(i, a), range(j, b)))
        for step in range(size):
            found[b + step] = a + step
        i, j = a + size, b + size
    _match_moved(first, second, found)
    taken = set(found)
    for there, here in gaps:
        left = (number for number in there if number not in taken)
        for number, origin in zip((n for n in here if found[n] is None), left, strict=False):
            found[number] = origin
    return found


def _match_moved(first: list[str], second: list[str], found: list[int | None]) -> None:
    """Find equal elements that stand in another order."""
    taken = set(found)
    elsewhere: dict[str, deque[int]] = {}
    for number, text in enumerate(first):
        if number not in taken:
            elsewhere.setdefault(text, deque()).append(number)
    for number, text in enumerate(second):
        if found[number] is None and elsewhere.get(text):
            found[number] = elsewhere[text].popleft()


def _blocks(first: list[str], second: list[str]) -> list[tuple[int, int, int]]:
    """Stretches that both have in the same order, the empty one at the end included."""
    counts = Counter(first)
    if sum(counts[text] for text in second) > _MOST_PAIRS:
        return [(len(first), len(second), 0)]
    # no junk: elements that are there often must not be left unaligned
    return list(SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks())
