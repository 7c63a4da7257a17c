"""What packages hold, by the ids of their trees and files: read once, whoever asks.

Most files of a package are the same in many of its variants, and what people made of a package is
looked at more than once in a pass.
"""

from dataclasses import dataclass, field

from fanout.plan.merging import Files
from fanout.ports import Reader

_MOST = 16 << 20  # bytes that are kept, of files and of what is told of trees
_ENTRY = 200  # bytes, about, of what is told of one file


@dataclass(slots=True)
class Contents:
    """A memory of what does not change; one per process."""

    _trees: dict[str, Files] = field(default_factory=dict)
    _blobs: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0

    def known(self, tree: str) -> Files | None:
        """The files below a tree, if they were read before."""
        return self._trees.get(tree)

    def files(self, reader: Reader, tree: str) -> Files:
        """The files below a tree.

        Raises Unavailable, and InvalidInput for a submodule and for what no package may be.
        """
        found = self._trees.get(tree)
        if found is None:
            files = reader.files(tree, self._blobs)
            for entry, data in files.values():
                self._keep(entry.oid, data)
            found = {path: (entry.mode, data) for path, (entry, data) in files.items()}
            self._make_room(_ENTRY * len(found))
            self._trees[tree] = found
        return found

    def blob(self, reader: Reader, oid: str) -> bytes:
        """What a file holds.

        Raises Unavailable when it is not there, InvalidInput when it is larger than a file of a
        package may be.
        """
        data = self._blobs.get(oid)
        if data is None:
            data = reader.blob(oid)
            self._keep(oid, data)
        return data

    def _keep(self, oid: str, data: bytes) -> None:
        if oid not in self._blobs:
            self._make_room(len(data))
            self._blobs[oid] = data

    def _make_room(self, size: int) -> None:
        if self._size + size > _MOST:
            self._trees.clear()
            self._blobs.clear()
            self._size = 0
        self._size += size
