"""Disk cache of parsed manifests, keyed by content (docs/memo.md).

A new process reuses here what an earlier one parsed of thousands of objects. As a cache
it may be deleted at any time; an entry that is not exactly as written counts as
missing; and a failure to write is not an error.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Final

from fanout.disk_cache import HEADER_SIZE, installed_version, read_cache_file, write_cache_file
from fanout.selection.cluster_objects import ObjectsByKind

CACHE_LIMIT: Final = 256 << 20  # bytes of all entries; 20,000 objects of 1 kB need 12 MB
MIN_FILE_SIZE: Final = 8 << 10  # bytes of a file; smaller ones are read as fast as their entries
_FORMAT: Final = 2  # raised whenever the same file yields other objects
_TOUCH_INTERVAL: Final = 3600  # seconds until another use of an entry is worth a write


class ManifestCache:
    """Cache of plain objects in a directory of entries, which several processes may share."""

    def __init__(self, directory: Path, limit: int = CACHE_LIMIT) -> None:
        """Use `directory`, created on the first write; `limit` is in bytes for all entries."""
        self._directory = directory
        self._limit = limit
        # Bytes that may be written before the directory is listed again.
        self._free_bytes = 0

    def find(self, key: str, texts: dict[Any, Any]) -> ObjectsByKind | None:
        """Return the objects stored under the key; None if missing or damaged.

        `texts` collects strings and integers, so that equal ones of all files are one object.
        """
        path = self._directory / key
        try:
            status = path.stat()
            body = read_cache_file(path, key) if status.st_size <= self._max_entry_size else None
            if body is None:
                return None
            kinds = _unpack_objects(body, texts)
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return None
        if time.time() - status.st_mtime > _TOUCH_INTERVAL:
            with suppress(OSError):
                os.utime(path)
        return kinds

    def store(self, key: str, kinds: ObjectsByKind) -> None:
        """Store the objects under the key; delete the least recently used entries for space."""
        # Two lines of JSON: distinct values, then the objects, which contain positions in the first
        # line. The JSON parser has a hook for integers, so equal strings become one object at
        # hardly any cost; most strings repeat.
        positions: dict[str | int, int] = {}
        rows = [[group, kind, [*names.values()]] for (group, kind), names in kinds.items()]
        packed_rows = _pack_value(rows, positions)
        lines = (json.dumps(line, separators=(",", ":")) for line in ([*positions], packed_rows))
        body = "\n".join(lines).encode()
        if HEADER_SIZE + len(body) > self._max_entry_size:
            return
        with suppress(OSError):  # a directory without write permission: no cache
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # The directory is listed again only when the free bytes of the last listing are used
            # up. Half is freed at once, so that a full cache is not listed for every entry.
            size = HEADER_SIZE + len(body)
            if self._free_bytes < size:
                with os.scandir(self._directory) as directory_entries:
                    entries = [(entry.stat(), entry.name) for entry in directory_entries]
                used = sum(status.st_size for status, _ in entries)
                if used + size > self._limit:
                    for status, name in sorted(entries, key=lambda entry: entry[0].st_mtime):
                        (self._directory / name).unlink(missing_ok=True)
                        used -= status.st_size
                        if used <= self._limit // 2:
                            break
                self._free_bytes = self._limit - used
            self._free_bytes -= size
            # the key guards against renamed entries
            write_cache_file(self._directory / key, body, key)

    @property
    def _max_entry_size(self) -> int:
        return self._limit // 4


def compute_cache_key(digest: bytes, *, as_json: bool) -> str:
    """Compute the cache key of a file from its digest and all else its objects depend on."""
    # The version invalidates all entries with every release: a fixed parser may read the
    # same bytes differently.
    inputs = f"{_FORMAT} {installed_version()} {as_json} {digest.hex()}"
    return hashlib.sha256(inputs.encode()).hexdigest()


def _pack_value(value: Any, positions: dict[str | int, int]) -> Any:
    if value.__class__ is str or value.__class__ is int:
        return positions.setdefault(value, len(positions))
    if value.__class__ is list:
        return [_pack_value(it, positions) for it in value]
    if value.__class__ is not dict:
        return value
    packed: dict[str, Any] = {}
    for key, item in value.items():  # most are strings, in every value of every object
        if item.__class__ is str:
            packed[key] = positions.setdefault(item, len(positions))
        else:
            packed[key] = _pack_value(item, positions)
    return packed


def _unpack_objects(body: bytes, texts: dict[Any, Any]) -> ObjectsByKind:
    """Decode the objects by kind and name. Raises TypeError, ValueError or KeyError."""
    first, _, second = body.partition(b"\n")
    strings = json.loads(first)
    numbers = (
        _decimal_strings()
        if len(strings) <= len(_decimal_strings())
        else map(str, range(len(strings)))
    )
    value_by_position = dict(zip(numbers, map(texts.setdefault, strings, strings), strict=False))
    kinds: dict[tuple[str, str], dict[tuple[str, str], Mapping[str, Any]]] = {}
    for group, kind, items in json.loads(second, parse_int=value_by_position.__getitem__):
        names = kinds[group, kind] = {}
        for item in items:
            meta = item["metadata"]
            names[meta["namespace"], meta["name"]] = item
    return kinds


@cache
def _decimal_strings() -> tuple[str, ...]:
    """Return decimal strings of small integers, enough for files of some hundred objects."""
    return tuple(map(str, range(1 << 13)))
