"""Editing of directory trees: packages are put in and taken out.

Only the directories above an edit are written again. A directory is handled as the rows
that git stores: mode, name and id of each entry, in git's order.
"""

import re
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate

from fanout.control_characters import escape_unprintable
from fanout.errors import InvalidInput
from fanout.git.pack import TREE, PackWriter, encode_copy, encode_insert

_ROW_PATTERN = re.compile(rb"((\d+) ([^\0]+)\0.{20})", re.DOTALL)
_DIRECTORY_MODES = {b"40000", b"040000"}  # the second in very old commits
_FORBIDDEN_NAMES = {"", ".", "..", ".git"}

ReadTree = Callable[[str], bytes]
"""Reader of a tree: its bytes, by its id in hex."""


def split_rows(raw: bytes) -> tuple[list[bytes], list[bytes]]:
    """Split a directory into sort keys and rows; the key of a directory ends with a slash."""
    keys: list[bytes] = []
    rows: list[bytes] = []
    for row, mode, name in _ROW_PATTERN.findall(raw):
        keys.append(name + b"/" if mode in _DIRECTORY_MODES else name)
        rows.append(row)
    return keys, rows


def encode_directory_row(name: bytes, oid: bytes) -> bytes:
    """Encode the row of a subdirectory; `oid` is its id (20 bytes)."""
    return b"40000 %s\0%s" % (name, oid)


def check_path(path: str) -> str:
    """Return the path unchanged; raise InvalidInput if git would not store it."""
    if "\0" in path or not _FORBIDDEN_NAMES.isdisjoint(path.lower().split("/")):
        raise InvalidInput(
            f"{path!r} is not a valid Git path",
            reason="InvalidPath",
            remedy="use a relative path without '..' and '.git'",
        )
    return path


def path_blocked(path: str, name: bytes) -> InvalidInput:
    """Build the error for a package path on which a file of this name is in the way."""
    file_name = escape_unprintable(name.decode(errors="replace"))
    return InvalidInput(
        f"{path} cannot be a directory: {file_name} is a file",
        reason="PathBlocked",
        remedy="remove the file or choose another package path",
    )


class _EditedDirectory:
    """One directory: its rows in git's order, and the pending changes of rows."""

    __slots__ = ("children", "keys", "oid", "pending", "rows", "size", "touched")

    def __init__(self, oid: bytes = b"", raw: bytes = b"") -> None:
        self.oid = oid  # b"": not written yet
        self.size = len(raw)
        self.keys, self.rows = split_rows(raw)
        self.pending: dict[bytes, bytes | None] = {}  # None: the row is removed
        self.children: dict[bytes, _EditedDirectory] = {}  # those that were entered
        self.touched: set[bytes] = set()  # children with changes

    def find_row(self, key: bytes) -> bytes | None:
        if key in self.pending:
            return self.pending[key]
        index = bisect_left(self.keys, key)
        return self.rows[index] if index < len(self.keys) and self.keys[index] == key else None

    def set_row(self, key: bytes, row: bytes | None) -> None:
        if row != self.find_row(key):
            self.pending[key] = row

    def discard_child(self, name: bytes) -> None:
        """Discard the edits below this name. The row itself is about to be replaced or removed."""
        self.children.pop(name, None)
        self.touched.discard(name)


class TreeEditor:
    """A tree that is edited and written repeatedly, each time on top of the last version."""

    def __init__(self, root: str, read: ReadTree) -> None:
        """Start with the tree `root` ("" is empty); `read` returns a tree's bytes by id."""
        self._read = read
        self._root = self._load(root)

    def put(self, path: str, tree: str) -> None:
        """Put the tree at the path ("": the root). Raises InvalidInput if a file is in the way."""
        if not path:
            self._root = self._load(tree)
            return
        *parents, name = check_path(path).encode().split(b"/")
        directory = self._root
        for part in parents:
            _refuse_file(directory, part, path)
            directory = self._changed_child(directory, part)
        _refuse_file(directory, name, path)
        directory.discard_child(name)
        directory.set_row(name + b"/", encode_directory_row(name, bytes.fromhex(tree)))

    def put_file(self, path: str, oid: bytes) -> None:
        """Put a plain file at the path and replace anything at the path or at its parents."""
        *parents, name = check_path(path).encode().split(b"/")
        directory = self._root
        for part in parents:
            directory.set_row(part, None)
            directory = self._changed_child(directory, part)
        directory.discard_child(name)
        directory.set_row(name + b"/", None)
        directory.set_row(name, b"100644 %s\0%s" % (name, oid))

    def remove_directory(self, path: str) -> bool:
        """Remove the directory at the path and parents that become empty; "" is the root.

        Returns whether the directory existed.
        """
        if not path:
            self._root = _EditedDirectory()
            return True
        if (location := self._locate(path)) is None:
            return False
        directory, name = location
        existed = directory.find_row(name + b"/") is not None or name in directory.children
        directory.discard_child(name)
        directory.set_row(name + b"/", None)
        return existed

    def remove(self, path: str) -> None:
        """Remove the file or directory at the path and parents that become empty."""
        self.remove_directory(path)
        if location := self._locate(path):
            directory, name = location
            directory.set_row(name, None)

    def write(self, pack: PackWriter) -> bytes:
        """Write the changed directories into the pack and return the id of the root."""
        self._flush(self._root, pack)
        if not self._root.oid:
            self._root.oid = pack.add(TREE, b"")
        return self._root.oid

    def _load(self, tree: str) -> _EditedDirectory:
        return _EditedDirectory(bytes.fromhex(tree), self._read(tree) if tree else b"")

    def _locate(self, path: str) -> tuple[_EditedDirectory, bytes] | None:
        """Return the parent directory of the path and the last name, or None without a parent."""
        *parents, name = check_path(path).encode().split(b"/")
        directory = self._root
        for part in parents:
            if directory.find_row(part + b"/") is None and part not in directory.children:
                return None
            directory = self._changed_child(directory, part)
        return directory, name

    def _changed_child(self, directory: _EditedDirectory, name: bytes) -> _EditedDirectory:
        """Return the child directory, created if absent, and mark it as changed."""
        directory.touched.add(name)
        if name not in directory.children:
            row = directory.find_row(name + b"/")
            directory.children[name] = self._load(row[-20:].hex() if row else "")
        return directory.children[name]

    def _flush(self, directory: _EditedDirectory, pack: PackWriter) -> None:
        for name in directory.touched:
            child = directory.children[name]
            self._flush(child, pack)
            # Git has no empty directories: one without rows disappears from its parent.
            row = encode_directory_row(name, child.oid) if child.rows else None
            directory.set_row(name + b"/", row)
            if row is None:
                del directory.children[name]
        directory.touched.clear()
        if not directory.pending:
            return
        # The previous version of the directory in this pack is the delta base: consecutive merge
        # commits differ in a few rows.
        instructions = _apply_pending(directory)
        data = b"".join(directory.rows)
        directory.size = len(data)
        directory.oid = pack.add_delta(TREE, data, directory.oid, instructions) if data else b""


