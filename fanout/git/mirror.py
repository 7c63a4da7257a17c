"""Private bare mirrors of repositories: locks, creation, cleanup, configuration, repacking.

Every change adds a pack, and each object lookup searches all packs. Drafts that were superseded
stay in old packs. They are removed when the other packs have half as many objects as the largest
one: so a mirror has at most one and a half times the remote's objects and one round of packs more,
and the largest pack is written again only after it has grown by half.
"""

import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pygit2

from fanout.errors import Unavailable
from fanout.git.git_command import GitProgram
from fanout.git.remote_access import RepositoryAddress
from fanout.git.remote_workers import waiting_for_remote
from fanout.values import Value

_POLL_INTERVAL = 0.02
_HOLDER_WIDTH = 20  # padded, so that a shorter id leaves nothing of a longer one


@contextmanager
def file_lock(path: Path, timeout: float) -> Iterator[None]:
    """Hold the lock file exclusively, against other threads and other processes.

    The lock ends with the process, however it ends. The file contains the process id of its
    holder, for messages. Raises Unavailable after `timeout` seconds.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        # Polling: flock has no timeout, and Python handles the alarm that could end it only in the
        # main thread.
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    holder = os.pread(file, _HOLDER_WIDTH, 0).decode(errors="replace").strip()
                    raise Unavailable(
                        f"process {holder or 'unknown'} has held the mirror for more than"
                        f" {timeout:g} s",
                        reason="MirrorBusy",
                        remedy="wait for that process, or give each process its own --state-dir",
                    ) from None
                time.sleep(_POLL_INTERVAL)
        with suppress(OSError):  # a full disk must not prevent the lock
            os.pwrite(file, str(os.getpid()).ljust(_HOLDER_WIDTH).encode(), 0)
        yield
    finally:
        os.close(file)


LOCK_TIMEOUT = 120.0  # seconds to wait for another process that works on the same mirror
_DAMAGE_MARKER = "fanout-damaged"
_REQUIRED_NAMES = frozenset({"HEAD", "config", "objects", "refs"})
# Streams and crash reports are those of `git fast-import`, which earlier versions ran here.
_LEFTOVER = re.compile(r".*\.(lock|stream)|fast_import_crash_.*|packed-refs\.new")
_PACK_FILE = re.compile(r"(pack-.*)\.(pack|idx)")

# Who made an old commit, and when, is of no consequence, and cannot be mended without rewriting the
# history; everything that could mislead a checkout stays an error.
# No `+` in the mappings: a forced refspec would defeat the leases. The second name of
# the remote has no mappings, since a push gives its own (`fanout.git.push`).
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
[fetch "fsck"]
\tbadDate = warn
\tbadDateOverflow = warn
\tbadEmail = warn
\tbadName = warn
\tbadTimezone = warn
\tmissingEmail = warn
\tmissingNameBeforeEmail = warn
\tmissingSpaceBeforeDate = warn
\tmissingSpaceBeforeEmail = warn
\tzeroPaddedDate = warn
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


class Mirror(Value):
    """An opened mirror; `fresh` is true if this opening created it, so that it is still empty."""

    path: Path
    fresh: bool


class MirrorDirectory:
    """All mirrors below one directory, which several processes may use at once."""

    def __init__(self, directory: Path, lock_timeout: float = LOCK_TIMEOUT) -> None:
        """Create the directory if it is missing, accessible to its owner alone."""
        self.directory = directory
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._inode = directory.stat().st_ino
        self._lock_timeout = lock_timeout

    def path_of(self, address: RepositoryAddress, credentials: str = "") -> Path:
        """Return the path of the mirror of an address and of the secret that it is fetched with."""
        key = f"{address.url}\0{credentials}" if credentials else address.url
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        return self.directory / f"{digest}.git"

    @contextmanager
    def open_locked(self, address: RepositoryAddress, credentials: str = "") -> Iterator[Mirror]:
        """Hold the mirror exclusively, cleaned up and configured. Raises Unavailable."""
        path = self.path_of(address, credentials)
        # Somebody may have deleted the directory while this process runs.
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (inode := self.directory.stat().st_ino) != self._inode:
            self._inode = inode
            # Work that was under way may have created it, accessible to everybody.
            with suppress(PermissionError):
                self.directory.chmod(0o700)
        with ExitStack() as stack:
            with waiting_for_remote(path):
                stack.enter_context(file_lock(path.with_suffix(".lock"), self._lock_timeout))
            fresh = not _remove_leftovers(path)
            if fresh:
                # Made under another name and renamed, so that it is never incomplete. A process
                # killed while it created or deleted the mirror left such a directory.
                temporary = path.with_suffix(".making")
                for leftover in (path, temporary, path.with_suffix(".dropped")):
                    if leftover.is_dir():
                        shutil.rmtree(leftover, ignore_errors=True)
                    else:
                        leftover.unlink(missing_ok=True)
                # Else libgit2 would make missing directories above it, accessible to everybody.
                temporary.mkdir()
                create_bare(temporary)
                _configure(temporary, address)
                temporary.rename(path)
            _configure(path, address)
            yield Mirror(path, fresh)

    def delete(self, mirror: Mirror) -> None:
        """Delete a mirror that is held; the next opening creates it again."""
        # Renamed before it is deleted: a process killed in between leaves no half of a mirror
        # under the mirror's name.
        dropped = mirror.path.with_suffix(".dropped")
        shutil.rmtree(dropped, ignore_errors=True)
        with suppress(FileNotFoundError):  # another process may have deleted it
            mirror.path.rename(dropped)
        shutil.rmtree(dropped, ignore_errors=True)


def create_bare(path: Path) -> None:
    """Create an empty bare repository without the machine's configuration. Raises Unavailable."""
    try:
        pygit2.init_repository(str(path), bare=True, initial_head="main").free()
    except (pygit2.GitError, OSError) as error:
        raise Unavailable(
            f"cannot create a repository at {path}: {error}",
            reason="RepositoryNotMade",
            remedy="check the permissions and the free space of the directory",
        ) from error


