"""Editor of directory trees: puts packages in and takes them out.

Only the directories above an edit are written again. A directory is handled as the rows
that git stores: mode, name and id of each entry, in git's order.
"""

import re
from bisect import bisect_left
from collections.abc import Callable

from fanout.control_characters import escape_unprintable
from fanout.errors import InvalidInput
from fanout.git.pack import TREE, PackWriter, encode_copy, encode_insert

_ROW_PATTERN = re.compile(rb"((\d+) ([^\0]+)\0.{20})", re.DOTALL)
_DIRECTORY_MODES = {b"40000", b"040000"}  # the second in very old commits
_FORBIDDEN_NAMES = {"", ".", "..", ".git"}

ReadTree = Callable[[str], bytes]
"""Reader of a tree: its bytes, by its id in hex."""


def split_rows(raw: bytes) -> tuple[list[bytes], list[bytes]]:
    """Split a directory into the sort keys of its rows and the rows.

    Git sorts a directory as if its name ended with a slash, so its key does.
    """
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
        """Start with the tree `root` ("" is the empty tree).

        `read` returns a tree's bytes by id.
        """
        self._read = read
        self._root = self._load(root)

    def put(self, path: str, tree: str) -> None:
        """Put the tree at the path and replace any directory there; "" is the root.

        Raises InvalidInput if a file is at the path or at one of its parents.
        """
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
        location = self._locate(path)
        if location is None:
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
    """Apply the pending changes of rows.

    Return the delta from the old bytes to the new ones. Linear in the number of rows.
    """
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
        row = directory.pending[key]
        if row is not None:
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
