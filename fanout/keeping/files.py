"""Files that may be deleted at any time: written whole, and believed only as they were written.

Each begins with a digest of what is in it and of who made it. What is damaged, cut off or made by
another version is not there. That one cannot be written is no fault: the next process does without.
"""

import hashlib
import os
from pathlib import Path
from typing import Final

SEAL: Final = 65  # bytes of the first line: the digest


def read_kept(path: Path, made_by: str) -> bytes | None:
    """The content that the same maker has written; None when there is none to believe."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
    except OSError:
        return None
    return content if digest == _digest(content, made_by) else None


def write_kept(path: Path, content: bytes, made_by: str) -> None:
    """Put it in place of what was there; whoever reads meanwhile reads one or the other."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(_digest(content, made_by) + b"\n" + content)
        temporary.replace(path)
    except OSError:
        _remove(temporary)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # where nothing can be written, nothing was
        return


def _digest(content: bytes, made_by: str) -> bytes:
    digest = hashlib.sha256(made_by.encode() + b"\0")
    digest.update(content)
    return digest.hexdigest().encode()
