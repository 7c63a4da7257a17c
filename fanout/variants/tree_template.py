"""Git tree ids of packages in which only few files differ between variants."""

import hashlib
from collections.abc import Collection, Mapping

from fanout.package.tree_ids import TreeEntry, tree_id


class TreeTemplate:
    """A tree object with all rows precomputed, except the ids of varying files.

    Directories without varying files are a single row; each other directory has its own
    template.
    """

    __slots__ = ("_rows", "_size", "_subtrees", "_varying")

    def __init__(
        self, entries: Mapping[str, TreeEntry], varying: Collection[str], directory_prefix: str = ""
    ) -> None:
        """Precompute the rows of `entries`, files by path in the package.

        `directory_prefix` is the directory of this tree with its slash; all paths begin with
        it.
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
            name, prefix_length = directory[len(directory_prefix) : -1], len(directory)
            oid = (
                _UNKNOWN_ID
                if directory in subtrees
                else tree_id({p[prefix_length:]: e for p, e in files.items()})
            )
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
