"""Directories of packages as git stores them. The variants of a package have the same paths, so
what follows from the paths is found out once.
"""

from collections.abc import Callable, Mapping, Sequence

from fanout.errors import Bug
from fanout.git.rows import check_path
from fanout.package.tree import Entry
from fanout.values import frozen

AddDirectory = Callable[[str, list[bytes]], bytes]
"""Takes the path and the rows of a directory; answers its id."""


@frozen
class _Directory:
    path: str
    rows: tuple[tuple[bytes, int], ...]  # a row but for the id, and which id goes there


class Layout:
    """The directories of all packages that have the same paths with the same modes."""

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        """`files` are paths and modes. Raises InvalidInput for a path that no tree may have, Bug
        when one is a file and a directory.
        """
        inside: dict[str, list[tuple[bytes, bytes, int]]] = {"": []}  # key to sort by, row, id
        for number, (path, mode) in enumerate(files):
            above, _, name = check_path(path).rpartition("/")
            _open(inside, above)
            inside[above].append(
                (name.encode(), b"%s %s\0" % (mode.encode(), name.encode()), number)
            )
        # Those inside others first; so each directory has its id when the one above needs it.
        self._directories: list[_Directory] = []
        for path in sorted(inside, key=lambda it: (bool(it), it.count("/")), reverse=True):
            rows = sorted(inside[path])
            names = [key.rstrip(b"/") for key, _, _ in rows]
            if len(set(names)) < len(names):
                raise Bug(f"a path in {path!r} is a file and a directory", reason="TreeMismatch")
            if path:
                above, _, last = path.rpartition("/")
                raw, number = last.encode(), len(files) + len(self._directories)
                inside[above].append((raw + b"/", b"40000 %s\0" % raw, number))
            self._directories.append(
                _Directory(path, tuple((row, number) for _, row, number in rows))
            )

    def write(self, entries: Mapping[str, Entry], add: AddDirectory) -> bytes:
        """Let `add` take the directories of a package; answers the id of its root."""
        ids = [bytes.fromhex(oid) for _, oid in entries.values()]
        for directory in self._directories:
            rows = [row + ids[number] for row, number in directory.rows]
            ids.append(add(directory.path, rows))
        return ids[-1]


def _open(inside: dict[str, list[tuple[bytes, bytes, int]]], path: str) -> None:
    while path not in inside:
        inside[path] = []
        path = path.rpartition("/")[0]


class Layouts:
    """The layouts that were met in one change."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[str, ...], tuple[str, ...]], Layout] = {}

    def of(self, entries: Mapping[str, Entry]) -> Layout:
        """The layout of a package. Raises as `Layout` does."""
        paths, modes = tuple(entries), tuple([mode for mode, _ in entries.values()])
        known = self._known.get((paths, modes))
        if known is None:
            known = self._known[paths, modes] = Layout(tuple(zip(paths, modes, strict=True)))
        return known
