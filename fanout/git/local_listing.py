"""Listing of a repository on this machine: its ref files are read, and no process is started.

The answer is what `git ls-remote` would say. Whatever is unusual is left to git, which has the
checks and the words for it.
"""

import os
import re
from collections.abc import Callable
from urllib.parse import urlsplit

from fanout.git.mirror_refs import FORBIDDEN_IN_REF

_HEAD = re.compile(rb"ref: refs/|[0-9a-f]{40}\n")
# Settings with which git lists less, or reads other files. Never split over lines, or quoted.
_UNUSUAL_SETTINGS = re.compile(rb"hiderefs|include|extensions", re.IGNORECASE)
_PACKED_REFS = re.compile(rb"(?:[0-9a-f]{40} refs/[^\n]+\n(?:\^[0-9a-f]{40}\n)?+)*+")
_OID = re.compile(rb"[0-9a-f]{40}\n?")
_LISTED = (b"refs/heads/", b"refs/tags/")
_READ_SIZE = 1 << 20  # bytes


def list_local(url: str, peel: Callable[[str], str]) -> bytes | None:
    """Return branches and tags as `git ls-remote --heads --tags` prints them; None: ask git.

    `peel` returns the id of the object behind a tag, and the id of any other object itself.
    It raises KeyError for an object that it does not know.

    Files are read by calls that let other threads go on: a disk may be that of another machine,
    and hang. A ref is listed although its object is lost, which git does not.
    """
    try:
        directory = _find_git_directory(url)
        # Before the packed ones: git packs a ref first, and removes its file afterwards.
        loose = _read_loose(directory, b"heads") | _read_loose(directory, b"tags")
        refs, peeled = _read_packed(directory)
        for ref, oid in loose.items():
            refs[ref] = oid
            peeled.pop(ref, None)
            if ref.startswith(b"refs/tags/") and (behind := peel(oid.decode()).encode()) != oid:
                peeled[ref] = behind
    except (OSError, ValueError, KeyError):
        return None
    lines = []
    for ref in sorted(it for it in refs if it.startswith(_LISTED)):
        lines.append(b"%s\t%s\n" % (refs[ref], ref))
        if ref in peeled:
            lines.append(b"%s\t%s^{}\n" % (peeled[ref], ref))
    return b"".join(lines)


def _find_git_directory(url: str) -> bytes:
    """Return the directory with the refs. Raises OSError or ValueError where git has to look."""
    path = os.fsencode(url)
    if "://" in url:
        parts = urlsplit(url)
        if parts.netloc or "%" in url or parts.query or parts.fragment:
            raise ValueError(url)
        path = os.fsencode(parts.path)
    inner = os.path.join(path, b".git")  # noqa: PTH118 bytes
    directory = inner if os.path.lexists(inner) else path
    # Git refuses the repositories of other users.
    if any(os.stat(it).st_uid != os.geteuid() for it in {path, directory}):  # noqa: PTH116 bytes
        raise ValueError(path)
    settings = _read(directory + b"/config")
    is_plain = _HEAD.match(_read(directory + b"/HEAD")) and not (
        _UNUSUAL_SETTINGS.search(settings) or os.path.lexists(directory + b"/commondir")
    )
    folders = (directory + b"/objects", directory + b"/refs")
    if not is_plain or not all(map(os.path.isdir, folders)):
        raise ValueError(path)
    return directory


def _read_loose(directory: bytes, kind: bytes) -> dict[bytes, bytes]:
    """Return the ids of the refs that have a file. Raises OSError, ValueError."""
    refs: dict[bytes, bytes] = {}
    pending = [b"refs/" + kind]
    while pending:
        folder = pending.pop()
        try:
            entries = list(os.scandir(os.path.join(directory, folder)))  # noqa: PTH118 bytes
        except FileNotFoundError:  # its last ref was packed or removed
            continue
        for entry in entries:
            name = folder + b"/" + entry.name
            if entry.is_dir(follow_symlinks=False):
                pending.append(name)
            elif not name.endswith(b".lock"):
                try:
                    oid = _read(entry.path)
                except FileNotFoundError:
                    continue
                if FORBIDDEN_IN_REF.search(os.fsdecode(name)) or not _OID.fullmatch(oid):
                    raise ValueError(name)
                refs[name] = oid[:40]
    return refs


def _read_packed(directory: bytes) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    """Return the ids of the packed refs, and what is behind those that are annotated tags.

    Raises OSError, ValueError.
    """
    try:
        header, _, text = _read(directory + b"/packed-refs").partition(b"\n")
    except FileNotFoundError:
        return {}, {}
    if b" fully-peeled " not in header or not _PACKED_REFS.fullmatch(text):
        raise ValueError(header)
    refs: dict[bytes, bytes] = {}
    peeled: dict[bytes, bytes] = {}
    name = b""
    for line in text.split(b"\n")[:-1]:
        if line.startswith(b"^"):
            peeled[name] = line[1:]
        else:
            oid, _, name = line.partition(b" ")
            refs[name] = oid
    return refs, peeled


def _read(path: bytes) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # a pipe must not block
    try:
        content = b""
        while part := os.read(file, _READ_SIZE):
            content += part
        return content
    finally:
        os.close(file)
