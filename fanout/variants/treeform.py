"""The id of a package's tree where only few files differ from one variant to the next."""

import hashlib
from collections.abc import Collection, Mapping

from fanout.package.tree import Entry, tree_id


class TreeForm:
    """The rows of a tree object in git's order, ready but for the files that vary.

    Directories in which nothing varies are one row. Where a file in a directory varies, the whole
    tree is computed anew each time.
    """

    __slots__ = ("_deep", "_rows", "_size", "_varying")

    def __init__(self, entries: Mapping[str, Entry], varying: Collection[str]) -> None:
        self._deep = any("/" in file for file in varying)
        self._varying: list[tuple[int, str]] = []  # place in the rows, file
        inside: dict[str, dict[str, Entry]] = {}
        rows: list[tuple[bytes, str, bytes]] = []  # (name as git sorts it, file or "", row)
        for file, (mode, oid) in entries.items():
            name, slash, rest = file.partition("/")
            if slash:
                inside.setdefault(name, {})[rest] = Entry(mode, oid)
            else:
                rows.append((name.encode(), file, _row(mode, name, oid)))
        for name, files in inside.items():
            rows.append((name.encode() + b"/", "", _row("40000", name, tree_id(files))))
        rows.sort()
        self._rows = [row for _, _, row in rows]
        self._size = sum(map(len, self._rows))
        for place, (_, file, row) in enumerate(rows):
            if file in varying:
                self._varying.append((place, file))
                self._rows[place] = row[:-20]

    def id_of(self, entries: Mapping[str, Entry]) -> str:
        """The tree's id: the files of the form, those that vary with other content."""
        if self._deep:
            return tree_id(entries)
        rows = self._rows.copy()
        for place, file in self._varying:
            rows[place] += bytes.fromhex(entries[file].oid)
        data = b"".join((b"tree %d\0" % self._size, *rows))
        return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _row(mode: str, name: str, oid: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(oid)
