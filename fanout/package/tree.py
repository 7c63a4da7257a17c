"""Git's ids of files and directories, computed without Git."""

import hashlib
from collections.abc import Mapping
from typing import NamedTuple


class Entry(NamedTuple):
    """A file in a tree: mode as git writes it (100644, 100755, 120000) and blob id in hex."""

    mode: str
    oid: str


def blob_id(data: bytes) -> str:
    """The id git gives to a file of this content (SHA-1 object format)."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def tree_id(files: Mapping[str, Entry]) -> str:
    """The id git gives to a directory with these files; paths use ``/``.

    Raises ValueError when one path is a file and a directory.
    """
    return _tree_id(sorted((path.split("/"), entry) for path, entry in files.items()))


def _tree_id(files: list[tuple[list[str], Entry]]) -> str:
    rows: list[tuple[bytes, bytes]] = []  # (name as git sorts it, row)
    inside: dict[str, list[tuple[list[str], Entry]]] = {}
    for (name, *rest), entry in files:
        if rest:
            inside.setdefault(name, []).append((rest, entry))
        else:
            mode = entry.mode.encode()
            raw = name.encode()
            rows.append((raw, b"%s %s\0%s" % (mode, raw, bytes.fromhex(entry.oid))))
    names = {name for name, _ in rows}
    for name, children in inside.items():
        raw = name.encode()
        if raw in names:
            raise ValueError(f"{name} is a file and a directory")
        # git sorts a directory as if its name ended with a slash
        rows.append((raw + b"/", b"40000 %s\0%s" % (raw, bytes.fromhex(_tree_id(children)))))
    body = b"".join(row for _, row in sorted(rows))
    return hashlib.sha1(b"tree %d\0" % len(body) + body, usedforsecurity=False).hexdigest()
