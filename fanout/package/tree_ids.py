"""Git's ids of files and directories, computed without Git, and contents by blob id.

Files of the variants of one package share most of their text. `LazyBlobs` stores the
shared pieces once, and for each file only its own texts. So ten thousand variants that
wait to be written take no more memory than their differences.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

DIRECTORY_MODE = "40000"

FileContent = tuple[str, bytes]  # mode as git writes it, and bytes
Files = Mapping[str, FileContent]  # by path


class TreeEntry(NamedTuple):
    """File in a tree: mode as git writes it (100644, 100755, 120000) and blob id in hex."""

    mode: str
    oid: str


def blob_id(data: bytes) -> str:
    """Return git's id of a file with this content (SHA-1 object format)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def tree_id(files: Mapping[str, TreeEntry]) -> str:
    """Return git's id of a directory with these files; paths use ``/``.

    Raises ValueError if one path is a file and a directory.
    """
    return TreeTemplate(files, ()).compute_id(files)


class FilledText(NamedTuple):
    """Text made of shared pieces with gaps between them, and the texts that fill the gaps."""

    pieces: list[str]  # every second one is empty
    texts: Sequence[str]  # for each of these

    @property
    def data(self) -> bytes:
        """Complete content, in UTF-8."""
        pieces = self.pieces.copy()
        pieces[1::2] = self.texts
        return "".join(pieces).encode()


class LazyBlobs(Mapping[str, bytes]):
    """Contents by blob id, some stored complete and some as filled texts."""

    __slots__ = ("_complete", "_filled")

    def __init__(self, complete: Mapping[str, bytes], filled: Mapping[str, FilledText]) -> None:
        """Take both mappings, by blob id; no id may be in both."""
        self._complete = complete
        self._filled = filled

    def __getitem__(self, oid: str) -> bytes:
        filled = self._filled.get(oid)
        return self._complete[oid] if filled is None else filled.data

    def __contains__(self, oid: object) -> bool:
        return oid in self._filled or oid in self._complete

    def __iter__(self) -> Iterator[str]:
        yield from self._complete
        yield from self._filled

    def __len__(self) -> int:
        return len(self._complete) + len(self._filled)


class BlobUnion(Mapping[str, bytes]):
    """Union of several mappings of contents. Each is read only for the ids that are asked for."""

    __slots__ = ("_sources",)

    def __init__(self) -> None:
        self._sources: dict[str, Mapping[str, bytes]] = {}

    def add(self, blobs: Mapping[str, bytes]) -> None:
        """Add all contents of a mapping, which must not be changed afterwards."""
        # Stores the mapping and not its values: reading them here would join all lazy texts
        # at once.
        self._sources.update(dict.fromkeys(blobs, blobs))

    def __getitem__(self, oid: str) -> bytes:
        return self._sources[oid][oid]

    def __contains__(self, oid: object) -> bool:
        return oid in self._sources

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


class TreeTemplate:
    """A tree object with all rows precomputed, except the ids of varying files.

    Directories without varying files are a single row; each other directory has its own template.
    """

    __slots__ = ("_rows", "_size", "_subtrees", "_varying")

    def __init__(
        self, entries: Mapping[str, TreeEntry], varying: Collection[str], directory_prefix: str = ""
    ) -> None:
        """Precompute the rows of `entries`, files by path in the package.

        `directory_prefix` is the directory of this tree with its slash; all paths begin with it.
        """
        self._varying: list[tuple[int, str]] = []  # row number, file
        self._subtrees: list[tuple[int, TreeTemplate]] = []
        files_by_directory: dict[str, dict[str, TreeEntry]] = {}
        rows: list[tuple[bytes, str, bytes]] = []  # (name as git sorts it, path, row)
        for path, entry in entries.items():
            name, slash, _ = path[len(directory_prefix) :].partition("/")
            if slash:
                files_by_directory.setdefault(f"{directory_prefix}{name}/", {})[path] = entry
            else:
                rows.append((name.encode(), path, _row(entry.mode, name, entry.oid)))
        subtrees = {
            directory: TreeTemplate(files, varying, directory)
            for directory, files in files_by_directory.items()
            if any(path in varying for path in files)
        }
        for directory, files in files_by_directory.items():
            if directory[:-1] in entries:
                raise ValueError(f"{directory[:-1]} is a file and a directory")
            name = directory[len(directory_prefix) : -1]
            if directory in subtrees:
                oid = _UNKNOWN_ID
            else:
                oid = TreeTemplate(files, (), directory).compute_id(files)
            # Git sorts a directory as if its name ended with a slash.
            rows.append((name.encode() + b"/", directory, _row("40000", name, oid)))
        rows.sort()
        self._rows = [row for _, _, row in rows]
        self._size = sum(map(len, self._rows))
        for row_number, (_, path, row) in enumerate(rows):
            if path in subtrees:
                self._subtrees.append((row_number, subtrees[path]))
            elif path in varying:
                self._varying.append((row_number, path))
            else:
                continue
            # The row ends with the 20 bytes of an id, which is cut off here and appended in
            # `compute_id`. The size in the tree's header counts it and so stays the same for all
            # variants.
            self._rows[row_number] = row[: -len(_UNKNOWN_ID) // 2]

    def compute_id(self, entries: Mapping[str, TreeEntry]) -> str:
        """Return the tree id with the ids that `entries` has for the varying files.

        `entries` must contain exactly the files of the template.
        """
        rows = self._rows.copy()
        for row_number, path in self._varying:
            rows[row_number] += bytes.fromhex(entries[path].oid)
        for row_number, subtree in self._subtrees:
            rows[row_number] += bytes.fromhex(subtree.compute_id(entries))
        data = b"".join((b"tree %d\0" % self._size, *rows))
        return hashlib.sha1(data, usedforsecurity=False).hexdigest()


_UNKNOWN_ID = "0" * 40  # stands for the id of a varying file


def _row(mode: str, name: str, oid: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(oid)
