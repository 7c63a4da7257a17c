"""Writes objects as differences to the first of their like: drafts of one change are much alike."""

from collections.abc import Callable, Hashable, Sequence

from fanout.git.delta import Sample
from fanout.git.pack import PackWriter, object_id


class Alike:
    """Writes objects as differences to the first of their like in this pack."""

    def __init__(self, pack: PackWriter, has: Callable[[bytes], bool]) -> None:
        """`has` says whether the mirror has an object already; it is not written again then."""
        self._pack = pack
        self._has = has
        self._samples: dict[Hashable, Sample] = {}

    def add(
        self,
        like: Hashable,
        kind: int,
        data: bytes,
        pieces: Sequence[bytes] | None = None,
        oid: bytes = b"",
    ) -> bytes:
        """Take an object; answers its id. `pieces` are its lines where nothing else is said.

        Only what would be written whole is looked up before: a difference is cheaper to write.
        """
        oid = oid or object_id(kind, data)
        if oid in self._pack:
            return oid
        pieces = data.splitlines(keepends=True) if pieces is None else pieces
        sample = self._samples.get(like)
        if sample is not None:
            return self._pack.add_like(kind, data, sample.oid, sample.instructions(pieces), oid)
        if not self._has(oid):
            self._pack.add(kind, data, oid)
            self._samples[like] = Sample(oid, pieces)
        return oid
