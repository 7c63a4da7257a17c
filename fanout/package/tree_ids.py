"""Git's ids of files and directories, computed without Git."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple


class TreeEntry(NamedTuple):
    """File in a tree: mode as git writes it (100644, 100755, 120000) and blob id in hex."""

    mode: str
    oid: str


def blob_id(data: bytes) -> str:
    """Return git's id of a file with this content (SHA-1 object format)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def tree_id(files: Mapping[str, TreeEntry]) -> str:
    """Return git's id of a directory with these files; paths use ``/``.

    Raises ValueError if one path is a file and a directory.
    """
    return _hash_tree(sorted((path.split("/"), entry) for path, entry in files.items()))


def _hash_tree(files: list[tuple[list[str], TreeEntry]]) -> str:
    rows: list[tuple[bytes, bytes]] = []  # (name as git sorts it, row)
    subdirectories: dict[str, list[tuple[list[str], TreeEntry]]] = {}
    for (name, *rest), entry in files:
        if rest:
            subdirectories.setdefault(name, []).append((rest, entry))
        else:
            # The id covers the mode in ASCII and the child's id as raw bytes, not in hex.
            mode = entry.mode.encode()
            raw = name.encode()
            rows.append((raw, b"%s %s\0%s" % (mode, raw, bytes.fromhex(entry.oid))))
    names = {name for name, _ in rows}
    for name, children in subdirectories.items():
        raw = name.encode()
        if raw in names:
            raise ValueError(f"{name} is a file and a directory")
        # git sorts a directory as if its name ended with a slash
        rows.append((raw + b"/", b"40000 %s\0%s" % (raw, bytes.fromhex(_hash_tree(children)))))
    body = b"".join(row for _, row in sorted(rows))
    return hashlib.sha1(b"tree %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
