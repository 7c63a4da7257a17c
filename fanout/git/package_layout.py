"""Directory layouts of packages, computed once for all variants with the same paths.

The variants of a package have the same paths and modes and differ in their contents, so
sorting and encoding of the directory rows need not be repeated per variant.
"""

from collections.abc import Callable, Mapping, Sequence

from fanout.errors import Bug
from fanout.git.tree_editor import check_path
from fanout.package.tree_ids import TreeEntry
from fanout.values import Value

AddDirectory = Callable[[str, list[bytes]], bytes]
"""Writer of a directory, given its path and rows; returns its id."""


class _LayoutDirectory(Value):
    path: str
    row_prefixes: tuple[tuple[bytes, int], ...]  # a row without its id, and the index of that id


class PackageLayout:
    """The directories of all packages that have the same paths with the same modes."""

    def __init__(self, files: Sequence[tuple[str, str]]) -> None:
        """Compute the layout of `files`, which are pairs of path and mode.

        Raises InvalidInput for a path that git does not store, and Bug if a path is both a file
        and a directory.
        """
        # key to sort by, row, id
        rows_by_directory: dict[str, list[tuple[bytes, bytes, int]]] = {"": []}
        for number, (path, mode) in enumerate(files):
            parent, _, name = check_path(path).rpartition("/")
            directory_path = parent
            while directory_path not in rows_by_directory:
                rows_by_directory[directory_path] = []
                directory_path = directory_path.rpartition("/")[0]
            rows_by_directory[parent].append(
                (name.encode(), b"%s %s\0" % (mode.encode(), name.encode()), number)
            )
        # Deepest first, so that each directory has its id before its parent needs it.
        self._directories: list[_LayoutDirectory] = []
        # Depth alone does not put the root last: its direct children have no slash either.
        for path in sorted(
            rows_by_directory, key=lambda it: (bool(it), it.count("/")), reverse=True
        ):
            rows = sorted(rows_by_directory[path])
            names = [key.rstrip(b"/") for key, _, _ in rows]
            if len(set(names)) < len(names):
                raise Bug(f"a path in {path!r} is a file and a directory", reason="TreeMismatch")
            if path:
                parent, _, directory_name = path.rpartition("/")
                raw, number = directory_name.encode(), len(files) + len(self._directories)
                rows_by_directory[parent].append((raw + b"/", b"40000 %s\0" % raw, number))
            self._directories.append(
                _LayoutDirectory(path, tuple((row, number) for _, row, number in rows))
            )

    def write(self, entries: Mapping[str, TreeEntry], add: AddDirectory) -> bytes:
        """Pass each directory of a package to `add`, deepest first; return the id of the root.

        `entries` are the files of the package in the order of the layout's paths.
        """
        ids = [bytes.fromhex(oid) for _, oid in entries.values()]
        for directory in self._directories:
            rows = [row + ids[number] for row, number in directory.row_prefixes]
            ids.append(add(directory.path, rows))
        return ids[-1]


class PackageLayouts:
    """Memo of the layouts of one change, by paths and modes."""

    def __init__(self) -> None:
        self._layouts: dict[tuple[tuple[str, ...], tuple[str, ...]], PackageLayout] = {}

    def layout_of(self, entries: Mapping[str, TreeEntry]) -> PackageLayout:
        """Return the layout of a package. Raises InvalidInput and Bug as `PackageLayout` does."""
        paths, modes = tuple(entries), tuple([mode for mode, _ in entries.values()])
        if (paths, modes) not in self._layouts:
            self._layouts[paths, modes] = PackageLayout([*zip(paths, modes, strict=True)])
        return self._layouts[paths, modes]
