"""Encoding of one object as a delta to another (gitformat-pack(5)): copy and insert.

The drafts of one change differ in a few lines. A delta costs less time than compressing
the full object: when it is written, in the push, and at the remote.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import accumulate, compress, count
from operator import ne

_MAX_COPY = 0xFFFFFF
_MAX_INSERT = 0x7F
_INSERT_HEADERS = (b"", *(bytes([count]) for count in range(1, _MAX_INSERT + 1)))


class DeltaBase:
    """Delta base: an object, cut into the lines of a file or the rows of a directory."""

    __slots__ = ("_pieces", "_starts", "oid")

    def __init__(self, oid: bytes, pieces: Sequence[bytes]) -> None:
        self.oid = oid
        self._pieces = pieces
        self._starts = list(accumulate(map(len, pieces), initial=0))

    def compute_instructions(self, pieces: Sequence[bytes]) -> list[bytes]:
        """Compute the instructions that build an object of these pieces from this base.

        With equal numbers of pieces they are compared one by one; else only the common prefix
        and the common suffix are copied, and everything between is inserted.
        """
        if len(pieces) != len(self._pieces):
            return self._compute_around_middle(pieces)
        instructions: list[bytes] = []
        starts = self._starts
        copied_until = 0  # bytes of the base that the instructions cover
        # The comparison runs in C for all pieces; Python code runs only for those that differ.
        for index in compress(count(), map(ne, self._pieces, pieces)):
            if copied_until < index:
                instructions.append(
                    encode_copy(starts[copied_until], starts[index] - starts[copied_until])
                )
            instructions.append(encode_insert(pieces[index]))
            copied_until = index + 1
        instructions.append(encode_copy(starts[copied_until], starts[-1] - starts[copied_until]))
        return instructions

    def _compute_around_middle(self, pieces: Sequence[bytes]) -> list[bytes]:
        base_pieces, shorter = self._pieces, min(len(self._pieces), len(pieces))
        head = next((at for at in range(shorter) if base_pieces[at] != pieces[at]), shorter)
        remaining = shorter - head
        tail = next(
            (at for at in range(remaining) if base_pieces[-1 - at] != pieces[-1 - at]), remaining
        )
        middle = b"".join(pieces[head : len(pieces) - tail])
        tail_start = self._starts[len(base_pieces) - tail]
        copy_tail = encode_copy(tail_start, self._starts[-1] - tail_start)
        return [encode_copy(0, self._starts[head]), encode_insert(middle), copy_tail]


def encode_delta(base_size: int, size: int, instructions: Iterable[bytes]) -> bytes:
    """Encode a complete delta: both sizes in bytes, then the instructions."""
    return _encode_sizes(base_size, size) + b"".join(instructions)


def encode_insert(data: bytes) -> bytes:
    """Encode instructions that insert new bytes, at most 127 each."""
    size = len(data)
    if size <= _MAX_INSERT:
        return _INSERT_HEADERS[size] + data
    parts = (data[at : at + _MAX_INSERT] for at in range(0, size, _MAX_INSERT))
    return b"".join([_INSERT_HEADERS[len(part)] + part for part in parts])


@lru_cache(maxsize=4096)
def encode_copy(offset: int, length: int) -> bytes:
    """Encode instructions that copy `length` bytes of the base, beginning at `offset`.

    The flag byte names the bytes of offset and length that follow; zero bytes are left out.
    """
    out = b""
    while length:
        part = min(length, _MAX_COPY)
        argument_bytes = [*offset.to_bytes(4, "little"), *part.to_bytes(3, "little")]
        flags = sum(1 << bit for bit, byte in enumerate(argument_bytes) if byte)
        out += bytes([0x80 | flags, *(byte for byte in argument_bytes if byte)])
        offset, length = offset + part, length - part
    return out


@lru_cache(maxsize=4096)
def _encode_sizes(base_size: int, size: int) -> bytes:
    return _encode_size(base_size) + _encode_size(size)


def _encode_size(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(0x80 | size & 0x7F)
        size >>= 7
    out.append(size)
    return bytes(out)
