"""The id of a package's tree where only few files differ from one variant to the next."""

import hashlib
from collections.abc import Collection, Mapping

from fanout.package.tree import Entry, tree_id


class TreeForm:
    """The rows of a tree object in git's order, ready but for the files that vary.

    Directories in which nothing varies are one row; the others have a form of their own.
    """

    __slots__ = ("_below", "_rows", "_size", "_varying")

    def __init__(
        self, entries: Mapping[str, Entry], varying: Collection[str], above: str = ""
    ) -> None:
        """`above` is the directory whose form it is, with a slash; paths begin with it."""
        self._varying: list[tuple[int, str]] = []  # place in the rows, file
        self._below: list[tuple[int, TreeForm]] = []
        inside: dict[str, dict[str, Entry]] = {}
        rows: list[tuple[bytes, str, bytes]] = []  # (name as git sorts it, path, row)
        for path, entry in entries.items():
            name, slash, _ = path[len(above) :].partition("/")
            if slash:
                inside.setdefault(f"{above}{name}/", {})[path] = entry
            else:
                rows.append((name.encode(), path, _row(entry.mode, name, entry.oid)))
        forms = {
            directory: TreeForm(files, varying, directory)
            for directory, files in inside.items()
            if any(path in varying for path in files)
        }
        for directory, files in inside.items():
            name, short = directory[len(above) : -1], len(directory)
            oid = _NONE if directory in forms else tree_id({p[short:]: e for p, e in files.items()})
            rows.append((name.encode() + b"/", directory, _row("40000", name, oid)))
        rows.sort()
        self._rows = [row for _, _, row in rows]
        self._size = sum(map(len, self._rows))
        for place, (_, path, row) in enumerate(rows):
            if path in forms:
                self._below.append((place, forms[path]))
            elif path in varying:
                self._varying.append((place, path))
            else:
                continue
            self._rows[place] = row[: -len(_NONE) // 2]

    def id_of(self, entries: Mapping[str, Entry]) -> str:
        """The tree's id: the files of the form, those that vary with other content."""
        rows = self._rows.copy()
        for place, path in self._varying:
            rows[place] += bytes.fromhex(entries[path].oid)
        for place, form in self._below:
            rows[place] += bytes.fromhex(form.id_of(entries))
        data = b"".join((b"tree %d\0" % self._size, *rows))
        return hashlib.sha1(data, usedforsecurity=False).hexdigest()


_NONE = "0" * 40  # takes the place of an id that is to come


def _row(mode: str, name: str, oid: str) -> bytes:
    return f"{mode} {name}\0".encode() + bytes.fromhex(oid)