def _apply_pending(directory: _EditedDirectory) -> list[bytes]:
    """Apply the pending changes of rows; return the delta from the old bytes. Takes linear time."""
    keys: list[bytes] = []
    rows: list[bytes] = []
    instructions: list[bytes] = []
    position = offset = 0
    for key in sorted(directory.pending):
        index = bisect_left(directory.keys, key, position)
        keys += directory.keys[position:index]
        rows += directory.rows[position:index]
        length = sum(map(len, directory.rows[position:index]))
        instructions.append(encode_copy(offset, length))
        offset += length
        position = index
        if index < len(directory.keys) and directory.keys[index] == key:
            offset += len(directory.rows[index])
            position += 1
        if (row := directory.pending[key]) is not None:
            keys.append(key)
            rows.append(row)
            instructions.append(encode_insert(row))
    keys += directory.keys[position:]
    rows += directory.rows[position:]
    instructions.append(encode_copy(offset, directory.size - offset))
    directory.keys, directory.rows = keys, rows
    directory.pending = {}
    return instructions


def _refuse_file(directory: _EditedDirectory, name: bytes, path: str) -> None:
    if directory.find_row(name) is not None:
        raise path_blocked(path, name)


# ---- trees of drafts: the tree of the base branch with one package replaced ----------------------

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

    def write_with_row(self, name: bytes, oid: bytes, pack: PackWriter) -> bytes:
        """Write the directory with the row `name` pointing to `oid`; return its id."""
        start, end = self.find_row(name + b"/")
        row = encode_directory_row(name, oid)
        raw = self.raw
        if raw[start:end] == row:
            return self.oid
        edit = (start, end, row)
        data = b"%s%s%s" % (raw[:start], row, raw[end:])
        # The delta base is the first version of this change, not the directory on the branch: a
        # pack must contain its bases, and the branch's directory is in another pack.
        if self.first is not None:
            base_oid, base_edit = self.first
            return pack.add_delta(TREE, data, base_oid, _edit_instructions(raw, base_edit, edit))
        written = pack.add(TREE, data)
        self.first = (written, edit)
        return written


class BaseTree:
    """One tree of the mirror, from which versions with one package replaced are written.

    A directory with thousands of packages differs between drafts in one row. It is never split per
    draft; its bytes are copied around the row, and written as a delta.
    """

    def __init__(self, root: str, read: ReadTree) -> None:
        """Load the root tree with the id `root`; `read` returns the bytes of a tree by its id."""
        self._read = read
        self._root = self._load(bytes.fromhex(root))

    def with_package(self, path: str, tree: bytes, pack: PackWriter) -> bytes:
        """Write the tree with the package `tree` at `path`; return its id. Raises InvalidInput."""
        directories: list[tuple[_BaseDirectory, bytes]] = []  # each with the name of the next one
        directory = self._root
        for name in check_path(path).encode().split(b"/") if path else ():
            if directories:
                directory, parent_name = directories[-1]
                if parent_name not in directory.children:
                    start, end = directory.find_row(parent_name + b"/")
                    directory.children[parent_name] = self._load(directory.raw[start:end][-20:])
                directory = directory.children[parent_name]
            start, end = directory.find_row(name)
            if start < end:
                raise path_blocked(path, name)
            directories.append((directory, name))
        for directory, name in reversed(directories):
            tree = directory.write_with_row(name, tree, pack)
        return tree

    def _load(self, oid: bytes) -> _BaseDirectory:
        return _BaseDirectory(oid, self._read(oid.hex()) if oid else b"")


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
