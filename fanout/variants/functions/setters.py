"""Setters: names for parts of values, in comments (`image: nginx:1.21 # kpt-set: nginx:${tag}`)."""

import re
from collections.abc import Iterator, Mapping

from fanout.variants.functions.function import Path, Room, Written

MARK = "kpt-set:"
_SETTER = re.compile(r"\$\{([^}]*)\}")


def setter_comments(written: Written) -> Iterator[tuple[Path, str]]:
    """The patterns of an object: where their values are, and what is said behind the mark."""
    for path, comment in written.comments().items():
        if comment.startswith(MARK):
            pattern = comment[len(MARK) :].strip()
            if pattern:
                yield path, pattern


def names(pattern: str) -> tuple[str, ...]:
    """The setters of a pattern, in their order."""
    return tuple(_SETTER.findall(pattern))


def single(pattern: str) -> str:
    """The one setter that a pattern consists of; "" when it is more or something else."""
    match = _SETTER.fullmatch(pattern)
    return match[1] if match else ""


def filled(pattern: str, values: Mapping[str, str], room: Room, path: Path) -> str:
    """The pattern with values in the place of its setters. Raises Unfit where it grows too long."""
    return room.substituted(_SETTER, pattern, lambda match: values[match[1]], path)


def derived(pattern: str, text: str) -> dict[str, str]:
    """The setters' present values: what must have been put in to make the text of the pattern.

    Nothing where that cannot be, or where one would be empty or have two values. Of several
    readings it is the one in which the first setter is longest, as it is in the catalog. Each
    separator is looked for from the end, so the time is linear.
    """
    literals = _SETTER.split(pattern)[::2]
    keys = names(pattern)
    first, last = literals[0], literals[-1]
    start, end = len(first), len(text) - len(last)
    if not keys or end < start or not text.startswith(first) or not text.endswith(last):
        return {}
    found: dict[str, str] = {}
    for key, literal in zip(reversed(keys[1:]), reversed(literals[1:-1]), strict=True):
        at = text.rfind(literal, start, end)
        if at < 0 or not _agrees(found, key, text[at + len(literal) : end]):
            return {}
        end = at
    return found if _agrees(found, keys[0], text[start:end]) else {}


def _agrees(found: dict[str, str], key: str, value: str) -> bool:
    return bool(value) and found.setdefault(key, value) == value
