"""Trees of drafts: the tree of the base branch with one package replaced.

A directory with thousands of packages differs between drafts in one row. It is never
split per draft; its bytes are copied around the row, and written as a delta.
"""

from bisect import bisect_left
from itertools import accumulate

from fanout.git.pack import TREE, PackWriter, encode_copy, encode_insert
from fanout.git.tree_editor import (
    ReadTree,
    check_path,
    encode_directory_row,
    path_blocked,
    split_rows,
)

_RowEdit = tuple[int, int, bytes]  # start and end of the replaced bytes, and the new row


class _BaseDirectory:
    """One directory of the base branch and its first version with another row."""

    __slots__ = ("children", "first", "keys", "oid", "raw", "starts")

    def __init__(self, oid: bytes, raw: bytes) -> None:
        self.oid = oid
        self.raw = raw
        self.keys, rows = split_rows(raw)
        self.starts = list(accumulate(map(len, rows), initial=0))
        self.children: dict[bytes, _BaseDirectory] = {}
        self.first: tuple[bytes, _RowEdit] | None = None  # delta base of the other versions

    def find_row(self, key: bytes) -> tuple[int, int]:
        """Return the byte range of the row with this sort key; empty, at its place, if absent."""
        index = bisect_left(self.keys, key)
        exists = index < len(self.keys) and self.keys[index] == key
        return self.starts[index], self.starts[index + exists]


class BaseTree:
    """One tree of the mirror, from which versions with one package replaced are written."""

    def __init__(self, root: str, read: ReadTree) -> None:
        """Load the root tree with the id `root`; `read` returns the bytes of a tree by its id."""
        self._read = read
        self._root = self._load(bytes.fromhex(root))

    def with_package(self, path: str, tree: bytes, pack: PackWriter) -> bytes:
        """Write the tree with the package `tree` at `path` ("" is the root); return its id.

        Raises InvalidInput if a file is at the path or at one of its parent directories.
        """
        for directory, name in reversed(self._directories_to(path)):
            tree = _write_with_row(directory, name, tree, pack)
        return tree

    def _directories_to(self, path: str) -> list[tuple[_BaseDirectory, bytes]]:
        """Return the directories down to the path, each with the name of the next one."""
        directories: list[tuple[_BaseDirectory, bytes]] = []
        directory = self._root
        for name in check_path(path).encode().split(b"/") if path else ():
            if directories:
                directory, parent_name = directories[-1]
                if parent_name not in directory.children:
                    start, end = directory.find_row(parent_name + b"/")
                    oid = directory.raw[start:end][-20:]
                    directory.children[parent_name] = self._load(oid)
                directory = directory.children[parent_name]
            start, end = directory.find_row(name)
            if start < end:
                raise path_blocked(path, name)
            directories.append((directory, name))
        return directories

    def _load(self, oid: bytes) -> _BaseDirectory:
        return _BaseDirectory(oid, self._read(oid.hex()) if oid else b"")


def _write_with_row(directory: _BaseDirectory, name: bytes, oid: bytes, pack: PackWriter) -> bytes:
    """Write the directory with the row `name` pointing to `oid`; return its id."""
    start, end = directory.find_row(name + b"/")
    row = encode_directory_row(name, oid)
    raw = directory.raw
    if raw[start:end] == row:
        return directory.oid
    edit = (start, end, row)
    data = b"%s%s%s" % (raw[:start], row, raw[end:])
    # The delta base is the first version of this change, not the directory on the branch: a
    # pack must contain its bases, and the branch's directory is in another pack.
    if directory.first is not None:
        base_oid, base_edit = directory.first
        return pack.add_delta(TREE, data, base_oid, _edit_instructions(raw, base_edit, edit))
    written = pack.add(TREE, data)
    directory.first = (written, edit)
    return written


def _edit_instructions(raw: bytes, base_edit: _RowEdit, edit: _RowEdit) -> list[bytes]:
    """Compute the delta between two versions of one directory, each with one row edited.

    `raw` is the directory without either edit; offsets of both edits refer to it.
    """
    start, end, old_row = base_edit
    new_start, new_end, new_row = edit
    # The base's row is replaced by the original one, unless the new version replaces it as well.
    row_edits = {(start, end): raw[start:end], (new_start, new_end): new_row}
    growth = len(old_row) - (end - start)  # shift of everything after the row
    instructions: list[bytes] = []
    position = 0
    for (first, last), row in sorted(row_edits.items()):
        offset = position + growth if position >= end else position
        instructions += [encode_copy(offset, first - position), encode_insert(row)]
        position = last
    instructions.append(encode_copy(position + growth, len(raw) - position))
    return instructions
