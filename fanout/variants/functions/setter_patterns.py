"""Setter patterns: comments that name parts of values (`# kpt-set: nginx:${tag}`)."""

import re
from collections.abc import Iterator, Mapping

from fanout.variants.functions.function_interface import ObjectText, Path, SizeLimiter

SETTER_PREFIX = "kpt-set:"
_SETTER = re.compile(r"\$\{([^}]*)\}")


def find_setter_patterns(text: ObjectText) -> Iterator[tuple[Path, str]]:
    """Yield the patterns of an object, each with the path of its value."""
    for path, comment in text.comments().items():
        if comment.startswith(SETTER_PREFIX):
            pattern = comment[len(SETTER_PREFIX) :].strip()
            if pattern:
                yield path, pattern


def setter_names(pattern: str) -> tuple[str, ...]:
    """Return the names of the setters in a pattern, in order."""
    return tuple(_SETTER.findall(pattern))


def single_setter(pattern: str) -> str:
    """Return the setter that is the complete pattern, or "" for other patterns."""
    match = _SETTER.fullmatch(pattern)
    return match[1] if match else ""


def fill_pattern(
    pattern: str, values: Mapping[str, str], size_limiter: SizeLimiter, path: Path
) -> str:
    """Return the pattern with values for its setters. Raises UnfitObject if it gets too long."""
    return size_limiter.substitute(_SETTER, pattern, lambda match: values[match[1]], path)


def derive_values(pattern: str, text: str) -> dict[str, str]:
    """Return the values of the setters that make `text` from the pattern.

    Empty where there are none, or where a setter would be empty or have two values. Among
    several solutions the first setter is the longest possible, as in the catalog. Each
    separator is searched from the end, so the time is linear.
    """
    literals = _SETTER.split(pattern)[::2]
    keys = setter_names(pattern)
    prefix, suffix = literals[0], literals[-1]
    start, end = len(prefix), len(text) - len(suffix)
    if not keys or end < start or not text.startswith(prefix) or not text.endswith(suffix):
        return {}
    values: dict[str, str] = {}
    # A regular expression with a group per setter gives the same answer, but can backtrack far too
    # long on a text of the package that almost fits.
    for key, literal in zip(reversed(keys[1:]), reversed(literals[1:-1]), strict=True):
        position = text.rfind(literal, start, end)
        if position < 0 or not _add_value(values, key, text[position + len(literal) : end]):
            return {}
        end = position
    return values if _add_value(values, keys[0], text[start:end]) else {}


def _add_value(values: dict[str, str], key: str, value: str) -> bool:
    # A setter that occurs twice must have the same value in both places.
    return bool(value) and values.setdefault(key, value) == value
