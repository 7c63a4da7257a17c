"""Delta bases: to which other object of a pack an object is stored as a delta.

The drafts of one change differ in a few lines, so the first one is a good delta base for
all others. A delta costs less time than compressing the full object: when it is written,
in the push, and at the remote.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import accumulate, compress, count
from operator import ne

from fanout.git.pack import PackWriter, compute_object_id, encode_copy, encode_insert


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


class DeltaWriter:
    """Writer that stores each object as a delta to the first similar object of the pack."""

    def __init__(self, pack: PackWriter, is_stored: Callable[[bytes], bool]) -> None:
        """Write into `pack`; `is_stored` tells by id whether the mirror has an object already."""
        self._pack = pack
        self._is_stored = is_stored
        self._bases: dict[Hashable, DeltaBase] = {}

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
        oid = compute_object_id(kind, data)
        if oid in self._pack:
            return oid
        pieces = data.splitlines(keepends=True) if pieces is None else pieces
        base = self._bases.get(similarity_key)
        if base is not None:
            return self._pack.add_delta(
                kind, data, base.oid, base.compute_instructions(pieces), oid
            )
        # Looked up only where the full object would be written: a delta is cheaper to write than
        # to look up in the mirror.
        if not self._is_stored(oid):
            self._pack.add(kind, data, oid)
            self._bases[similarity_key] = DeltaBase(oid, pieces)
        return oid
