"""Writer of one pack and its index in a mirror, without a git process.

The objects of a change are known before they are written, and starting a git process
for them would cost more than the work. Small objects, deltas above all, are stored
without compression: compressing them takes as long as everything else and saves a few
bytes. Formats: gitformat-pack(5).
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from pathlib import Path

COMMIT, TREE, BLOB = 1, 2, 3
LARGE_OFFSET = 1 << 31  # from here on an offset is in the index's table of 64-bit offsets
_IS_LARGE = 1 << 31  # the highest bit of a 32-bit entry, which no small offset has
_OFS_DELTA = 6
_TYPE_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}
_MAX_DELTA_DEPTH = 50  # git's default (pack.depth)
_UNCOMPRESSED_OBJECT = 160  # bytes; below, compressing saves next to nothing
_UNCOMPRESSED_DELTA = 512  # bytes; small deltas consist mostly of ids, which do not compress
_SMALL_WINDOW_LIMIT = 1 << 16
_CHUNK = 1 << 20
_STORED_BLOCK_HEADER = struct.Struct("<3sHH")
_MAX_COPY = 0xFFFFFF
_MAX_INSERT = 0x7F
_INSERT_HEADERS = (b"", *(bytes([count]) for count in range(1, _MAX_INSERT + 1)))


class PackWriter:
    """Collector of the objects of one pack. Not thread-safe.

    No object is visible in the mirror before `finish`, which makes all of them visible.
    """

    def __init__(self, mirror: Path, large_offset: int = LARGE_OFFSET) -> None:
        """Prepare a pack for the bare repository `mirror`.

        Offsets in bytes of at least `large_offset` are written with 64 bits.
        """
        self._directory = mirror / "objects" / "pack"
        self._large_offset = large_offset
        self._size = 12
        self._pieces: list[bytes] = []
        # id → offset, checksum, object's size
        self._entries: dict[bytes, tuple[int, int, int]] = {}
        self._depths: dict[bytes, int] = {}

    def __contains__(self, oid: object) -> bool:
        return oid in self._entries

    def add(self, kind: int, data: bytes, oid: bytes = b"") -> bytes:
        """Add an object and return its id (20 bytes).

        `kind` is COMMIT, TREE or BLOB; `oid` is the id if the caller has computed it already.
        """
        oid = oid or compute_object_id(kind, data)
        if oid not in self._entries:
            packed = (
                _store_uncompressed(data) if len(data) <= _UNCOMPRESSED_OBJECT else _compress(data)
            )
            self._append(oid, len(data), _entry_header(kind, len(data)) + packed)
        return oid

    def add_delta(
        self, kind: int, data: bytes, base: bytes, instructions: Sequence[bytes], oid: bytes = b""
    ) -> bytes:
        """Add an object as a delta to the object `base` and return its id (20 bytes).

        `instructions` build `data` from the base (`encode_copy`, `encode_insert`). The full object
        is stored if the delta is hardly shorter, or if the base is not in this pack: a pack must
        contain the bases of its own deltas.
        """
        oid = oid or compute_object_id(kind, data)
        if oid in self._entries:
            return oid
        depth = self._depths.get(base, 0) + 1
        base_entry = self._entries.get(base)
        # A base outside this pack would make it a thin pack, which git refuses on disk. Readers
        # apply the whole chain of deltas for each object, hence git's default limit of the depth.
        if base_entry is None or depth > _MAX_DELTA_DEPTH:
            return self.add(kind, data, oid)
        offset, _, base_size = base_entry
        delta = encode_delta(base_size, len(data), instructions)
        delta_size = len(delta)
        # The full object would be compressed, so a delta of nearly its size saves nothing and
        # lengthens the chain that readers must apply.
        if delta_size > len(data) * 3 // 4:
            return self.add(kind, data, oid)
        packed = (
            _store_uncompressed(delta) if delta_size <= _UNCOMPRESSED_DELTA else _compress(delta)
        )
        head, distance = _entry_header(_OFS_DELTA, delta_size), _base_distance(self._size - offset)
        self._append(oid, len(data), b"%b%b%b" % (head, distance, packed))
        self._depths[oid] = depth
        return oid

    def _append(self, oid: bytes, size: int, piece: bytes) -> None:
        self._entries[oid] = (self._size, zlib.crc32(piece), size)
        self._pieces.append(piece)
        self._size += len(piece)

    def finish(self) -> int:
        """Write the pack and then its index; return the number of objects.

        No file is written for a pack without objects. Raises OSError.
        """
        if not self._entries:
            return 0
        # The mirror's lock is held, so the process id makes the name unique. Leftovers of a killed
        # process begin with tmp_ and are removed when the mirror is opened next.
        temporary = self._directory / f"tmp_pack_{os.getpid()}"
        try:
            digest = hashlib.sha1(usedforsecurity=False)
            with temporary.open("wb") as file:
                for chunk in self._chunks():
                    digest.update(chunk)
                    file.write(chunk)
                file.write(digest.digest())
            stem = f"pack-{digest.hexdigest()}"
            # The order matters: git finds a pack by its index, so the index is renamed last and no
            # reader ever sees an index without its pack.
            _publish_file(temporary, self._directory / f"{stem}.pack")
            temporary.write_bytes(self._build_index(digest.digest()))
            _publish_file(temporary, self._directory / f"{stem}.idx")
        finally:
            temporary.unlink(missing_ok=True)
        return len(self._entries)

    def _chunks(self) -> Iterator[bytes]:
        """Yield the pack without its trailing checksum, in chunks of about one megabyte.

        Joining all pieces at once would hold the pack in memory twice.
        """
        chunk = [struct.pack(">4sII", b"PACK", 2, len(self._entries))]
        size = 0
        for piece in self._pieces:
            chunk.append(piece)
            size += len(piece)
            if size > _CHUNK:
                yield b"".join(chunk)
                chunk, size = [], 0
        yield b"".join(chunk)

    def _build_index(self, checksum: bytes) -> bytes:
        """Build the index of version 2 (gitformat-pack(5))."""
        oids = sorted(self._entries)
        offsets, checksums, _ = zip(*[self._entries[oid] for oid in oids], strict=True)
        # The fan-out table: for each first byte the number of ids up to it, for binary search.
        counts = [0] * 256
        for oid in oids:
            counts[oid[0]] += 1
        # In place of a large offset the table of 32-bit offsets has the position in the table of
        # 64-bit offsets, with the highest bit set.
        large_offsets: list[int] = []
        entries: list[int] = []
        for offset in offsets:
            if offset < self._large_offset:
                entries.append(offset)
            else:
                entries.append(_IS_LARGE | len(large_offsets))
                large_offsets.append(offset)
        content = b"".join(
            [
                b"\xfftOc",
                struct.pack(">257I", 2, *accumulate(counts)),
                *oids,
                struct.pack(f">{len(oids)}I", *checksums),
                struct.pack(f">{len(entries)}I{len(large_offsets)}Q", *entries, *large_offsets),
                checksum,
            ]
        )
        return content + hashlib.sha1(content, usedforsecurity=False).digest()


def compute_object_id(kind: int, data: bytes) -> bytes:
    """Compute the id (20 bytes) that git gives to a commit, tree or blob of this content."""
    head = b"%b %d\0" % (_TYPE_NAMES[kind], len(data))
    return hashlib.sha1(head + data, usedforsecurity=False).digest()


def _publish_file(temporary: Path, path: Path) -> None:
    temporary.chmod(0o444)
    temporary.replace(path)


def _compress(content: bytes) -> bytes:
    """Compress to a zlib stream, with a window of 8 KiB if the content fits in 64 KiB.

    The state of the widest window is so large that its memory is taken from and given back
    to the system for each object: 50 us, ten times the compression itself.
    """
    if len(content) > _SMALL_WINDOW_LIMIT:
        return zlib.compress(content, 1)
    stream = zlib.compressobj(1, zlib.DEFLATED, wbits=13, memLevel=5)
    return stream.compress(content) + stream.flush()


def _store_uncompressed(content: bytes) -> bytes:
    """Build a zlib stream of one uncompressed block (RFC 1950, RFC 1951 section 3.2.4)."""
    size = len(content)
    head = _STORED_BLOCK_HEADER.pack(b"\x78\x01\x01", size, size ^ 0xFFFF)
    return head + content + zlib.adler32(content).to_bytes(4, "big")


def _entry_header(kind: int, size: int) -> bytes:
    """Encode type and size of a pack entry: 4 bits of the size, then 7 bits per byte."""
    out = bytearray([kind << 4 | size & 15])
    size >>= 4
    while size:
        out[-1] |= 0x80
        out.append(size & 0x7F)
        size >>= 7
    return bytes(out)


def _base_distance(back: int) -> bytes:
    """Encode the distance in bytes from a delta back to its base (gitformat-pack(5)).

    Each continuation byte adds one, so that no distance has two encodings.
    """
    out = [back & 0x7F]
    while back := back >> 7:
        back -= 1
        out.append(0x80 | back & 0x7F)
    return bytes(reversed(out))


# ---- deltas: copy and insert (gitformat-pack(5)) -------------------------------------------------


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
