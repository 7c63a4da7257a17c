"""Files that a package names in its `.krmignore`: bytes, of which no object is read.

kpt reads these files with a library whose patterns are not those of Git: a pattern with a slash
in its middle matches in every directory, `**` is `*`, and a pattern that begins with `!` wins
wherever it stands. Each Kptfile begins a package, which has a `.krmignore` of its own and is
ignored by no other.

Patterns are those of Go's `filepath.Match`, all of which are matched in one pass over a path. A
regular expression tries a long pattern at each place of a name, one pattern after the other. Here
the state of all patterns is one integer, with a bit for each place in each pattern, so the time is
that of the path's length, whatever the patterns are; and a directory's state is where its entries
begin.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from operator import xor

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.kptfile import KPTFILE
from fanout.values import Value

KRM_IGNORE = ".krmignore"
MAX_COMPARED = 10_000  # characters of the patterns of a file that are compared with each path


def find_ignored(files: Mapping[str, tuple[object, bytes]]) -> frozenset[str]:
    """Return the paths that are ignored; a Kptfile is none.

    `files`: of a package with its subpackages, each a pair with the content last. Raises
    InvalidInput for a file of too many patterns.
    """
    # Most packages have none.
    if not any(path.rpartition("/")[2] == KRM_IGNORE for path in files):
        return frozenset()
    paths = {path: path.split("/") for path in files}
    root = _Directory(is_package=True)
    for path, (*directories, name) in paths.items():
        if name in (KPTFILE, KRM_IGNORE):
            directory = root
            for part in directories:
                directory = directory.children.setdefault(part, _Directory())
            if name == KPTFILE:
                directory.is_package = True
            else:
                directory.rules = _read_rules(path, files[path][1])
    ignored = set()
    root_place = root.enter(None, "")
    for path, (*directories, name) in paths.items():
        directory, place = root, root_place
        for part in directories:
            directory = directory.children.setdefault(part, _Directory())
            place = directory.place or directory.enter(place, part)
        if name != KPTFILE and place.ignores(name, is_directory=False):
            ignored.add(path)
    return frozenset(ignored)


@dataclass(slots=True)
class _Directory:
    """Directory of a package or of a subpackage."""

    is_package: bool = False  # one begins in it
    rules: "_Rules | None" = None  # of the `.krmignore` in it
    children: dict[str, "_Directory"] = field(default_factory=dict)
    place: "_Place | None" = None  # None: not entered yet

    def enter(self, parent: "_Place | None", name: str) -> "_Place":
        """Return the place of the directory, whose name in its parent is given."""
        if parent is None or self.is_package:
            rules = self.rules or _Rules()
            self.place = _Place(rules, rules.ignored.begin(), rules.accepted.begin())
        else:
            self.place = parent.enter(name)
        return self.place


@dataclass(slots=True)
class _PathTree:
    """Paths without wildcards, name by name."""

    children: dict[str, "_PathTree"] = field(default_factory=dict)
    of_directories: bool | None = None  # None: no pattern ends here

    def add(self, names: Iterable[str], *, of_directories: bool) -> None:
        tree = self
        for name in names:
            tree = tree.children.setdefault(name, _PathTree())
        tree.of_directories = of_directories and tree.of_directories is not False

    def matches(self, *, is_directory: bool) -> bool:
        """Return whether a pattern for such an entry ends here."""
        return is_directory if self.of_directories else self.of_directories is False


_NO_PATHS = _PathTree()
_Progress = tuple[_PathTree, int]
"""Patterns below the path of a directory: a tree of plain ones, and a state of the others."""


class _Place(Value):
    """Directory as the patterns of its package see it."""

    rules: "_Rules"
    ignored: _Progress
    accepted: _Progress
    is_ignored: bool = False

    def enter(self, name: str) -> "_Place":
        """Return the place of a directory in this one."""
        return _Place(
            self.rules,
            self.rules.ignored.enter(self.ignored, name),
            self.rules.accepted.enter(self.accepted, name),
            is_ignored=self.ignores(name, is_directory=True),
        )

    def ignores(self, name: str, *, is_directory: bool) -> bool:
        """Return whether an entry of the directory is ignored."""
        # Nothing is read below a directory that is ignored.
        return self.is_ignored or (
            self.rules.ignored.match(self.ignored, name, is_directory=is_directory)
            and not self.rules.accepted.match(self.accepted, name, is_directory=is_directory)
        )


# ---- patterns with wildcards --------------------------------------------------------------------

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
        if (elements := _parse(pattern, is_rooted=is_rooted)) is None:
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
        if (mask := self._mask_by_character.get(character)) is None:
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


@dataclass(slots=True)
class _Patterns:
    """Patterns of one kind; names, and paths from the package, are looked up if they are plain."""

    names: _PathTree = field(default_factory=_PathTree)
    paths: _PathTree = field(default_factory=_PathTree)
    wildcards: WildcardPatterns = field(default_factory=WildcardPatterns)
    size: int = 0  # characters of those with wildcards

    def add(self, pattern: str) -> None:
        text, of_directories = pattern.strip("/"), pattern.endswith("/")
        is_rooted, is_plain = pattern.startswith("/"), WILDCARDS.isdisjoint(text)
        if not text:
            return
        if is_plain and is_rooted:
            self.paths.add(text.split("/"), of_directories=of_directories)
        elif is_plain and "/" not in text:
            self.names.add([text], of_directories=of_directories)
        else:
            self.size += len(text)
            escaped = text.replace("\\", r"\\") if is_plain else text
            if self.size <= MAX_COMPARED:  # more are refused
                self.wildcards.add(escaped, is_rooted=is_rooted, of_directories=of_directories)

    def begin(self) -> _Progress:
        return self.paths, self.wildcards.begin()

    def enter(self, progress: _Progress, name: str) -> _Progress:
        """Return the progress in a directory of the one with this progress."""
        paths, state = progress
        entered = self.wildcards.enter(self.wildcards.read(state, name))
        return paths.children.get(name, _NO_PATHS), entered

    def match(self, progress: _Progress, name: str, *, is_directory: bool) -> bool:
        """Return whether a pattern matches an entry of the directory with this progress."""
        paths, state = progress
        return (
            self.names.children.get(name, _NO_PATHS).matches(is_directory=is_directory)
            or paths.children.get(name, _NO_PATHS).matches(is_directory=is_directory)
            or self.wildcards.matches(self.wildcards.read(state, name), is_directory=is_directory)
        )


@dataclass(slots=True)
class _Rules:
    """Content of one `.krmignore`."""

    ignored: _Patterns = field(default_factory=_Patterns)
    accepted: _Patterns = field(default_factory=_Patterns)


def _read_rules(path: str, data: bytes) -> _Rules:
    rules = _Rules()
    for line in data.decode(errors="surrogateescape").split("\n"):
        pattern = line.removesuffix("\r").strip(" ")
        if pattern.startswith("!"):
            rules.accepted.add(pattern[1:])
        elif not pattern.startswith("#"):
            rules.ignored.add(pattern[1:] if pattern.startswith("\\#") else pattern)
    if rules.ignored.size + rules.accepted.size > MAX_COMPARED:
        raise InvalidInput(
            f"has more than {MAX_COMPARED:,} characters of patterns with wildcards, or with a "
            "slash in their middle alone",
            reason=Reason.LIMIT_EXCEEDED,
            remedy="name directories instead, or begin paths with a slash",
            where=ErrorLocation(file=path),
        )
    return rules
