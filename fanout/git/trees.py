"""Puts packages into a directory tree and takes them out, rewriting only the directories above."""

from bisect import bisect_left
from collections.abc import Callable

from fanout.errors import InvalidInput
from fanout.git.pack import TREE, PackWriter, Splice

ReadTree = Callable[[str], bytes]


class _Directory:
    """One directory: its rows as git sorts them, and what is to be changed in them."""

    __slots__ = ("children", "keys", "oid", "pending", "rows", "size", "touched")

    def __init__(self, oid: bytes = b"", raw: bytes = b"") -> None:
        self.oid = oid  # b"": not written yet
        self.size = len(raw)
        self.keys: list[bytes] = []
        self.rows: list[bytes] = []
        self.pending: dict[bytes, bytes | None] = {}  # None: the row goes
        self.children: dict[bytes, _Directory] = {}  # those that were entered
        self.touched: set[bytes] = set()  # children with changes
        at = 0
        while at < len(raw):
            end = raw.index(b"\0", at)
            mode, _, name = raw[at:end].partition(b" ")
            # git sorts a directory as if its name ended with a slash
            self.keys.append(name + b"/" if mode.lstrip(b"0") == b"40000" else name)
            self.rows.append(raw[at : end + 21])
            at = end + 21

    def row(self, key: bytes) -> bytes | None:
        if key in self.pending:
            return self.pending[key]
        at = bisect_left(self.keys, key)
        return self.rows[at] if at < len(self.keys) and self.keys[at] == key else None

    def set(self, key: bytes, row: bytes | None) -> None:
        if row != self.row(key):
            self.pending[key] = row


class TreeEditor:
    """A tree that is edited and written again and again, each time on top of the last."""

    def __init__(self, root: str, read: ReadTree, pack: PackWriter) -> None:
        """`root` is the tree to begin with, "" for an empty one; `read` answers a tree's bytes."""
        self._read = read
        self._pack = pack
        self._root = self._load(root)

    def put(self, path: str, tree: str) -> None:
        """Let the tree be at the path, whatever was there; "" is the root.

        Raises InvalidInput when a file is there or on the way.
        """
        if not path:
            self._root = self._load(tree)
            return
        *above, name = path.encode().split(b"/")
        directory = self._root
        for part in above:
            directory.touched.add(part)
            directory = self._enter(directory, part, path)
        _refuse_file(directory, name, path)
        directory.children.pop(name, None)
        directory.touched.discard(name)
        directory.set(name + b"/", b"40000 %s\0%s" % (name, bytes.fromhex(tree)))

    def drop(self, path: str) -> None:
        """Remove the directory at the path, and those above it that become empty."""
        *above, name = path.encode().split(b"/")
        way = [self._root]
        for part in above:
            if way[-1].row(part + b"/") is None and part not in way[-1].children:
                return
            way.append(self._enter(way[-1], part, path))
        for directory, part in zip(way, above, strict=False):
            directory.touched.add(part)
        way[-1].children.pop(name, None)
        way[-1].touched.discard(name)
        way[-1].set(name + b"/", None)

    def write(self) -> str:
        """Write what was changed into the pack; answers the root's id."""
        self._flush(self._root)
        if not self._root.oid:
            self._root.oid = self._pack.add(TREE, b"")
        return self._root.oid.hex()

    def _load(self, tree: str) -> _Directory:
        return _Directory(bytes.fromhex(tree), self._read(tree)) if tree else _Directory()

    def _enter(self, directory: _Directory, name: bytes, path: str) -> _Directory:
        if name not in directory.children:
            row = directory.row(name + b"/")
            if row is None:
                _refuse_file(directory, name, path)
            directory.children[name] = self._load(row[-20:].hex() if row else "")
        return directory.children[name]

    def _flush(self, directory: _Directory) -> None:
        for name in directory.touched:
            child = directory.children[name]
            self._flush(child)
            row = b"40000 %s\0%s" % (name, child.oid) if child.rows else None
            directory.set(name + b"/", row)
            if row is None:
                del directory.children[name]
        directory.touched.clear()
        if not directory.pending:
            return
        old_oid, old_size = directory.oid, directory.size
        splices = _apply(directory)
        data = b"".join(directory.rows)
        directory.size = len(data)
        if data:
            directory.oid = self._pack.add_tree(data, old_oid, old_size, splices)
        else:
            directory.oid = b""


def _apply(directory: _Directory) -> list[Splice]:
    """Change the rows; answers how the new bytes come from the old ones. Linear in the rows."""
    keys: list[bytes] = []
    rows: list[bytes] = []
    splices: list[Splice] = []
    at = offset = 0
    for key in sorted(directory.pending):
        here = bisect_left(directory.keys, key, at)
        keys += directory.keys[at:here]
        rows += directory.rows[at:here]
        length = sum(map(len, directory.rows[at:here]))
        splices.append((offset, length))
        offset += length
        at = here
        if here < len(directory.keys) and directory.keys[here] == key:
            offset += len(directory.rows[here])
            at += 1
        row = directory.pending[key]
        if row is not None:
            keys.append(key)
            rows.append(row)
            splices.append(row)
    keys += directory.keys[at:]
    rows += directory.rows[at:]
    splices.append((offset, directory.size - offset))
    directory.keys, directory.rows = keys, rows
    directory.pending = {}
    return splices


def _refuse_file(directory: _Directory, name: bytes, path: str) -> None:
    if directory.row(name) is not None:
        raise InvalidInput(
            f"{path} cannot be a directory: {name.decode(errors='replace')} is a file",
            reason="PathBlocked",
            remedy="remove the file or choose another package path",
        )
