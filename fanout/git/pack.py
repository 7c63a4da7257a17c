"""Writes objects into a mirror in process: one pack and its index, as git lays them out.

A publication has only trees and commits, and they are known before they are written; starting a git
process for them would cost more than the work. A directory with thousands of packages changes in a
few rows from commit to commit, so a tree is stored as the difference to the one before.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path

from fanout.errors import LimitExceeded

COMMIT, TREE = 1, 2
_OFS_DELTA = 6
_NAMES = {COMMIT: b"commit", TREE: b"tree"}
_LONGEST_CHAIN = 50  # git's own limit; readers apply the whole chain
_LARGEST = 1 << 31  # above it the index needs another table of offsets
_COPY_AT_MOST = 0xFFFFFF
_INSERT_AT_MOST = 0x7F

Splice = tuple[int, int] | bytes
"""A piece of a new object: offset and length of bytes to copy from the old one, or new bytes."""


class PackWriter:
    """Collects objects; `finish` makes all of them visible at once. Not for several threads."""

    def __init__(self, mirror: Path) -> None:
        self._directory = mirror / "objects" / "pack"
        self._size = 12
        self._pieces: list[bytes] = []
        self._rows: dict[bytes, tuple[int, int]] = {}  # id → offset, checksum
        self._depths: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, kind: int, data: bytes) -> bytes:
        """Take an object; answers its id."""
        oid = object_id(kind, data)
        if oid not in self._rows:
            self._append(oid, _head(kind, len(data)), data)
        return oid

    def add_tree(
        self, data: bytes, base: bytes, base_size: int, splices: Sequence[Splice]
    ) -> bytes:
        """Take a tree of which the pieces in the tree `base` are known."""
        oid = object_id(TREE, data)
        depth = self._depths.get(base, 0) + 1
        if oid in self._rows or base not in self._rows or depth > _LONGEST_CHAIN:
            return self.add(TREE, data)
        delta = _delta(base_size, len(data), splices)
        if len(delta) * 2 > len(data):
            return self.add(TREE, data)
        head = _head(_OFS_DELTA, len(delta)) + _distance(self._size - self._rows[base][0])
        self._append(oid, head, delta)
        self._depths[oid] = depth
        return oid

    def _append(self, oid: bytes, head: bytes, content: bytes) -> None:
        piece = head + zlib.compress(content, 1)
        if self._size + len(piece) >= _LARGEST:
            raise LimitExceeded(
                "the directories of one publication take more than 2 GiB",
                reason="PackTooLarge",
                remedy="spread the packages over more directories or repositories",
            )
        self._rows[oid] = (self._size, zlib.crc32(piece))
        self._pieces.append(piece)
        self._size += len(piece)

    def finish(self) -> int:
        """Write the pack, then the index that makes it visible; answers the number of objects."""
        if not self._rows:
            return 0
        body = b"".join([struct.pack(">4sII", b"PACK", 2, len(self._rows)), *self._pieces])
        checksum = hashlib.sha1(body, usedforsecurity=False).digest()
        name = f"pack-{checksum.hex()}"
        self._put(f"{name}.pack", body + checksum)
        self._put(f"{name}.idx", self._index(checksum))
        return len(self._rows)

    def _put(self, name: str, content: bytes) -> None:
        temporary = self._directory / f"tmp_{name}-{os.getpid()}"
        temporary.write_bytes(content)
        temporary.chmod(0o444)
        temporary.replace(self._directory / name)

    def _index(self, checksum: bytes) -> bytes:
        """The index of version 2 (gitformat-pack(5))."""
        oids = sorted(self._rows)
        upto = [0] * 256
        for oid in oids:
            upto[oid[0]] += 1
        for first in range(1, 256):
            upto[first] += upto[first - 1]
        content = b"".join(
            [
                b"\xfftOc",
                struct.pack(">257I", 2, *upto),
                *oids,
                struct.pack(f">{len(oids)}I", *(self._rows[oid][1] for oid in oids)),
                struct.pack(f">{len(oids)}I", *(self._rows[oid][0] for oid in oids)),
                checksum,
            ]
        )
        return content + hashlib.sha1(content, usedforsecurity=False).digest()


def object_id(kind: int, data: bytes) -> bytes:
    """The id git gives to a commit or tree of this content."""
    head = b"%s %d\0" % (_NAMES[kind], len(data))
    digest = hashlib.sha1(head, usedforsecurity=False)
    digest.update(data)
    return digest.digest()


def _head(kind: int, size: int) -> bytes:
    """Kind and size of a pack entry: 4 bits of the size, then 7 in each byte."""
    out = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def _distance(back: int) -> bytes:
    """How far back the base begins; each further byte counts from one more than it could say."""
    out = [back & 0x7F]
    while back := back >> 7:
        back -= 1
        out.append(0x80 | back & 0x7F)
    return bytes(reversed(out))


def _delta(base_size: int, size: int, splices: Sequence[Splice]) -> bytes:
    out = [_length(base_size), _length(size)]
    for splice in splices:
        if isinstance(splice, bytes):
            for start in range(0, len(splice), _INSERT_AT_MOST):
                part = splice[start : start + _INSERT_AT_MOST]
                out.append(bytes([len(part)]) + part)
        else:
            offset, left = splice
            while left:
                count = min(left, _COPY_AT_MOST)
                out.append(_copy(offset, count))
                offset, left = offset + count, left - count
    return b"".join(out)


def _copy(offset: int, count: int) -> bytes:
    """One instruction: which of the bytes of offset and length follow, then those bytes."""
    numbers = [*offset.to_bytes(4, "little"), *count.to_bytes(3, "little")]
    flags = sum(1 << place for place, byte in enumerate(numbers) if byte)
    return bytes([0x80 | flags, *(byte for byte in numbers if byte)])


def _length(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(0x80 | size & 0x7F)
        size >>= 7
    out.append(size)
    return bytes(out)
