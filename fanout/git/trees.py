"""Puts packages into a directory tree and takes them out, rewriting only the directories above."""

from bisect import bisect_left

from fanout.git.delta import copy, insert
from fanout.git.pack import TREE, PackWriter
from fanout.git.rows import ReadTree, blocked, check_path, directory_row, split_rows


class _Directory:
    """One directory: its rows as git sorts them, and what is to be changed in them."""

    __slots__ = ("children", "keys", "oid", "pending", "rows", "size", "touched")

    def __init__(self, oid: bytes = b"", raw: bytes = b"") -> None:
        self.oid = oid  # b"": not written yet
        self.size = len(raw)
        self.keys, self.rows = split_rows(raw)
        self.pending: dict[bytes, bytes | None] = {}  # None: the row goes
        self.children: dict[bytes, _Directory] = {}  # those that were entered
        self.touched: set[bytes] = set()  # children with changes

    def row(self, key: bytes) -> bytes | None:
        if key in self.pending:
            return self.pending[key]
        at = bisect_left(self.keys, key)
        return self.rows[at] if at < len(self.keys) and self.keys[at] == key else None

    def set(self, key: bytes, row: bytes | None) -> None:
        if row != self.row(key):
            self.pending[key] = row

    def forget(self, name: bytes) -> None:
        """What was done below this name does not matter any more."""
        self.children.pop(name, None)
        self.touched.discard(name)


class TreeEditor:
    """A tree that is edited and written again and again, each time on top of the last."""

    def __init__(self, root: str, read: ReadTree) -> None:
        """`root` is the tree to begin with, "" for an empty one; `read` answers a tree's bytes."""
        self._read = read
        self._root = self._load(root)

    def put(self, path: str, tree: str) -> None:
        """Let the tree be at the path, whatever directory was there; "" is the root.

        Raises InvalidInput when a file is there or on the way.
        """
        if not path:
            self._root = self._load(tree)
            return
        *above, name = check_path(path).encode().split(b"/")
        directory = self._root
        for part in above:
            _refuse_file(directory, part, path)
            directory = self._enter(directory, part)
        _refuse_file(directory, name, path)
        directory.forget(name)
        directory.set(name + b"/", directory_row(name, bytes.fromhex(tree)))

    def put_file(self, path: str, oid: bytes) -> None:
        """Let a plain file be at the path, whatever was there or on the way."""
        *above, name = check_path(path).encode().split(b"/")
        directory = self._root
        for part in above:
            directory.set(part, None)
            directory = self._enter(directory, part)
        directory.forget(name)
        directory.set(name + b"/", None)
        directory.set(name, b"100644 %s\0%s" % (name, oid))

    def drop(self, path: str) -> bool:
        """Remove the directory at the path, and those above it that become empty; "" is the root.

        Answers whether it was there.
        """
        if not path:
            self._root = _Directory()
            return True
        found = self._find(path)
        if found is None:
            return False
        directory, name = found
        there = directory.row(name + b"/") is not None or name in directory.children
        directory.forget(name)
        directory.set(name + b"/", None)
        return there

    def drop_any(self, path: str) -> None:
        """Remove the file or directory at the path, and those above it that become empty."""
        self.drop(path)
        found = self._find(path)
        if found is not None:
            directory, name = found
            directory.set(name, None)

    def write(self, pack: PackWriter) -> bytes:
        """Write what was changed into the pack; answers the root's id."""
        self._flush(self._root, pack)
        if not self._root.oid:
            self._root.oid = pack.add(TREE, b"")
        return self._root.oid

    def _load(self, tree: str) -> _Directory:
        return _Directory(bytes.fromhex(tree), self._read(tree)) if tree else _Directory()

    def _find(self, path: str) -> tuple[_Directory, bytes] | None:
        """The directory that the path is in, and its name there; None when there is none."""
        *above, name = check_path(path).encode().split(b"/")
        directory = self._root
        for part in above:
            if directory.row(part + b"/") is None and part not in directory.children:
                return None
            directory = self._enter(directory, part)
        return directory, name

    def _enter(self, directory: _Directory, name: bytes) -> _Directory:
        """The directory of this name, which is made where there is none; it is to be changed."""
        directory.touched.add(name)
        if name not in directory.children:
            row = directory.row(name + b"/")
            directory.children[name] = self._load(row[-20:].hex() if row else "")
        return directory.children[name]

    def _flush(self, directory: _Directory, pack: PackWriter) -> None:
        for name in directory.touched:
            child = directory.children[name]
            self._flush(child, pack)
            row = directory_row(name, child.oid) if child.rows else None
            directory.set(name + b"/", row)
            if row is None:
                del directory.children[name]
        directory.touched.clear()
        if not directory.pending:
            return
        old = directory.oid
        instructions = _apply(directory)
        data = b"".join(directory.rows)
        directory.size = len(data)
        if data:
            directory.oid = pack.add_like(TREE, data, old, instructions)
        else:
            directory.oid = b""


def _apply(directory: _Directory) -> list[bytes]:
    """Change the rows; answers how the new bytes are made of the old ones. Linear in the rows."""
    keys: list[bytes] = []
    rows: list[bytes] = []
    instructions: list[bytes] = []
    at = offset = 0
    for key in sorted(directory.pending):
        here = bisect_left(directory.keys, key, at)
        keys += directory.keys[at:here]
        rows += directory.rows[at:here]
        length = sum(map(len, directory.rows[at:here]))
        instructions.append(copy(offset, length))
        offset += length
        at = here
        if here < len(directory.keys) and directory.keys[here] == key:
            offset += len(directory.rows[here])
            at += 1
        row = directory.pending[key]
        if row is not None:
            keys.append(key)
            rows.append(row)
            instructions.append(insert(row))
    keys += directory.keys[at:]
    rows += directory.rows[at:]
    instructions.append(copy(offset, directory.size - offset))
    directory.keys, directory.rows = keys, rows
    directory.pending = {}
    return instructions


def _refuse_file(directory: _Directory, name: bytes, path: str) -> None:
    if directory.row(name) is not None:
        raise blocked(path, name)
