"""What an expression reads of a row: the rest is neither sent to a child nor kept apart.

`Reads` is a tree of field names; a leaf (an empty mapping) stands for the whole value there. Ten
thousand targets have few regions and stages: rows that look alike to an expression are asked once.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

# Mapping[str, "Reads"], which the type checker cannot be told in Python 3.11.
Reads = Mapping[str, Any]

KEPT_AS_IS = 64  # characters of a key that is not worth hashing


def add_path(reads: dict[str, Any], path: tuple[str, ...]) -> None:
    """Note that `path` is read whole; what is below it needs no notes of its own."""
    *way, last = path
    for name in way:
        if name in reads and not reads[name]:
            return  # it is read whole already
        reads = reads.setdefault(name, {})
    reads[last] = {}


def project(row: Mapping[str, Any], reads: Reads) -> dict[str, Any]:
    """The part of a row of variables that is read.

    A field that is not there stays away, a value that has no fields stays as it is; so reading the
    part gives the answer, or the error, that reading the whole would give.
    """
    return {name: _part(row[name], below) for name, below in reads.items() if name in row}


def _part(value: Any, reads: Reads) -> Any:
    if not reads or not isinstance(value, Mapping):
        return value
    return {name: _part(value[name], below) for name, below in reads.items() if name in value}


def as_json(part: Mapping[str, Any]) -> str:
    """The text that goes to the child. ValueError, TypeError: it is no plain data."""
    return _ENCODER.encode(part)


def key_of(text: str) -> str | bytes:
    """A short name for the text, under which its answer is kept."""
    return text if len(text) <= KEPT_AS_IS else blake2b(text.encode(), digest_size=24).digest()


def _as_dict(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} is no plain data")


_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=_as_dict)
