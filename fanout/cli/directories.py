"""Packages in plain directories: read whole and with their modes, written whole or not at all.

The package engine is pure and works on files by path; this is its one door to a file system.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from fanout.api.reasons import Reason
from fanout.errors import Conflict, FanoutError, InvalidInput, Unavailable, Where
from fanout.package.invalid import InvalidManifest
from fanout.package.merge.packages import Content, Files
from fanout.values import replace
from fanout.variants.model import Limits

LIMITS = Limits()
_SKIPPED = ".git"
_STAGE = ".fanout-stage-"
_FILE, _EXECUTABLE = "100644", "100755"
_KINDS = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)

_Step = Callable[[], object]


# ---- reading ------------------------------------------------------------------------------------


def read_files(directory: Path, limits: Limits = LIMITS) -> dict[str, Content]:
    """The files below the directory by path, with modes as git writes them; `.git` is passed by.

    Raises InvalidInput, naming the file, for what a package may not have, and Unavailable for what
    cannot be read.
    """
    files, faults = scan(directory, limits)
    if faults:
        raise faults[0]
    return files


def scan(
    directory: Path, limits: Limits = LIMITS
) -> tuple[dict[str, Content], tuple[InvalidInput, ...]]:
    """The files that can be in a package, and every fault of the others.

    Reading ends where a limit is exceeded (reason LimitExceeded). Raises Unavailable for what
    cannot be read.
    """
    scanning = _Scan(directory, limits)
    with _translated("cannot be read"):
        scanning.below("")
    return dict(sorted(scanning.files.items())), tuple(scanning.faults)


@dataclass(slots=True)
class _Scan:
    """A directory while it is read."""

    directory: Path
    limits: Limits
    files: dict[str, Content] = field(default_factory=dict)
    faults: list[InvalidInput] = field(default_factory=list)
    size: int = 0
    full: bool = False

    def below(self, path: str) -> None:
        with os.scandir(self.directory / path) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if self.full:
                return
            if entry.name == _SKIPPED:
                continue
            inside = f"{path}/{entry.name}" if path else entry.name
            kind = entry.stat(follow_symlinks=False).st_mode
            if not _is_text(entry.name):
                self._fault(
                    "the name is not UTF-8", "rename it", inside.encode(errors="replace").decode()
                )
            elif inside.startswith(_STAGE):
                problem = "is left of a run that was killed: `old` in it has the files as they were"
                self._fault(problem, "compare them with the package, and remove it", inside)
            elif stat.S_ISDIR(kind) and inside.count("/") >= self.limits.depth:
                problem = f"is in {self.limits.depth} directories"
                self._fault(problem, "nest them less deeply", inside)
            elif stat.S_ISDIR(kind):
                self.below(inside)
            elif stat.S_ISREG(kind):
                self._file(inside)
            else:
                words = next((name for test, name in _KINDS if test(kind)), "no file")
                self._fault(f"is {words}, which a package may not have", "use a file", inside)

    def _file(self, path: str) -> None:
        if len(self.files) >= self.limits.files:
            self._full(f"has more than {self.limits.files:,} files")
            return
        room = self.limits.size - self.size
        # what was a file a moment ago may be a link or a pipe now
        handle = os.open(self.directory / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(handle).st_mode
            data = file.read(min(room, self.limits.file_size) + 1)
        if len(data) > self.limits.file_size:
            self.full = True
            problem = f"the file has more than {self.limits.file_size:,} bytes"
            self._fault(problem, "split the file", path, Reason.LIMIT_EXCEEDED)
            return
        if len(data) > room:
            self._full(f"has more than {self.limits.size:,} bytes")
            return
        self.size += len(data)
        self.files[path] = (_EXECUTABLE if mode & stat.S_IXUSR else _FILE), data

    def _full(self, problem: str) -> None:
        self.full = True
        self._fault(problem, "split the package", reason=Reason.LIMIT_EXCEEDED)

    def _fault(
        self, problem: str, remedy: str, path: str = "", reason: Reason = Reason.INVALID_PACKAGE
    ) -> None:
        where = Where(file=str(self.directory / path))
        self.faults.append(InvalidInput(problem, reason=reason, remedy=remedy, where=where))


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def located(error: InvalidInput, directory: Path) -> InvalidInput:
    """The error with a path that can be opened from here, not one inside the package."""
    if isinstance(error, InvalidManifest):
        return InvalidManifest([located(problem, directory) for problem in error.problems])
    where = replace(error.where, file=str(directory / error.where.file))
    return InvalidInput(error.problem, reason=error.reason, remedy=error.remedy, where=where)


# ---- writing ------------------------------------------------------------------------------------


def new_directory(directory: Path) -> Path:
    """A directory that files may be written to: a new one, or an empty one. Raises InvalidInput."""
    with _translated("cannot be read"):
        if directory.exists() and any(directory.iterdir()):
            raise InvalidInput(
                "the directory is not empty",
                reason=Reason.INVALID_SETTING,
                remedy="name a new one",
                where=Where(file=str(directory)),
            )
    return directory


def write_files(directory: Path, before: Files, after: Files) -> None:
    """Make what was read from the directory (`before`) what it is to be (`after`).

    Files that stay as they are are not touched. All others are prepared in a hidden directory
    beside them and then renamed into their places, each at once; when that fails, those that were
    renamed are put back. Raises Conflict where a file is no longer as it was read, and Unavailable
    where the file system refuses.
    """
    changed = differing(before, after)
    made: list[_Step] = []
    with _translated("cannot be written"):
        try:
            _make(directory, made)
            if changed:
                _replace(directory, {path: before.get(path) for path in changed}, after)
        except BaseException:
            for step in reversed(made):
                step()
            raise


def differing(before: Files, after: Files) -> list[str]:
    """The paths of files that came, went or changed, sorted."""
    paths = sorted(before.keys() | after.keys())
    return [path for path in paths if before.get(path) != after.get(path)]


def _replace(directory: Path, changed: Mapping[str, Content | None], after: Files) -> None:
    stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=directory))
    undo: list[_Step] = []
    try:
        _prepare(directory, stage, changed, after)
        _swap(directory, stage, changed, after, undo)
    except BaseException:
        for step in reversed(undo):  # where that fails, the stage stays: it has what was there
            step()
        shutil.rmtree(stage)
        raise
    shutil.rmtree(stage)


def _make(directory: Path, undo: list[_Step]) -> None:
    """The directory, and those around it."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        undo.append(path.rmdir)


