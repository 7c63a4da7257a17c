"""Patterns of search-replace: paths of fields (`spec.**.image`) and of files (`**/prod-*.yaml`)."""

from collections.abc import Sequence
from typing import Final

from fanout.errors import InvalidInput
from fanout.variants.functions.function import Path
from fanout.variants.functions.regex import Regex

_SPECIAL: Final = frozenset(".+()|^$[]{}*?\\")


def elements(path: Path) -> list[str]:
    """A path's elements as search-replace counts them: `spec`, `containers[0]`, `image`.

    Dots in keys part elements too, as they do in the pattern.
    """
    found: list[str] = []
    for part in path:
        if isinstance(part, int):
            found[-1:] = [f"{found[-1] if found else ''}[{part}]"]
        else:
            found += part.split(".")
    return found


def fits(path: Sequence[str], pattern: Sequence[str]) -> bool:
    """Is it such a path? ``*`` is one element, ``**`` any number, ``a[*]`` any of a list."""
    ends = {0}  # how much of the pattern the elements so far can be
    ends = _skipped(ends, pattern)
    for element in path:
        after = set()
        for end in ends:
            if end < len(pattern):
                if pattern[end] == "**":
                    after.add(end)
                elif _is(element, pattern[end]):
                    after.add(end + 1)
        ends = _skipped(after, pattern)
        if not ends:
            return False
    return len(pattern) in ends


def _skipped(ends: set[int], pattern: Sequence[str]) -> set[int]:
    """With what is reached when ``**`` is nothing."""
    found = set(ends)
    for end, part in enumerate(pattern):
        if part == "**" and end in found:
            found.add(end + 1)
    return found


def _is(element: str, pattern: str) -> bool:
    if pattern in ("*", element):
        return True
    name, bracket, index = element.partition("[")
    wanted, _, place = pattern.partition("[")
    return bool(bracket and place) and wanted in ("*", name) and place in ("*]", index)


def is_literal(pattern: Sequence[str]) -> bool:
    """Does the pattern name one field, that could be made?"""
    return all(part and "*" not in part and "[" not in part for part in pattern)


def glob(text: str) -> Regex:
    """The expression for a pattern of file names. Raises InvalidInput."""
    out, at, depth = "", 0, 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "\\" and at < len(text):
            out += _literal(text[at])
            at += 1
        elif char == "*":
            piece, at = _stars(text, at)
            out += piece
        elif char == "?":
            out += "[^/]"
        elif char == "[":
            end = text.find("]", at + 2)
            if end < 0:
                raise InvalidInput(f"in {text!r} a [ is not closed", remedy="close it")
            inside = text[at:end]
            negated = inside[0] in "^!"
            out += f"[{'^/' if negated else ''}{inside[negated:]}]"
            at = end + 1
        elif char == "{":
            out += "(?:"
            depth += 1
        elif char == "}" and depth:
            out += ")"
            depth -= 1
        elif char == "," and depth:
            out += "|"
        else:
            out += _literal(char)
    if depth:
        raise InvalidInput(f"in {text!r} a {{ is not closed", remedy="close it")
    return Regex.of(out)


def _stars(text: str, at: int) -> tuple[str, int]:
    """``*`` stops at a slash; ``**`` does not where it is a whole element of the path."""
    alone = text[at : at + 1] == "*" and text[at - 2 : at - 1] in ("", "/")
    after = text[at + 1 : at + 2]
    if alone and after == "/":
        return "(?:.*/)?", at + 2
    if alone and not after:
        return ".*", at + 1
    while text[at : at + 1] == "*":
        at += 1
    return "[^/]*", at


def _literal(char: str) -> str:
    return f"\\{char}" if char in _SPECIAL else char
