"""Accounting of the bytes and values that a rendering adds to a package, while it adds them.

A setter of a few kilobytes in thousands of places makes gigabytes of a small package. Every value
is therefore counted before it is set, and every text before it is put together.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.package.field_edits import MISSING, REMOVE
from fanout.package.package_limits import DEFAULT_SIZES, SizeLimits
from fanout.package.tree_ids import TreeEntry
from fanout.variants.functions.function_interface import LineComment, Path, UnfitObject

_REMEDY = (
    "change the function so that it writes less, or raise packageLimits.{} in the"
    " FanoutConfiguration"
)
_ENTRY_BYTES = 4  # least bytes of an entry of a map or list: line break, signs, key


class SizeCounter:
    """Sizes of the files of one rendering: initial size plus the growth of their objects.

    It implements the `SizeLimiter` that functions get.
    """

    __slots__ = ("_added", "_files", "_limits", "_total", "_values")

    def __init__(
        self,
        limits: SizeLimits = DEFAULT_SIZES,
        files: Mapping[str, tuple[TreeEntry, bytes]] | None = None,
        total: int = 0,
        values: int = 0,
    ) -> None:
        """Start from `files`, the initial files by path.

        `total` is their size in bytes, `values` the number of their YAML values.
        """
        self._limits = limits
        self._files = files or {}
        self._added: dict[str, int] = {}
        self._total = total
        self._values = values

    def copy(self) -> "SizeCounter":
        """Return an independent counter with the same counts."""
        counter = SizeCounter(self._limits, self._files, self._total, self._values)
        counter._added = dict(self._added)
        return counter

    def count_change(self, file: str, path: Path, old_value: object, new_value: object) -> None:
        """Count that one value replaces another. Raises UnfitObject when a limit is exceeded."""
        # Characters, not bytes: encoding every text would cost more than the rest, and the exact
        # sizes are checked once the files are written.
        if isinstance(old_value, str) and isinstance(new_value, str):  # nearly all changes
            added = len(new_value) - len(old_value)
        else:
            max_bytes = self._limits.size
            added = estimate_size(new_value, max_bytes) - estimate_size(old_value, max_bytes)
            max_values = self._limits.values
            added_values = count_values(new_value, max_values) - count_values(old_value, max_values)
            self._values += added_values
            if added_values > 0 and self._values > max_values:
                problem = f"the package would have more than {max_values:,} YAML values"
                raise UnfitObject(path, problem, _REMEDY.format("values"), Reason.LIMIT_EXCEEDED)
        if not added:
            return
        self._total += added
        file_growth = self._added[file] = self._added.get(file, 0) + added
        if added < 0:
            return
        # A file that is not larger than upstream's cannot exceed the limit, which was checked when
        # the package was prepared.
        initial_size = len(self._files[file][1]) if file in self._files else 0
        if file_growth > 0 and file_growth + initial_size > self._limits.file_size:
            raise _limit_exceeded(path, "the file", self._limits.file_size, "fileBytes")
        if self._total > self._limits.size:
            raise _limit_exceeded(path, "the package", self._limits.size, "bytes")

    def substitute(
        self, pattern: re.Pattern[str], text: str, value: Callable[[re.Match[str]], str], path: Path
    ) -> str:
        """Return the text with every match of the pattern replaced by `value(match)`.

        Raises UnfitObject for the path, before the text is put together, when it would exceed
        the file limit.
        """
        pieces: list[str] = []
        end = size = 0
        # Not `pattern.sub`, which would put the text together before its size is known.
        for match in pattern.finditer(text):
            replacement = value(match)
            pieces += (text[end : match.start()], replacement)
            size += match.start() - end + len(replacement)
            end = match.end()
            if size > self._limits.file_size:
                raise _limit_exceeded(path, "the value", self._limits.file_size, "fileBytes")
        pieces.append(text[end:])
        return "".join(pieces)

    def join(self, separator: str, parts: Sequence[str], path: Path) -> str:
        """Return the parts joined by the separator. Raises UnfitObject like `substitute`."""
        if sum(map(len, parts)) + len(separator) * len(parts) > self._limits.file_size:
            raise _limit_exceeded(path, "the value", self._limits.file_size, "fileBytes")
        return separator.join(parts)


def compute_file_sizes(
    entries: Mapping[str, TreeEntry],
    blobs: Mapping[str, bytes],
    files: Mapping[str, tuple[TreeEntry, bytes]],
) -> dict[str, int]:
    """Return the size of each file in bytes by path, from new blobs and upstream's files."""
    return {
        path: len(blobs[entry.oid] if entry.oid in blobs else files[path][1])
        for path, entry in entries.items()
    }


def estimate_size(value: object, max_bytes: int) -> int:
    """Estimate the bytes that the value takes in a file, up to about `max_bytes`."""
    size, pending = 0, [value]
    # Bounded, because YAML aliases let a small document describe a value with more elements
    # than could ever be counted.
    while pending and size <= max_bytes:
        item = pending.pop()
        if isinstance(item, str):
            size += len(item)
        elif isinstance(item, LineComment):
            size += len(item.text)
        elif isinstance(item, Mapping):
            size += sum(map(len, item)) + _ENTRY_BYTES * len(item)
            pending += item.values()
        elif isinstance(item, list):
            size += _ENTRY_BYTES * len(item)
            pending += item
    return size


def count_values(value: object, max_values: int) -> int:
    """Count the YAML values in a value, itself included, up to about `max_values`."""
    if not isinstance(value, Mapping | list):
        is_value = value is not MISSING and value is not REMOVE
        return int(is_value and not isinstance(value, LineComment))
    count, pending = 1, [value]
    while pending and count <= max_values:
        item = pending.pop()
        count += len(item)
        children = item.values() if isinstance(item, Mapping) else item
        pending += [it for it in children if isinstance(it, Mapping | list)]
    return count


def _limit_exceeded(path: Path, subject: str, max_bytes: int, limit: str) -> UnfitObject:
    problem = f"{subject} would have more than {max_bytes:,} bytes"
    return UnfitObject(path, problem, _REMEDY.format(limit), Reason.LIMIT_EXCEEDED)
