"""Packages in plain directories: read completely, written completely or not at all.

The package engine works on files by path; this module alone connects it to a file system.
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
from fanout.errors import Conflict, ErrorLocation, InvalidInput, Unavailable
from fanout.package.tree_ids import FileContent, Files
from fanout.package.yaml_nodes import InvalidManifest
from fanout.values import replace
from fanout.variants.render_model import RenderLimits

DEFAULT_LIMITS = RenderLimits()
_GIT_DIRECTORY = ".git"
_STAGE_PREFIX = ".fanout-stage-"
_FILE_MODE, _EXECUTABLE_MODE = "100644", "100755"
_FORBIDDEN_TYPES = (
    (stat.S_ISLNK, "a symbolic link"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)

_UndoStep = Callable[[], object]


# ---- reading ------------------------------------------------------------------------------------


def read_files(directory: Path, limits: RenderLimits = DEFAULT_LIMITS) -> dict[str, FileContent]:
    """Return the files below the directory by path, without `.git`.

    Modes are those that Git stores: 100644 and 100755. Raises InvalidInput, naming the
    file, for what a package must not contain, and Unavailable for what cannot be read.
    """
    files, faults = scan_directory(directory, limits)
    if faults:
        raise faults[0]
    return files


def scan_directory(
    directory: Path, limits: RenderLimits = DEFAULT_LIMITS
) -> tuple[dict[str, FileContent], tuple[InvalidInput, ...]]:
    """Return the files that a package may contain, and every error of the others.

    Reading ends at a limit (reason LimitExceeded). Raises Unavailable for what cannot be read.
    """
    directory_scan = _DirectoryScan(directory, limits)
    with _translated("cannot be read"):
        directory_scan.scan_below("")
    return dict(sorted(directory_scan.files.items())), tuple(directory_scan.faults)


@dataclass(slots=True)
class _DirectoryScan:
    """Files, errors and size of a directory while it is read."""

    directory: Path
    limits: RenderLimits
    files: dict[str, FileContent] = field(default_factory=dict)
    faults: list[InvalidInput] = field(default_factory=list)
    size: int = 0
    limit_exceeded: bool = False

    def scan_below(self, path: str) -> None:
        with os.scandir(self.directory / path) as scanned:
            entries = sorted(scanned, key=lambda entry: entry.name)
        for entry in entries:
            if self.limit_exceeded:
                return
            if entry.name == _GIT_DIRECTORY:
                continue
            inside = f"{path}/{entry.name}" if path else entry.name
            mode = entry.stat(follow_symlinks=False).st_mode
            readable = inside.encode(errors="replace").decode()
            # Git paths and YAML are UTF-8; other names come from the file system as surrogates.
            if readable != inside:
                self._add_fault("the name is not UTF-8", "rename it", readable)
            elif inside.startswith(_STAGE_PREFIX):
                problem = (
                    "is left over from a killed run; its directory `old` has the files from before"
                )
                self._add_fault(problem, "compare them with the package, and remove it", inside)
            elif stat.S_ISDIR(mode) and inside.count("/") >= self.limits.depth:
                problem = f"is nested in {self.limits.depth} directories"
                self._add_fault(problem, "reduce the nesting", inside)
            elif stat.S_ISDIR(mode):
                self.scan_below(inside)
            elif stat.S_ISREG(mode):
                self._read_file(inside)
            else:
                words = next((name for test, name in _FORBIDDEN_TYPES if test(mode)), "not a file")
                self._add_fault(
                    f"is {words}, which packages must not contain", "use a file", inside
                )

    def _read_file(self, path: str) -> None:
        limits = self.limits
        if len(self.files) >= limits.files:
            self._exceed_limit(f"has more than {limits.files:,} files")
            return
        remaining_size = limits.size - self.size
        # The file may have been replaced by a link or a pipe since the directory was listed.
        handle = os.open(self.directory / path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            mode = os.fstat(handle).st_mode
            # One byte beyond the limit shows that it is exceeded, without reading a file of any
            # size.
            data = file.read(min(remaining_size, limits.file_size) + 1)
        if len(data) > limits.file_size:
            problem = f"the file has more than {limits.file_size:,} bytes"
            self._exceed_limit(problem, "split the file", path)
        elif len(data) > remaining_size:
            self._exceed_limit(f"has more than {limits.size:,} bytes")
        else:
            self.size += len(data)
            self.files[path] = (_EXECUTABLE_MODE if mode & stat.S_IXUSR else _FILE_MODE), data

    def _exceed_limit(
        self, problem: str, remedy: str = "split the package", path: str = ""
    ) -> None:
        self.limit_exceeded = True
        self._add_fault(problem, remedy, path, Reason.LIMIT_EXCEEDED)

    def _add_fault(
        self, problem: str, remedy: str, path: str = "", reason: Reason = Reason.INVALID_PACKAGE
    ) -> None:
        where = ErrorLocation(file=str(self.directory / path))
        self.faults.append(InvalidInput(problem, reason=reason, remedy=remedy, where=where))


def with_directory(error: InvalidInput, directory: Path) -> InvalidInput:
    """Return the error with its file below the directory instead of the package."""
    if isinstance(error, InvalidManifest):
        return InvalidManifest([with_directory(problem, directory) for problem in error.problems])
    where = replace(error.where, file=str(directory / error.where.file))
    return InvalidInput(error.problem, reason=error.reason, remedy=error.remedy, where=where)


# ---- writing ------------------------------------------------------------------------------------


def require_new_directory(directory: Path) -> Path:
    """Return the directory if it does not exist or is empty. Raises InvalidInput otherwise."""
    with _translated("cannot be read"):
        if directory.exists() and any(directory.iterdir()):
            raise InvalidInput(
                "the directory is not empty",
                reason=Reason.INVALID_SETTING,
                remedy="use a new directory",
                where=ErrorLocation(file=str(directory)),
            )
    return directory


def write_files(directory: Path, before: Files, after: Files) -> None:
    """Change the directory from the files `before`, as read from it, to `after`.

    Unchanged files are not touched. All others are prepared in a hidden directory beside them and
    then renamed into place, each atomically; if that fails, the renamed ones are restored. Raises
    Conflict if a file changed since it was read, and Unavailable if the file system refuses.
    """
    changed = {path: before.get(path) for path in find_changed_paths(before, after)}
    with _translated("cannot be written"), _undone() as created:
        _make_directory(directory, created)
        if not changed:
            return
        staging = Path(tempfile.mkdtemp(prefix=_STAGE_PREFIX, dir=directory))
        created.append(lambda: shutil.rmtree(staging))
        # If undoing fails, the staging directory is kept with the old files.
        _stage_files(directory, staging, changed, after)
        _rename_files(directory, staging, changed, after, created)
        created.clear()
        shutil.rmtree(staging)


@contextmanager
def _undone() -> Iterator[list[_UndoStep]]:
    """Undo the steps of the list in reverse order if an error occurs."""
    steps: list[_UndoStep] = []
    try:
        yield steps
    except BaseException:
        for step in reversed(steps):
            step()
        raise


def find_changed_paths(before: Files, after: Files) -> list[str]:
    """Return the paths of added, removed and changed files, sorted."""
    paths = sorted(before.keys() | after.keys())
    return [path for path in paths if before.get(path) != after.get(path)]


def _make_directory(directory: Path, undo: list[_UndoStep]) -> None:
    """Create the directory and its missing parents; `undo` receives their removal."""
    missing = [path for path in (directory, *directory.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir()
        undo.append(path.rmdir)


def _stage_files(
    directory: Path, staging: Path, changed: Mapping[str, FileContent | None], after: Files
) -> None:
    """Write the new contents to `staging/new`, and the present ones to `staging/old`."""
    for path, content in changed.items():
        target = directory / path
        present = target.read_bytes() if target.is_file() else None
        if present != (content[1] if content else None) or (not content and target.is_symlink()):
            raise Conflict(
                "changed during the run",
                remedy="run the command again",
                where=ErrorLocation(file=str(target)),
            )
        permissions = None
        if content is not None:
            permissions = stat.S_IMODE(target.stat().st_mode)
            _write(staging / "old" / path, content, permissions)
        if path in after:
            _write(staging / "new" / path, after[path], permissions)


def _write(path: Path, content: FileContent, permissions: int | None) -> None:
    mode, data = content
    path.parent.mkdir(parents=True, exist_ok=True)
    umasked = 0o777 if mode == _EXECUTABLE_MODE else 0o666
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, umasked)
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    if permissions is not None:
        # Whoever may read the file may execute it once it becomes executable, as umask would have
        # it.
        readers = (permissions & 0o444) >> 2
        if (executable := bool(permissions & stat.S_IXUSR)) != (mode == _EXECUTABLE_MODE):
            permissions = permissions & ~0o111 if executable else permissions | readers
        path.chmod(permissions)


def _rename_files(
    directory: Path, staging: Path, changed: Collection[str], after: Files, undo: list[_UndoStep]
) -> None:
    """Rename every file into place; `undo` receives the reversal of every step."""

    def restore(path: str) -> _UndoStep:
        return lambda: (staging / "old" / path).replace(directory / path)

    # Removals come first: a path may turn from a file into a directory, and the other way round.
    for path in changed:
        if path in after:
            continue
        (directory / path).unlink()
        undo.append(restore(path))
        for parent in Path(path).parents[:-1]:
            with suppress(OSError):  # not empty
                (directory / parent).rmdir()
                undo.append((directory / parent).mkdir)
    for path in changed:
        if path not in after:
            continue
        target = directory / path
        _make_directory(target.parent, undo)
        (staging / "new" / path).replace(target)
        # Without an old copy the file is new, and removing it restores what was before.
        undo.append(restore(path) if (staging / "old" / path).exists() else target.unlink)


@contextmanager
def _translated(problem: str) -> Iterator[None]:
    """Translate errors of the operating system into Unavailable with this problem."""
    try:
        yield
    except OSError as error:
        where = ErrorLocation(file=os.fsdecode(error.filename or ""))
        words = f"{problem}: {error.strerror or error}"
        raise Unavailable(words, remedy="check permissions and disk space", where=where) from None
