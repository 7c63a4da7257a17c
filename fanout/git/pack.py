"""Writes objects into a mirror in process: one pack and its index, as git lays them out.

What a change writes is known before it is written; starting a git process for it would cost more
than the work. What is small, differences above all, is stored without compressing it: that would
take as long as everything else that is done for an object, and save a few bytes.
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

from fanout.errors import LimitExceeded
from fanout.git.delta import difference

COMMIT, TREE, BLOB = 1, 2, 3
LARGEST = 1 << 31  # above it the index needs another table of offsets
_OFS_DELTA = 6
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_LONGEST_CHAIN = 50  # git's own limit; readers apply the whole chain
_SMALL = 160  # bytes; below, compressing saves next to nothing
_SMALL_DIFFERENCE = 512  # the most of one is ids, which cannot be compressed
_LONG = 1 << 16
_CHUNK = 1 << 20
_STORED = struct.Struct("<3sHH")
_LAST = [bytes([byte]) for byte in range(0x80)]


class PackTooLargeError(LimitExceeded):
    """More than one pack of this writer can hold; nothing of it is in the mirror."""


class PackWriter:
    """Collects objects; `finish` makes all of them visible at once. Not for several threads."""

    def __init__(self, mirror: Path, largest: int = LARGEST) -> None:
        """`largest` is the size in bytes that no pack reaches."""
        self._directory = mirror / "objects" / "pack"
        self._largest = largest
        self._size = 12
        self._pieces: list[bytes] = []
        self._rows: dict[bytes, tuple[int, int, int]] = {}  # id → offset, checksum, object's size
        self._depths: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, oid: object) -> bool:
        return oid in self._rows

    def add(self, kind: int, data: bytes, oid: bytes = b"") -> bytes:
        """Take an object; answers its id, which may be given where it was computed before."""
        oid = oid or object_id(kind, data)
        if oid not in self._rows:
            packed = _stored(data) if len(data) <= _SMALL else _compressed(data)
            self._append(oid, len(data), _head(kind, len(data)) + packed)
        return oid

    def add_like(
        self, kind: int, data: bytes, base: bytes, instructions: Sequence[bytes], oid: bytes = b""
    ) -> bytes:
        """Take an object that is made of the object `base` by `instructions` (`fanout.git.delta`).

        It is stored whole where that is shorter, or where the base is not in this pack: packs hold
        themselves what they refer to.
        """
        oid = oid or object_id(kind, data)
        if oid in self._rows:
            return oid
        depth = self._depths.get(base, 0) + 1
        there = self._rows.get(base)
        if there is None or depth > _LONGEST_CHAIN:
            return self.add(kind, data, oid)
        offset, _, base_size = there
        delta = difference(base_size, len(data), instructions)
        size = len(delta)
        if size > len(data) * 3 // 4:
            return self.add(kind, data, oid)
        packed = _stored(delta) if size <= _SMALL_DIFFERENCE else _compressed(delta)
        head, distance = _head(_OFS_DELTA, size), _distance(self._size - offset)
        self._append(oid, len(data), b"%b%b%b" % (head, distance, packed))
        self._depths[oid] = depth
        return oid

    def _append(self, oid: bytes, size: int, piece: bytes) -> None:
        end = self._size + len(piece)
        if end >= self._largest:
            raise PackTooLargeError(
                f"what is to be written takes more than {self._largest} bytes",
                reason="PackTooLarge",
                remedy="spread the packages over more repositories",
            )
        self._rows[oid] = (self._size, zlib.crc32(piece), size)
        self._pieces.append(piece)
        self._size = end

    def finish(self) -> int:
        """Write the pack, then the index that makes it visible; answers the number of objects."""
        if not self._rows:
            return 0
        temporary = self._directory / f"tmp_pack_{os.getpid()}"
        try:
            checksum = self._write(temporary)
            name = f"pack-{checksum.hex()}"
            _place(temporary, self._directory / f"{name}.pack")
            temporary.write_bytes(self._index(checksum))
            _place(temporary, self._directory / f"{name}.idx")
        finally:
            temporary.unlink(missing_ok=True)
        return len(self._rows)

    def _write(self, path: Path) -> bytes:
        digest = hashlib.sha1(usedforsecurity=False)
        with path.open("wb") as file:
            for chunk in self._chunks():
                digest.update(chunk)
                file.write(chunk)
            file.write(digest.digest())
        return digest.digest()

    def _chunks(self) -> Iterator[bytes]:
        """The pack without its end. Joined by the megabyte, so that it is not there twice."""
        chunk = [struct.pack(">4sII", b"PACK", 2, len(self._rows))]
        size = 0
        for piece in self._pieces:
            chunk.append(piece)
            size += len(piece)
            if size > _CHUNK:
                yield b"".join(chunk)
                chunk, size = [], 0
        yield b"".join(chunk)

    def _index(self, checksum: bytes) -> bytes:
        """The index of version 2 (gitformat-pack(5))."""
        oids = sorted(self._rows)
        offsets, checksums, _ = zip(*[self._rows[oid] for oid in oids], strict=True)
        upto = [0] * 256
        for oid in oids:
            upto[oid[0]] += 1
        content = b"".join(
            [
                b"\xfftOc",
                struct.pack(">257I", 2, *accumulate(upto)),
                *oids,
                struct.pack(f">{len(oids)}I", *checksums),
                struct.pack(f">{len(oids)}I", *offsets),
                checksum,
            ]
        )
        return content + hashlib.sha1(content, usedforsecurity=False).digest()


def object_id(kind: int, data: bytes) -> bytes:
    """The id git gives to a commit, tree or blob of this content."""
    head = b"%b %d\0" % (_NAMES[kind], len(data))
    return hashlib.sha1(head + data, usedforsecurity=False).digest()


def _place(temporary: Path, path: Path) -> None:
    temporary.chmod(0o444)
    temporary.replace(path)


def _compressed(content: bytes) -> bytes:
    """A zlib stream with a window of 8 KiB where that is enough.

    The state of the widest one is so large that memory is taken from the system and given back for
    each object: 50 us, ten times what there is to do.
    """
    if len(content) > _LONG:
        return zlib.compress(content, 1)
    stream = zlib.compressobj(1, zlib.DEFLATED, wbits=13, memLevel=5)
    return stream.compress(content) + stream.flush()


def _stored(content: bytes) -> bytes:
    """A zlib stream of one block that is not compressed (RFC 1950, RFC 1951 §3.2.4)."""
    size = len(content)
    head = _STORED.pack(b"\x78\x01\x01", size, size ^ 0xFFFF)
    return head + content + zlib.adler32(content).to_bytes(4, "big")


@lru_cache(maxsize=4096)
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
    return _far(back >> 7) + _LAST[back & 0x7F]


@lru_cache(maxsize=1 << 16)
def _far(back: int) -> bytes:
    """All bytes but the last."""
    out: list[int] = []
    while back:
        back -= 1
        out.append(0x80 | back & 0x7F)
        back >>= 7
    return bytes(reversed(out))
