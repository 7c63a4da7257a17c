"""Private bare mirrors, one per URL: a cache that may be killed, filled up, damaged or deleted.

Nothing in a mirror is the only copy of anything. Who opens one gets it whole: what a killed process
left behind is swept away, what cannot be used is made again.
"""

import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pygit2

from fanout.errors import Unavailable
from fanout.git.address import Address
from fanout.git.lock import locked
from fanout.values import frozen

PATIENCE = 120.0  # seconds to wait for another process that works on the same mirror
_MARK = "fanout-damaged"
_LEFTOVERS = (
    "*.lock",
    "*.stream",
    "fast_import_crash_*",
    "packed-refs.new",
    "refs/**/*.lock",
    "objects/pack/tmp_*",
)

# No `+` in the mappings: a forced refspec would defeat the leases (design §5).
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
\twriteCommitGraph = false
[fastimport]
\tunpackLimit = 1
[protocol]
\tversion = 2
[credential]
\thelper =
[remote "origin"]
\turl = {url}
\tfetch = refs/heads/*:refs/fanout/seen/heads/*
\tfetch = refs/tags/*:refs/fanout/seen/tags/*
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
            for leftover in self.directory.glob(f"{path.stem}.*-*"):
                shutil.rmtree(leftover, ignore_errors=True)
            fresh = not _usable(path)
            if fresh:
                self._make(path, address)
            _sweep(path)
            _configure(path, address)
            yield Mirror(path, fresh)

    def drop(self, mirror: Mirror) -> None:
        """Remove a mirror that is held; the next opening makes it again."""
        doomed = tempfile.mkdtemp(prefix=f"{mirror.path.stem}.dropped-", dir=self.directory)
        with suppress(FileNotFoundError):  # somebody may have deleted it under us
            mirror.path.rename(Path(doomed) / "mirror")
        shutil.rmtree(doomed, ignore_errors=True)

    def _make(self, path: Path, address: Address) -> None:
        """In a temporary sibling, so that no half-made mirror ever has the mirror's name."""
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        making = Path(tempfile.mkdtemp(prefix=f"{path.stem}.making-", dir=self.directory))
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


def _usable(path: Path) -> bool:
    if not all((path / part).exists() for part in ("HEAD", "objects/pack", "refs", "config")):
        return False
    if (path / _MARK).exists():
        return False
    try:
        pygit2.Repository(str(path), pygit2.enums.RepositoryOpenFlag.BARE).free()
    except (pygit2.GitError, OSError):
        return False
    return True


def _sweep(path: Path) -> None:
    """Take away what a killed git left: its locks would stop the next one."""
    for pattern in _LEFTOVERS:
        for leftover in path.glob(pattern):
            leftover.unlink(missing_ok=True)


def _configure(path: Path, address: Address) -> None:
    """The configuration is ours to the last byte: nothing in it is trusted from an earlier run."""
    escaped = address.url.replace("\\", "\\\\").replace('"', '\\"')
    content = _CONFIG.format(url=f'"{escaped}"').encode()
    target = path / "config"
    if target.read_bytes() != content:
        fresh = path / "config.lock"
        fresh.write_bytes(content)
        fresh.replace(target)