def _prepare(
    directory: Path, stage: Path, changed: Mapping[str, Content | None], after: Files
) -> None:
    """Write what is to come to `stage/new`, and what is there to `stage/old`."""
    for path, content in changed.items():
        target = directory / path
        permissions = None
        if content is not None:
            found = target.read_bytes() if target.is_file() else None
            if found != content[1]:
                raise _changed(target)
            permissions = stat.S_IMODE(target.stat().st_mode)
            _write(stage / "old" / path, content, permissions)
        elif target.is_symlink() or target.is_file():
            raise _changed(target)
        if path in after:
            _write(stage / "new" / path, after[path], permissions)


def _write(path: Path, content: Content, permissions: int | None) -> None:
    mode, data = content
    path.parent.mkdir(parents=True, exist_ok=True)
    umasked = 0o777 if mode == _EXECUTABLE else 0o666
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, umasked)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    if permissions is not None:
        readers = (permissions & 0o444) >> 2
        executable = bool(permissions & stat.S_IXUSR)
        if executable != (mode == _EXECUTABLE):
            permissions = permissions & ~0o111 if executable else permissions | readers
        path.chmod(permissions)


def _swap(
    directory: Path, stage: Path, changed: Collection[str], after: Files, undo: list[_Step]
) -> None:
    """Rename everything into its place; `undo` gets the way back of every step."""

    def back(path: str) -> _Step:
        return lambda: (stage / "old" / path).replace(directory / path)

    for path in changed:
        if path in after:
            continue
        (directory / path).unlink()
        undo.append(back(path))
        _remove_empty(directory, Path(path).parent, undo)
    for path in changed:
        if path not in after:
            continue
        target = directory / path
        _make(target.parent, undo)
        (stage / "new" / path).replace(target)
        undo.append(back(path) if (stage / "old" / path).exists() else target.unlink)


def _remove_empty(directory: Path, path: Path, undo: list[_Step]) -> None:
    """Remove the directories that a file was the last one in."""
    while path != Path():
        here = directory / path
        with suppress(OSError):  # there is something else in it
            here.rmdir()
            undo.append(here.mkdir)
        path = path.parent


def _changed(path: Path) -> FanoutError:
    return Conflict(
        "was changed while it was worked on",
        remedy="run the command once more",
        where=Where(file=str(path)),
    )


@contextmanager
def _translated(problem: str) -> Iterator[None]:
    """Errors of the operating system as ours."""
    try:
        yield
    except OSError as error:
        where = Where(file=os.fsdecode(error.filename or ""))
        words = f"{problem}: {error.strerror or error}"
        raise Unavailable(words, remedy="look at permissions and disk", where=where) from None
