"""Files that were read before: what they held, by what they are (design §12).

A command that begins finds here what an earlier one made of thousands of objects. It is a cache:
it may be deleted at any time, an entry that is not exactly what was written is not there, and that
it cannot be written is no fault.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from fanout.keeping.files import SEAL, read_kept, write_kept
from fanout.selection.objects import Kinds

LIMIT: Final = 256 << 20  # bytes of all entries; 20,000 objects of 1 kB need 12 MB
SMALLEST: Final = 8 << 10  # bytes of a file; smaller ones are read as fast as their entries
_FORMAT: Final = 2  # to be raised when the same file yields other objects than before
_UNTOUCHED: Final = 3600  # seconds until another use of an entry is worth a write


class ParsedFiles:
    """Plain objects of files in a directory of entries; several processes may use it at once."""

    def __init__(self, directory: Path, limit: int = LIMIT) -> None:
        """The directory is made when something is kept; `limit` is the bytes of all its entries."""
        self._directory = directory
        self._limit = limit
        self._room = 0  # bytes that may be written until it is looked again how many there are

    def find(self, key: str, texts: dict[Any, Any]) -> Kinds | None:
        """What was kept under the key; None when nothing was, or when it is not that any more.

        `texts` collects the texts and numbers of all files, so that equal ones are one object.
        """
        path = self._directory / key
        try:
            status = path.stat()
            body = read_kept(path, key) if status.st_size <= self._largest else None
            if body is None:
                return None
            kinds = _unpacked(body, texts)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        if time.time() - status.st_mtime > _UNTOUCHED:
            with suppress(OSError):
                os.utime(path)
        return kinds

    def keep(self, key: str, kinds: Kinds) -> None:
        """Keep the objects; what was not used for the longest time goes where room is short."""
        body = _packed(kinds)
        if SEAL + len(body) > self._largest:
            return
        with suppress(OSError):  # a directory that is not ours to write: then without
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._make_room(SEAL + len(body))
            write_kept(self._directory / key, body, key)  # so that none is taken for another

    @property
    def _largest(self) -> int:
        return self._limit // 4

    def _make_room(self, size: int) -> None:
        """Where there is no room for so many bytes more, leave half. Raises OSError."""
        if self._room < size:
            with os.scandir(self._directory) as listed:
                entries = [(entry.stat(), entry.name) for entry in listed]
            used = sum(status.st_size for status, _ in entries)
            if used + size > self._limit:
                for status, name in sorted(entries, key=lambda entry: entry[0].st_mtime):
                    (self._directory / name).unlink(missing_ok=True)
                    used -= status.st_size
                    if used <= self._limit // 2:
                        break
            self._room = self._limit - used
        self._room -= size


def key_of(digest: bytes, namespace: str, *, as_json: bool) -> str:
    """The key for a file of this digest, and all else on which it depends what the file holds."""
    about = f"{_FORMAT} {_version()} {namespace} {as_json} {digest.hex()}"
    return hashlib.sha256(about.encode()).hexdigest()


@cache
def _version() -> str:
    return version("fanout")


def _packed(kinds: Kinds) -> bytes:
    """Two lines of JSON: all texts and whole numbers, each once, and the objects.

    In the objects stand their places in the first line: what reads JSON asks what a number means,
    and so equal texts become one object at hardly any cost. Most texts repeat.
    """
    places: dict[str | int, int] = {}
    rows = [[group, kind, [*names.values()]] for (group, kind), names in kinds.items()]
    packed = _items(rows, places)
    lines = (json.dumps(line, separators=(",", ":")) for line in ([*places], packed))
    return "\n".join(lines).encode()


def _items(values: Iterable[Any], places: dict[str | int, int]) -> list[Any]:
    return [
        _entries(value, places) if value.__class__ is dict else _item(value, places)
        for value in values
    ]


def _item(value: Any, places: dict[str | int, int]) -> Any:
    if value.__class__ is str or value.__class__ is int:
        return places.setdefault(value, len(places))
    return _items(value, places) if value.__class__ is list else value


def _entries(values: Mapping[str, Any], places: dict[str | int, int]) -> dict[str, Any]:
    packed: dict[str, Any] = {}
    for key, value in values.items():  # a loop: this runs for every value of every object
        if value.__class__ is str:
            packed[key] = places.setdefault(value, len(places))
        elif value.__class__ is dict:
            packed[key] = _entries(value, places)
        else:
            packed[key] = _item(value, places)
    return packed


def _unpacked(body: bytes, texts: dict[Any, Any]) -> Kinds:
    """The objects by their names. Raises TypeError, ValueError or KeyError for anything else."""
    first, _, second = body.partition(b"\n")
    known = json.loads(first)
    numbers = _numbers() if len(known) <= len(_numbers()) else map(str, range(len(known)))
    meaning = dict(zip(numbers, map(texts.setdefault, known, known), strict=False))
    kinds: dict[tuple[str, str], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for group, kind, items in json.loads(second, parse_int=meaning.__getitem__):
        names = kinds[group, kind] = {}
        for item in items:
            meta = item["metadata"]
            names[meta["namespace"], meta["name"]] = item
    return kinds


@cache
def _numbers() -> tuple[str, ...]:
    """Numbers as they stand in JSON; enough for files of some hundred objects."""
    return tuple(map(str, range(1 << 13)))
