"""Patterns of Go's `filepath.Match`, all of which are matched in one pass over a path.

A regular expression tries a long pattern at each place of a name, one pattern after the other. Here
the state of all patterns is one integer, with a bit for each place in each pattern, so the time is
that of the path's length, whatever the patterns are; and a directory's state is where its entries
begin.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from operator import xor

WILDCARDS = frozenset("*?[")

_CodePoints = tuple[tuple[int, int], ...]  # ranges, both ends included
_SLASH = (ord("/"), ord("/"))
_CHARACTER = r"(?:\\.|[^]\\-])"
_RANGE = re.compile(rf"({_CHARACTER})(?:-({_CHARACTER}))?", re.DOTALL)
_CLASS = re.compile(rf"(\^?)((?:{_CHARACTER}(?:-{_CHARACTER})?)+)\]", re.DOTALL)


@dataclass(slots=True)
class WildcardPatterns:
    """Set of patterns, and the states of matching them.

    A state is an integer. `begin` and `enter` are the states of a directory, in which its entries
    begin; `read` is that of an entry, for `matches`. All patterns are added before the first state.
    """

    _size: int = 0  # bits
    _rooted: int = 0  # bits where a pattern begins that is compared with whole paths
    _floating: int = 0  # and where one begins that is compared with the last parts of paths
    _stars: int = 0  # bits where any characters within a name may follow
    _ends: int = 0  # bits where a pattern is matched
    _directory_ends: int = 0  # and where one is that is of directories alone
    # The bits of the characters that may stand there change at these code points.
    _changes: dict[int, int] = field(default_factory=dict)
    _limits: list[int] = field(default_factory=list)
    _masks: list[int] = field(default_factory=list)
    _mask_by_character: dict[str, int] = field(default_factory=dict)

    def add(self, pattern: str, *, is_rooted: bool, of_directories: bool) -> None:
        """Add a pattern, unless it is malformed: such a one matches nothing."""
        elements = _parse(pattern, is_rooted=is_rooted)
        if elements is None:
            return
        bit = 1 << self._size
        if is_rooted:
            self._rooted |= bit
        else:
            self._floating |= bit
        for element in elements:
            if element is None:
                self._stars |= bit
                continue
            bit <<= 1
            for low, high in element:
                for limit in (low, high + 1):
                    self._changes[limit] = self._changes.get(limit, 0) ^ bit
        if of_directories:
            self._directory_ends |= bit
        else:
            self._ends |= bit
        self._size = bit.bit_length()

    def begin(self) -> int:
        """Return the state of the directory that paths begin in."""
        self._limits = sorted({0, *self._changes})
        self._masks = list(accumulate((self._changes.get(it, 0) for it in self._limits), xor))
        return self._rooted | self._floating

    def read(self, state: int, name: str) -> int:
        """Return the state after an entry of the directory with this state."""
        for character in name:
            if not state:
                break
            # Each place moves on over the character, or stays at a star.
            state = ((state << 1) & self._find_mask(character)) | (state & self._stars)
        return state

    def enter(self, state: int) -> int:
        """Return the state in which entries of a directory begin; `state`: after its name."""
        return ((state << 1) & self._find_mask("/")) | self._floating

    def matches(self, state: int, *, is_directory: bool) -> bool:
        """Return whether a pattern matches the path; `state`: after its last name."""
        ends = self._ends | self._directory_ends if is_directory else self._ends
        return state & ends != 0

    def _find_mask(self, character: str) -> int:
        """Return the bits of the places that the character leads to."""
        mask = self._mask_by_character.get(character)
        if mask is None:
            mask = self._masks[bisect_right(self._limits, ord(character)) - 1]
            self._mask_by_character[character] = mask
        return mask


def _parse(pattern: str, *, is_rooted: bool) -> list[_CodePoints | None] | None:
    """Return what stands at each place, None for a star; None if the pattern is malformed."""
    elements: list[_CodePoints | None] = []
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            elements.append(None)
        elif character == "?":
            elements.append(_complement([_SLASH]))
        elif character == "[":
            parsed = _CLASS.match(pattern, at)
            # kpt counts the slashes of a pattern to know with how many names it is to be compared,
            # also those in classes, which then stand for none.
            if parsed is None or ("/" in parsed[2] and not is_rooted):
                return None
            ranges = [
                (low, high)
                for it in _RANGE.finditer(parsed[2])
                for low, high in [(ord(it[1][-1]), ord((it[2] or it[1])[-1]))]
                if low <= high
            ]
            others = ranges if parsed[1] else _complement(ranges)
            # Unlike other wildcards, a class may stand for a slash in what is compared with a whole
            # path.
            elements.append(_complement(others if is_rooted else [_SLASH, *others]))
            at = parsed.end()
        elif character == "\\":
            if at == len(pattern):
                return None
            elements.append(((ord(pattern[at]), ord(pattern[at])),))
            at += 1
        else:
            elements.append(((ord(character), ord(character)),))
    return elements


def _complement(ranges: Iterable[tuple[int, int]]) -> _CodePoints:
    """Return the code points in none of the ranges."""

    def find_gaps() -> Iterator[tuple[int, int]]:
        end = 0
        for low, high in sorted(ranges):
            if low > end:
                yield end, low - 1
            end = max(end, high + 1)
        if end <= sys.maxunicode:
            yield end, sys.maxunicode

    return tuple(find_gaps())
