"""One object as the difference to another (gitformat-pack(5)): what to copy, what to insert.

The drafts of one change differ from each other in a few lines. A difference costs less time than
compressing the whole: here, in the push and at the remote.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, compress, count
from operator import ne

_COPY_AT_MOST = 0xFFFFFF
_INSERT_AT_MOST = 0x7F
_COUNTS = (b"", *(bytes([count]) for count in range(1, _INSERT_AT_MOST + 1)))


class Sample:
    """An object that others are compared with: its lines, or a directory's rows."""

    __slots__ = ("_pieces", "_starts", "oid")

    def __init__(self, oid: bytes, pieces: Sequence[bytes]) -> None:
        self.oid = oid
        self._pieces = pieces
        self._starts = list(accumulate(map(len, pieces), initial=0))

    def instructions(self, pieces: Sequence[bytes]) -> list[bytes]:
        """How an object of these pieces is made of this one.

        Piece by piece where both have as many; else what they begin and end with alike is copied.
        """
        if len(pieces) != len(self._pieces):
            return self._around(pieces)
        found: list[bytes] = []
        starts = self._starts
        same = 0  # up to here it is the same
        for at in compress(count(), map(ne, self._pieces, pieces)):
            if same < at:
                found.append(copy(starts[same], starts[at] - starts[same]))
            found.append(insert(pieces[at]))
            same = at + 1
        found.append(copy(starts[same], starts[-1] - starts[same]))
        return found

    def _around(self, pieces: Sequence[bytes]) -> list[bytes]:
        old, most = self._pieces, min(len(self._pieces), len(pieces))
        head = next((at for at in range(most) if old[at] != pieces[at]), most)
        left = most - head
        tail = next((at for at in range(left) if old[-1 - at] != pieces[-1 - at]), left)
        middle = b"".join(pieces[head : len(pieces) - tail])
        behind = self._starts[len(old) - tail]
        last = copy(behind, self._starts[-1] - behind)
        return [copy(0, self._starts[head]), insert(middle), last]


def difference(base_size: int, size: int, instructions: Iterable[bytes]) -> bytes:
    """The whole difference as git reads it."""
    return _sizes(base_size, size) + b"".join(instructions)


def insert(data: bytes) -> bytes:
    """Instructions that yield new bytes."""
    size = len(data)
    if size <= _INSERT_AT_MOST:
        return _COUNTS[size] + data
    parts = (data[at : at + _INSERT_AT_MOST] for at in range(0, size, _INSERT_AT_MOST))
    return b"".join([_COUNTS[len(part)] + part for part in parts])


@lru_cache(maxsize=4096)
def copy(offset: int, length: int) -> bytes:
    """Instructions that yield bytes of the base: which bytes of both numbers follow, then those."""
    out = b""
    while length:
        now = min(length, _COPY_AT_MOST)
        numbers = [*offset.to_bytes(4, "little"), *now.to_bytes(3, "little")]
        flags = sum(1 << place for place, byte in enumerate(numbers) if byte)
        out += bytes([0x80 | flags, *(byte for byte in numbers if byte)])
        offset, length = offset + now, length - now
    return out


@lru_cache(maxsize=4096)
def _sizes(base_size: int, size: int) -> bytes:
    return _length(base_size) + _length(size)


def _length(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(0x80 | size & 0x7F)
        size >>= 7
    out.append(size)
    return bytes(out)
