"""Encoding of one object as a delta to another: copy and insert (gitformat-pack(5))."""

from collections.abc import Iterable
from functools import lru_cache

_MAX_COPY = 0xFFFFFF
_MAX_INSERT = 0x7F
_INSERT_HEADERS = (b"", *(bytes([count]) for count in range(1, _MAX_INSERT + 1)))


def encode_delta(base_size: int, size: int, instructions: Iterable[bytes]) -> bytes:
    """Encode a complete delta: both sizes in bytes, then the instructions."""
    return b"".join([_encode_size(base_size), _encode_size(size), *instructions])


def encode_insert(data: bytes) -> bytes:
    """Encode instructions that insert new bytes, at most 127 each."""
    size = len(data)
    if size <= _MAX_INSERT:
        return _INSERT_HEADERS[size] + data
    parts = (data[at : at + _MAX_INSERT] for at in range(0, size, _MAX_INSERT))
    return b"".join([_INSERT_HEADERS[len(part)] + part for part in parts])


@lru_cache(maxsize=4096)  # the objects of a change have most offsets in common
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


def _encode_size(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(0x80 | size & 0x7F)
        size >>= 7
    out.append(size)
    return bytes(out)
