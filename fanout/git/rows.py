"""A directory as git stores it: its rows, how they are sorted, what may be in it."""

import re
from collections.abc import Callable

from fanout.errors import InvalidInput

_ROW = re.compile(rb"((\d+) ([^\0]+)\0.{20})", re.DOTALL)
_DIRECTORY = {b"40000", b"040000"}  # the second in very old commits
_FORBIDDEN = {"", ".", "..", ".git"}

ReadTree = Callable[[str], bytes]
"""The bytes of a tree, by its id in hex."""


def split_rows(raw: bytes) -> tuple[list[bytes], list[bytes]]:
    """What git sorts the rows of a directory by, and the rows.

    A directory is sorted as if its name ended with a slash.
    """
    keys: list[bytes] = []
    rows: list[bytes] = []
    for row, mode, name in _ROW.findall(raw):
        keys.append(name + b"/" if mode in _DIRECTORY else name)
        rows.append(row)
    return keys, rows


def directory_row(name: bytes, oid: bytes) -> bytes:
    """The row of a directory."""
    return b"40000 %s\0%s" % (name, oid)


def check_path(path: str) -> str:
    """A path that a tree may have, else InvalidInput."""
    if "\0" in path or not _FORBIDDEN.isdisjoint(path.lower().split("/")):
        raise InvalidInput(
            f"{path!r} is no path that git stores",
            reason="InvalidPath",
            remedy="use a relative path without '..' and '.git'",
        )
    return path


def blocked(path: str, name: bytes) -> InvalidInput:
    """The error for a package that cannot be at the path because of a file of this name."""
    return InvalidInput(
        f"{path} cannot be a directory: {name.decode(errors='replace')} is a file",
        reason="PathBlocked",
        remedy="remove the file or choose another package path",
    )
