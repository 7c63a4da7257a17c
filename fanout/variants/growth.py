"""Counts the bytes that a rendering adds to a package, while they are added.

A setter of a few kilobytes that stands in thousands of places makes gigabytes of a package that is
small itself. So every value is counted before it is put, and every text before it is put together.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from fanout.api.reasons import Reason
from fanout.package.limits import DEFAULT_SIZES, SizeLimits
from fanout.package.tree import Entry
from fanout.variants.functions.function import Comment, Path, Unfit

_REMEDY = "have it put less there, or raise packageLimits.{} in the FanoutConfiguration"
_ENTRY = 4  # bytes that an entry of a map or a list takes at least: a line break, signs, a key


class Growth:
    """Sizes of the files of one rendering: what they had, and what came in their objects.

    It is the `Room` that functions are given.
    """

    __slots__ = ("_added", "_files", "_limits", "_total")

    def __init__(
        self,
        limits: SizeLimits = DEFAULT_SIZES,
        files: Mapping[str, tuple[Entry, bytes]] | None = None,
        total: int = 0,
    ) -> None:
        """`files` are those that the rendering begins with, by path, and `total` is their size."""
        self._limits = limits
        self._files = files or {}
        self._added: dict[str, int] = {}
        self._total = total

    def copy(self) -> "Growth":
        """The same, to count further by itself."""
        made = Growth(self._limits, self._files, self._total)
        made._added = dict(self._added)
        return made

    def put(self, file: str, path: Path, before: object, after: object) -> None:
        """Count that a value takes the place of another one. Raises Unfit for the path."""
        if isinstance(before, str) and isinstance(after, str):  # as nearly all of them
            added = len(after) - len(before)
        else:
            most = self._limits.size
            added = size_of(after, most) - size_of(before, most)
        if not added:
            return
        self._total += added
        own = self._added[file] = self._added.get(file, 0) + added
        if added < 0:
            return
        if own > 0 and own + self._size(file) > self._limits.file_size:
            raise _grown(path, "the file", self._limits.file_size, "fileBytes")
        if self._total > self._limits.size:
            raise _grown(path, "the package", self._limits.size, "bytes")

    def substituted(
        self,
        pattern: re.Pattern[str],
        text: str,
        value: Callable[[re.Match[str]], str],
        path: Path,
    ) -> str:
        """The text with values in place of what the pattern matches.

        Raises Unfit for the path, before the text is put together, when no file has room for it.
        """
        pieces: list[str] = []
        end = size = 0
        for match in pattern.finditer(text):
            found = value(match)
            pieces += (text[end : match.start()], found)
            size += match.start() - end + len(found)
            end = match.end()
            if size > self._limits.file_size:
                raise _grown(path, "the value", self._limits.file_size, "fileBytes")
        pieces.append(text[end:])
        return "".join(pieces)

    def joined(self, separator: str, parts: Sequence[str], path: Path) -> str:
        """The parts with the separator between them. Raises Unfit as `substituted` does."""
        if sum(map(len, parts)) + len(separator) * len(parts) > self._limits.file_size:
            raise _grown(path, "the value", self._limits.file_size, "fileBytes")
        return separator.join(parts)

    def _size(self, file: str) -> int:
        known = self._files.get(file)
        return len(known[1]) if known is not None else 0


class Sizes(NamedTuple):
    """What may be in the files in which variants of one package differ."""

    limits: SizeLimits
    room: int  # bytes of all these files

    @classmethod
    def beside(
        cls, sizes: Mapping[str, int], varying: Collection[str], limits: SizeLimits
    ) -> "Sizes":
        """What files of these sizes leave to those that vary."""
        fixed = sum(size for path, size in sizes.items() if path not in varying)
        return cls(limits, limits.size - fixed)

    def holds(self, texts: Iterable[str]) -> bool:
        """May a file with these texts be put together? It can still turn out too large."""
        return sum(map(len, texts)) <= self.limits.file_size


def sizes_in(
    entries: Mapping[str, Entry],
    blobs: Mapping[str, bytes],
    files: Mapping[str, tuple[Entry, bytes]],
) -> dict[str, int]:
    """The sizes of a rendering's files: of the new ones (`blobs`) and of upstream's."""
    return {
        path: len(blobs[entry.oid] if entry.oid in blobs else files[path][1])
        for path, entry in entries.items()
    }


def size_of(value: object, most: int) -> int:
    """About as many bytes as the value takes in a file; what is beyond `most` is not counted.

    Values may share parts, and have more of them than could ever be counted.
    """
    size, waiting = 0, [value]
    while waiting and size <= most:
        item = waiting.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, Comment):
            size += len(item.text)
        elif isinstance(item, Mapping):
            size += sum(map(len, item)) + _ENTRY * len(item)
            waiting += item.values()
        elif isinstance(item, list):
            size += _ENTRY * len(item)
            waiting += item
    return size


def _grown(path: Path, what: str, most: int, limit: str) -> Unfit:
    problem = f"{what} would have more than {most:,} bytes"
    return Unfit(path, problem, _REMEDY.format(limit), Reason.LIMIT_EXCEEDED)
