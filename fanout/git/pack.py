"""Writer of one pack and its index in a mirror, without a git process.

The objects of a change are known before they are written, and starting a git process for them would
cost more than the work. Small objects, deltas above all, are stored without compression:
compressing them takes as long as everything else and saves a few bytes. Formats: gitformat-pack(5).
"""

import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, compress, count
from operator import ne
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
    """Collector of the objects of one pack, which are visible after `finish`. Not thread-safe."""

    def __init__(self, mirror: Path) -> None:
        """Prepare a pack of the mirror."""
        self._directory = mirror / "objects" / "pack"
        self._size = 12
        self._pieces: list[bytes] = []
        # id → offset, checksum, object's size
        self._entries: dict[bytes, tuple[int, int, int]] = {}
        self._depths: dict[bytes, int] = {}

    def __contains__(self, oid: object) -> bool:
        return oid in self._entries

    def add(self, kind: int, data: bytes, oid: bytes = b"") -> bytes:
        """Add an object; return its id (20 bytes), which is `oid` if the caller has computed it."""
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
        is stored if the delta is hardly shorter, or if the base is not in this pack.
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
        sizes = (_encode_size(base_size), _encode_size(len(data)))
        delta = b"".join([*sizes, *instructions])
        delta_size = len(delta)
        # The full object would be compressed, so a delta of nearly its size saves nothing and
        # lengthens the chain that readers must apply.
        if delta_size > len(data) * 3 // 4:
            return self.add(kind, data, oid)
        packed = (
            _store_uncompressed(delta) if delta_size <= _UNCOMPRESSED_DELTA else _compress(delta)
        )
        back = self._size - offset
        distance = [back & 0x7F]
        # Each continuation byte adds one, so that no distance has two encodings.
        while back := back >> 7:
            back -= 1
            distance.append(0x80 | back & 0x7F)
        head = _entry_header(_OFS_DELTA, delta_size) + bytes(reversed(distance))
        self._append(oid, len(data), head + packed)
        self._depths[oid] = depth
        return oid

    def _append(self, oid: bytes, size: int, piece: bytes) -> None:
        self._entries[oid] = (self._size, zlib.crc32(piece), size)
        self._pieces.append(piece)
        self._size += len(piece)

    def finish(self) -> int:
        """Write the pack, unless it is empty, and its index; return the number of objects."""
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
            if offset < LARGE_OFFSET:
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
    head = kind << 4 | size & 15
    return bytes([head]) if size < 16 else bytes([head | 0x80]) + _encode_size(size >> 4)


# ---- deltas: copy and insert (gitformat-pack(5)) -------------------------------------------------


def encode_insert(data: bytes) -> bytes:
    """Encode instructions that insert new bytes, at most 127 each."""
    if (size := len(data)) <= _MAX_INSERT:
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


class _DeltaBase:
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
        base_pieces, starts = self._pieces, self._starts
        if len(pieces) != len(base_pieces):
            shorter = min(len(base_pieces), len(pieces))
            head = next((at for at in range(shorter) if base_pieces[at] != pieces[at]), shorter)
            remaining = range(shorter - head)
            differing = (at for at in remaining if base_pieces[-1 - at] != pieces[-1 - at])
            tail = next(differing, len(remaining))
            middle = b"".join(pieces[head : len(pieces) - tail])
            tail_start = starts[len(base_pieces) - tail]
            copy_tail = encode_copy(tail_start, starts[-1] - tail_start)
            return [encode_copy(0, starts[head]), encode_insert(middle), copy_tail]
        instructions: list[bytes] = []
        copied_until = 0  # bytes of the base that the instructions cover
        # The comparison runs in C for all pieces; Python code runs only for those that differ.
        for index in compress(count(), map(ne, base_pieces, pieces)):
            if copied_until < index:
                instructions.append(
                    encode_copy(starts[copied_until], starts[index] - starts[copied_until])
                )
            instructions.append(encode_insert(pieces[index]))
            copied_until = index + 1
        instructions.append(encode_copy(starts[copied_until], starts[-1] - starts[copied_until]))
        return instructions


class DeltaWriter:
    """Writer that stores each object as a delta to the first similar object of the pack.

    The drafts of one change differ in a few lines, so the first one is a good delta base for
    all others. A delta costs less time than compressing the full object: when it is written,
    in the push, and at the remote.
    """

    def __init__(self, pack: PackWriter, is_stored: Callable[[bytes], bool]) -> None:
        """Write into `pack`; `is_stored` tells by id whether the mirror has an object already."""
        self._pack = pack
        self._is_stored = is_stored
        self._bases: dict[Hashable, _DeltaBase] = {}

    def add(
        self,
        similarity_key: Hashable,
        kind: int,
        data: bytes,
        pieces: Sequence[bytes] | None = None,
    ) -> bytes:
        """Add an object and return its id (20 bytes).

        Objects with equal `similarity_key` share a delta base, which is the first of them.
        `pieces` are the units that deltas compare; default: the lines of `data`.
        """
        if (oid := compute_object_id(kind, data)) in self._pack:
            return oid
        pieces = data.splitlines(keepends=True) if pieces is None else pieces
        if (base := self._bases.get(similarity_key)) is not None:
            return self._pack.add_delta(
                kind, data, base.oid, base.compute_instructions(pieces), oid
            )
        # Looked up only where the full object would be written: a delta is cheaper to write than
        # to look up in the mirror.
        if not self._is_stored(oid):
            self._pack.add(kind, data, oid)
            self._bases[similarity_key] = _DeltaBase(oid, pieces)
        return oid
