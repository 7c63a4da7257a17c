"""Cache files, written atomically and checked by a digest; any may be deleted.

Each file begins with a digest of its content and of the program version that wrote it.
A file that is damaged, truncated or of another version counts as missing. A failed
write is not an error: the next process computes the result again.
"""

import hashlib
import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeVar

from fanout.message_commands import DISTRIBUTION
from fanout.values import read_json_as

CachedValue = TypeVar("CachedValue")
HEADER_SIZE: Final = 65  # bytes of the first line: the digest


@cache  # the metadata of a distribution is a mail header, which takes a millisecond to parse
def installed_version(distribution: str = DISTRIBUTION) -> str:
    """Return the version of an installed distribution; raises PackageNotFoundError for others."""
    return version(distribution)


def read_cache_file(path: Path, writer_version: str) -> bytes | None:
    """Return the content if the same writer version wrote it undamaged, else None."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if digest == _digest(content, writer_version) else None


def read_cache_value(
    path: Path, writer_version: str, value_type: type[CachedValue]
) -> CachedValue | None:
    """Return the value of the file, or None if the file counts as missing or has another form.

    Versions under development share a number, and may differ in the form.
    """
    content = read_cache_file(path, writer_version)
    try:
        return read_json_as(content, type=value_type) if content is not None else None
    except (ValueError, RecursionError):  # of JSON, of UTF-8, or of its depth
        return None


def write_cache_file(path: Path, content: bytes, writer_version: str) -> None:
    """Replace the cache file atomically. Concurrent readers see the old or the new content."""
    # In the same directory, because a rename is atomic only within one file system; named by the
    # process, because two of them may write the same cache at once.
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(_digest(content, writer_version) + b"\n" + content)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):  # where nothing can be written, nothing was
            temporary.unlink(missing_ok=True)


def _digest(content: bytes, writer_version: str) -> bytes:
    # The zero byte separates version and content: without it "1" + "2x" would equal "12" + "x".
    digest = hashlib.sha256(writer_version.encode() + b"\0")
    digest.update(content)
    return digest.hexdigest().encode()