def mark_damaged(path: Path) -> None:
    """Mark a mirror as damaged; the next process to hold its lock creates it again."""
    with suppress(OSError):  # a deleted mirror needs no mark
        # A reader holds no lock, so it must not delete the mirror itself.
        (path / _DAMAGE_MARKER).touch()


def _remove_leftovers(path: Path) -> bool:
    """Remove what a killed git left and would block the next one; return whether it is usable."""
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
    if not names >= _REQUIRED_NAMES or _DAMAGE_MARKER in names:
        return False
    leftovers = [path / name for name in names if _LEFTOVER.fullmatch(name)]
    kinds_by_pack: dict[str, set[str]] = {}
    for name in packs:
        if match := _PACK_FILE.fullmatch(name):
            kinds_by_pack.setdefault(match[1], set()).add(match[2])
    # Incomplete packs: temporary ones, lone packs and lone indexes.
    lone = tuple(f"{stem}." for stem, kinds in kinds_by_pack.items() if len(kinds) < 2)
    prefixes = ("tmp_", *lone)
    leftovers += [objects / it for it in packs if it.startswith(prefixes) or it.endswith(".keep")]
    for leftover in (*leftovers, *locks):
        leftover.unlink(missing_ok=True)
    return True


def _configure(path: Path, address: RepositoryAddress) -> None:
    """Write the complete configuration of the mirror. Nothing of an earlier run is trusted."""
    escaped = address.url.replace("\\", "\\\\").replace('"', '\\"')
    config = _CONFIG.format(url=f'"{escaped}"').encode()
    for name, content in (("config", config), ("HEAD", b"ref: refs/heads/main\n")):
        if (path / name).read_bytes() != content:
            temporary = path / f"{name}.lock"
            temporary.write_bytes(content)
            temporary.replace(path / name)


def mirror_state(path: Path) -> tuple[int, ...]:
    """Return a value that differs after each change of the mirror's refs or packs.

    Writers of refs and packs create new files (`write_refs`, git itself), and listing moves loose
    refs into the packed ones.
    """
    state: list[int] = []
    for part in ("packed-refs", "objects/pack", "refs/fanout"):
        try:
            status = os.stat(path / part)  # noqa: PTH116
        except FileNotFoundError:
            state.append(0)
        else:
            state += (status.st_ino, status.st_mtime_ns, status.st_size)
    return tuple(state)


MAX_PACKS = 100
_INDEX_SIZE, _INDEX_ENTRY_SIZE = 1072, 28  # bytes of an index: of itself and for each object


def repack_if_due(git: GitProgram, mirror: Path, max_packs: int = MAX_PACKS) -> None:
    """Join packs if there are more than `max_packs`; the caller holds the mirror's lock."""
    indexes = (mirror / "objects" / "pack").glob("*.idx")
    # The number of objects follows from the size of the index: no index is opened.
    counts = [(index.stat().st_size - _INDEX_SIZE) // _INDEX_ENTRY_SIZE for index in indexes]
    if len(counts) <= max_packs:
        return
    largest = max(counts)
    # Git's own rule for --geometric=2: while the others have less than half the objects of the
    # largest pack, that pack stays. Otherwise a geometric repack would join it too and keep
    # unreachable objects; a full repack costs as much and drops them.
    if (sum(counts) - largest) * 2 < largest:
        git.run(mirror, ["repack", "-d", "-q", "--geometric=2"])
    else:
        git.run(mirror, ["repack", "-a", "-d", "-q"])
