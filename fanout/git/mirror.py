"""Private bare mirrors, one per URL: a cache that may be killed, filled up, damaged or deleted.

Nothing in a mirror is the only copy of anything. Who opens one gets it whole: what a killed process
left behind is swept away, what cannot be used is made again.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pygit2

from fanout.errors import Unavailable
from fanout.git.address import Address
from fanout.git.lock import locked
from fanout.values import frozen

PATIENCE = 120.0  # seconds to wait for another process that works on the same mirror
_MARK = "fanout-damaged"
_NEEDED = frozenset({"HEAD", "config", "objects", "refs"})
_LEFTOVER = re.compile(r".*\.(lock|stream)|fast_import_crash_.*|packed-refs\.new")
_PACK = re.compile(r"(pack-.*)\.(pack|idx)")

_HEAD = b"ref: refs/heads/main\n"

# No `+` in the mappings: a forced refspec would defeat the leases (design §5). By its second name
# the remote has none: a push says what it needs (`fanout.git.push`).
_CONFIG = """[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
\thooksPath = /dev/null
\tlogAllRefUpdates = false
\tfsync = none
[gc]
\tauto = 0
[maintenance]
\tauto = false
[transfer]
\tfsckObjects = true
[receive]
\tfsckObjects = true
[fetch]
\tfsckObjects = true
\tunpackLimit = 1
\twriteCommitGraph = false
[fastimport]
\tunpackLimit = 1
[http]
\tpostBuffer = 16777216
[protocol]
\tversion = 2
[credential]
\thelper =
[remote "origin"]
\turl = {url}
\tfetch = refs/heads/*:refs/fanout/seen/heads/*
\tfetch = refs/tags/*:refs/fanout/seen/tags/*
[remote "unmapped"]
\turl = {url}
"""


@frozen
class Mirror:
    """An opened mirror. `fresh`: it was made by this opening, so nothing is in it yet."""

    path: Path
    fresh: bool


class Mirrors:
    """All mirrors below one directory, which several processes may use."""

    def __init__(self, directory: Path, patience: float = PATIENCE) -> None:
        """The directory is made when it is not there, for its owner alone."""
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.directory = directory
        self._patience = patience

    def path(self, address: Address) -> Path:
        """Where the mirror is or will be."""
        digest = hashlib.sha256(address.url.encode()).hexdigest()[:24]
        return self.directory / f"{digest}.git"

    @contextmanager
    def opened(self, address: Address) -> Iterator[Mirror]:
        """Hold the mirror alone, whole and configured. Raises Unavailable when it stays busy."""
        path = self.path(address)
        with locked(path.with_suffix(".lock"), self._patience):
            fresh = not _swept(path)
            if fresh:
                self._make(path, address)
            _configure(path, address)
            yield Mirror(path, fresh)

    def drop(self, mirror: Mirror) -> None:
        """Remove a mirror that is held; the next opening makes it again."""
        dropped = mirror.path.with_suffix(".dropped")
        shutil.rmtree(dropped, ignore_errors=True)
        with suppress(FileNotFoundError):  # somebody may have deleted it under us
            mirror.path.rename(dropped)
        shutil.rmtree(dropped, ignore_errors=True)

    def _make(self, path: Path, address: Address) -> None:
        """In a sibling, so that no half-made mirror ever has the mirror's name.

        Who was killed while it was made or dropped left such a sibling and no mirror.
        """
        making = path.with_suffix(".making")
        for left in (path, making, path.with_suffix(".dropped")):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
        create_bare(making)
        _configure(making, address)
        making.rename(path)


def create_bare(path: Path) -> None:
    """An empty bare repository, whatever the machine's configuration and templates say.

    Raises Unavailable when the place cannot be written.
    """
    try:
        pygit2.init_repository(str(path), bare=True, initial_head="main").free()
    except (pygit2.GitError, OSError) as error:
        raise Unavailable(
            f"no repository can be made at {path}: {error}",
            reason="RepositoryNotMade",
            remedy="check the directory's permissions and the room on its disk",
        ) from error


def mark_damaged(path: Path) -> None:
    """Say that a mirror cannot be read; who holds its lock next makes it again."""
    with suppress(OSError):  # one that is gone needs no mark
        (path / _MARK).touch()


def _swept(path: Path) -> bool:
    """Take away what a killed git left: its locks would stop the next one.

    False where there is no mirror or none that can be used.
    """
    objects = path / "objects" / "pack"
    try:
        names = {entry.name for entry in os.scandir(path)}
        packs = [entry.name for entry in os.scandir(objects)]
        locks = [
            Path(folder, name)
            for folder, _, files in os.walk(path / "refs")
            for name in files
            if name.endswith(".lock")
        ]
    except OSError:
        return False
    if not names >= _NEEDED or _MARK in names:
        return False
    found = [path / name for name in names if _LEFTOVER.fullmatch(name)]
    for leftover in (*found, *locks, *(objects / name for name in _left_of_packs(packs))):
        leftover.unlink(missing_ok=True)
    return True


def _left_of_packs(names: Collection[str]) -> list[str]:
    """Files that are no part of a whole pack: temporary ones, packs and indexes by themselves."""
    parts: dict[str, set[str]] = {}
    for name in names:
        if found := _PACK.fullmatch(name):
            parts.setdefault(found[1], set()).add(found[2])
    broken = tuple(f"{stem}." for stem, kinds in parts.items() if len(kinds) < 2)
    return [name for name in names if name.startswith(("tmp_", *broken)) or name.endswith(".keep")]


def _configure(path: Path, address: Address) -> None:
    """What git is told here is ours to the last byte: nothing is trusted from an earlier run."""
    escaped = address.url.replace("\\", "\\\\").replace('"', '\\"')
    _let_be(path, "config", _CONFIG.format(url=f'"{escaped}"').encode())
    _let_be(path, "HEAD", _HEAD)


def _let_be(mirror: Path, name: str, content: bytes) -> None:
    target = mirror / name
    if target.read_bytes() != content:
        fresh = mirror / f"{name}.lock"
        fresh.write_bytes(content)
        fresh.replace(target)


def state_of(path: Path) -> tuple[int, ...]:
    """Another one for each change of the mirror's refs or packs; none for what has no mirror.

    Whoever writes them makes new files of them (`write_refs`, git itself), and loose refs are
    none of ours: they are swept into the packed ones by each look.
    """
    found: list[int] = []
    for part in ("packed-refs", "objects/pack", "refs/fanout"):
        try:
            status = os.stat(path / part)  # noqa: PTH116 - as it says
        except FileNotFoundError:
            found.append(0)
        else:
            found += (status.st_ino, status.st_mtime_ns, status.st_size)
    return tuple(found)
