"""The directories that drafts stand on: each draft is the branch's tree with one package replaced.

A directory with thousands of packages differs from draft to draft by one row. It is never taken
apart; its bytes are copied around the row.
"""

from bisect import bisect_left
from itertools import accumulate

from fanout.git.delta import copy, insert
from fanout.git.pack import TREE, PackWriter
from fanout.git.rows import ReadTree, blocked, check_path, directory_row, split_rows

_Edit = tuple[int, int, bytes]  # first byte and end of what goes, and the row that comes


class _Directory:
    """One directory as it is on the branch."""

    __slots__ = ("children", "first", "keys", "oid", "raw", "starts")

    def __init__(self, oid: bytes, raw: bytes) -> None:
        self.oid = oid
        self.raw = raw
        self.keys, rows = split_rows(raw)
        self.starts = list(accumulate(map(len, rows), initial=0))
        self.children: dict[bytes, _Directory] = {}
        self.first: tuple[bytes, _Edit] | None = None  # the version that others differ from

    def find(self, key: bytes) -> tuple[int, int]:
        """Where the row is, or where it would be: first byte and end."""
        at = bisect_left(self.keys, key)
        there = at < len(self.keys) and self.keys[at] == key
        return self.starts[at], self.starts[at + there]


class Ground:
    """One tree of the mirror, and its versions with one package each."""

    def __init__(self, root: str, read: ReadTree) -> None:
        """`root` is the tree's id; `read` answers a tree's bytes."""
        self._read = read
        self._root = self._load(bytes.fromhex(root))

    def with_package(self, path: str, tree: bytes, pack: PackWriter) -> bytes:
        """Write the tree that has the package at the path; answers its id. "" is the root.

        Raises InvalidInput as `check` does.
        """
        for directory, name in reversed(self._way(path)):
            tree = _write(directory, name, tree, pack)
        return tree

    def check(self, path: str) -> None:
        """Raises InvalidInput when a file is at the path or on the way to it."""
        self._way(path)

    def _way(self, path: str) -> list[tuple[_Directory, bytes]]:
        """The directories down to the path, each with the name to go on with."""
        way: list[tuple[_Directory, bytes]] = []
        directory = self._root
        for name in check_path(path).encode().split(b"/") if path else ():
            if way:
                directory = self._enter(*way[-1])
            start, end = directory.find(name)
            if start < end:
                raise blocked(path, name)
            way.append((directory, name))
        return way

    def _load(self, oid: bytes) -> _Directory:
        return _Directory(oid, self._read(oid.hex()) if oid else b"")

    def _enter(self, directory: _Directory, name: bytes) -> _Directory:
        if name not in directory.children:
            start, end = directory.find(name + b"/")
            directory.children[name] = self._load(directory.raw[start:end][-20:])
        return directory.children[name]


def _write(directory: _Directory, name: bytes, oid: bytes, pack: PackWriter) -> bytes:
    """The directory with this row."""
    start, end = directory.find(name + b"/")
    row = directory_row(name, oid)
    raw = directory.raw
    if raw[start:end] == row:
        return directory.oid
    edit = (start, end, row)
    data = b"%s%s%s" % (raw[:start], row, raw[end:])
    if directory.first is not None:
        base, other = directory.first
        return pack.add_like(TREE, data, base, _instructions(raw, other, edit))
    written = pack.add(TREE, data)
    directory.first = (written, edit)
    return written


def _instructions(raw: bytes, old: _Edit, new: _Edit) -> list[bytes]:
    """How one version of a directory is made of another version of it."""
    start, end, row = old
    here, there, mine = new
    after = start + len(row)
    longer = len(row) - (end - start)  # how far all that is behind the row has moved
    whole = len(raw) + longer
    if (here, there) == (start, end):
        return [copy(0, start), insert(mine), copy(after, whole - after)]
    back = insert(raw[start:end])  # what the old version took away
    if here >= end:
        rest = there + longer
        between = copy(after, here - end)
        return [copy(0, start), back, between, insert(mine), copy(rest, whole - rest)]
    between = copy(there, start - there)
    return [copy(0, here), insert(mine), between, back, copy(after, whole - after)]
