"""Reader of commits, directories and files of a mirror, in process by libgit2."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, ObjectType, RepositoryOpenFlag

from fanout.control_characters import escape_unprintable
from fanout.errors import Bug, InvalidInput
from fanout.git.git_errors import DamagedMirrorError, missing_object_error
from fanout.git.mirror import mark_damaged
from fanout.package.package_limits import (
    DEFAULT_SIZES,
    MAX_PATH_LENGTH,
    SizeLimits,
    limit_exceeded_error,
)
from fanout.package.tree_ids import DIRECTORY_MODE, TreeEntry
from fanout.plan.observation.repository_state import Commit, PathState

_OID = re.compile(r"[0-9a-f]{40}")
_MODES = {
    int(FileMode.BLOB_EXECUTABLE): "100755",
    int(FileMode.LINK): "120000",
    int(FileMode.TREE): DIRECTORY_MODE,
}
_TREE = int(ObjectType.TREE)
_COMMIT = int(ObjectType.COMMIT)
_BLOB = int(ObjectType.BLOB)
# Bounds against hostile repositories. A directory may have thousands of packages, and the message
# of a commit names all packages published with it; both stay far below these sizes.
_MAX_DIRECTORY_SIZE = 64 << 20  # bytes as git stores it, about a million entries
_MAX_COMMIT_SIZE = 4 << 20  # bytes of a commit or an annotated tag
_MAX_CHANGED_DIRECTORIES = 1000  # directories in which commits are compared
MAX_TIMESTAMP = 1 << 40  # seconds; not all of git's tools read later times
_MAX_ROW_SIZE = 512  # bytes that a file may take in a directory of a package: its name and its id
_TAG = int(ObjectType.TAG)
_KINDS = {_TREE: "directory", _COMMIT: "commit", _BLOB: "file", _TAG: "tag"}
_ROOT_DIRECTORY = "the root directory"
_MIRROR_REMEDY = "the next pass creates it again"
_UNPARSED_REMEDY = "replace it by a commit whose author, committer and dates git accepts"


class MirrorReader:
    """Implementation of `fanout.ports.ObjectReader` on one mirror. Not thread-safe."""

    def __init__(self, repository: pygit2.Repository, limits: SizeLimits) -> None:
        """Read from an open repository; `limits` are the size limits of packages."""
        self._repository = repository
        self._odb = repository.odb
        self.limits = limits

    def has(self, oid: str) -> bool:
        """Return whether the object with this hex id is in the mirror; False for what is no id."""
        try:
            return pygit2.Oid(hex=oid) in self._odb
        except ValueError:  # as messages of people may have
            return False

    def commit(self, oid: str) -> Commit:
        """Return the commit. Raises Unavailable if it is missing, InvalidInput for another type."""
        parsed = self._commit(oid)
        if parsed.commit_time >= MAX_TIMESTAMP:  # what is written on top of it could have no date
            raise InvalidInput(
                f"commit {oid} cannot be read: {describe_invalid_date(parsed.commit_time)}",
                reason="InvalidTime",
                remedy=_UNPARSED_REMEDY,
            )
        committer = parsed.committer
        return Commit(
            oid=oid,
            tree=str(parsed.tree_id),
            parents=tuple(map(str, parsed.parent_ids)),
            timestamp=parsed.commit_time,
            committer=f"{_text(committer.raw_name)} <{_text(committer.raw_email)}>",
            message=_text(parsed.raw_message),
            author=f"{_text(parsed.author.raw_name)} <{_text(parsed.author.raw_email)}>",
        )

    def peel(self, oid: str) -> str:
        """Return the id of the commit behind an annotated tag. A tag may also name another type."""
        while self._header(oid)[0] == _TAG:
            content = self._read(oid, _TAG, _MAX_COMMIT_SIZE)
            oid = content.split(b"\n", 1)[0].removeprefix(b"object ").decode()
        return oid

    def contains(self, head: str, commit: str) -> bool:
        """Return whether the commit is the head or an ancestor; False for one of another mirror."""
        if not head or not commit or not self.has(commit):
            return False
        if head == commit:
            return True
        with _refuse_unparsed(f"the history of commit {head}"):
            return self._repository.descendant_of(head, commit)

    def merge_base(self, head: str, commit: str) -> str:
        """Return a newest common ancestor of two commits, "" without any."""
        for oid in (head, commit):
            self._commit(oid)
        with _refuse_unparsed(f"the history of commit {commit}"):
            base = self._repository.merge_base(head, commit)
        return str(base) if base is not None else ""

    def paths(self, commit: str, paths: Iterable[str]) -> Mapping[str, PathState]:
        """Return the state of each path of the commit; "" is its root directory.

        A parent directory that is too large to be opened is the problem of the paths below it.
        """
        states = {"": PathState(str(self._commit(commit).tree_id))}
        directories: dict[str, pygit2.Tree] = {}
        return {path: self._find_state(path, states, directories) for path in paths}

    def changed_files(
        self, commit: str, references: Sequence[str], omitted: Collection[str], limit: int
    ) -> Sequence[str]:
        """Return the paths of files that are otherwise, or absent, in each of the references."""
        changed: list[str] = []
        roots = [str(self._commit(it).tree_id) for it in (commit, *references)]
        pending: list[tuple[str, Sequence[str]]] = [("", roots)]
        # Directories that one of the references has alike are not opened.
        for _ in range(_MAX_CHANGED_DIRECTORIES):
            if not pending or len(changed) >= limit:
                break
            prefix, trees = pending.pop()
            raw_trees = [
                self._read(it, _TREE, _MAX_DIRECTORY_SIZE, referenced=True) if it else b""
                for it in trees
            ]
            rows, *others = [
                {name: (mode, oid) for mode, name, oid in parse_tree(raw)} for raw in raw_trees
            ]
            for name in rows.keys() | others[0].keys():
                row, present = rows.get(name), [other.get(name) for other in others]
                if row in present:
                    continue
                path = prefix + _decode_name(name, prefix)
                if path in omitted:
                    continue
                if (row or present[0] or (0, ""))[0] != FileMode.TREE:
                    changed.append(path)
                    continue
                entries = [
                    it if it and it[0] == FileMode.TREE else (0, "") for it in (row, *present)
                ]
                pending.append((f"{path}/", [oid for _, oid in entries]))
        return sorted(changed)[:limit]

    def _find_state(
        self, path: str, states: dict[str, PathState], directories: dict[str, pygit2.Tree]
    ) -> PathState:
        """Find the state of a path level by level; no directory is opened twice or listed."""
        if path not in states:
            parent, _, name = path.rpartition("/")
            parent_state = self._find_state(parent, states, directories)
            if (tree := parent_state.tree) is None:
                states[path] = parent_state
            elif tree not in directories and self._header(tree)[1] > _MAX_DIRECTORY_SIZE:
                problem = f"{escape_unprintable(parent) or _ROOT_DIRECTORY} has too many entries"
                states[path] = PathState(None, problem)
            else:
                if tree not in directories:
                    parsed = self._parse(tree, referenced=True)
                    if not isinstance(parsed, pygit2.Tree):
                        raise _wrong_kind(tree, parsed.type, _TREE)
                    directories[tree] = parsed
                try:
                    entry = directories[tree][name]
                except KeyError:
                    states[path] = PathState(None)
                    return states[path]
                if entry.filemode == FileMode.TREE:
                    states[path] = PathState(str(entry.id))
                else:
                    kinds = {FileMode.LINK: "a symlink", FileMode.COMMIT: _SUBMODULE}
                    kind = kinds.get(entry.filemode, "a file")
                    states[path] = PathState(None, f"{escape_unprintable(path)} is {kind}")
        return states[path]

    def entries(self, tree: str, limits: SizeLimits | None = None) -> Mapping[str, TreeEntry]:
        """Return all files below a tree by path, sorted. No content is read."""
        limits = limits or self.limits
        entries: dict[str, TreeEntry] = {}
        pending = [("", 0, tree)]
        directories = 0
        while pending:
            prefix, depth, oid = pending.pop()
            for mode, name, child in parse_tree(self._directory(oid, prefix, limits)):
                path = prefix + _decode_name(name, prefix)
                # Only paths near a limit take the full check: this runs once per file of every
                # package.
                if depth >= limits.depth or len(path) > MAX_PATH_LENGTH:
                    limits.check_path(path, depth + (mode == FileMode.TREE))
                if mode == FileMode.TREE:
                    # Directories are counted too: a tree of trees may hold no file at all.
                    directories += 1
                    pending.append((f"{path}/", depth + 1, child))
                else:
                    entries[path] = TreeEntry(_normalize_mode(mode, path), child)
                if len(entries) > limits.files:
                    raise limits.too_many_error()
                if directories > limits.files:
                    raise limits.too_many_error("directories")
        return {path: entries[path] for path in sorted(entries)}

    def directory(self, tree: str, limits: SizeLimits) -> Mapping[str, TreeEntry]:
        """Return the files and directories directly in a tree, by name."""
        rows = parse_tree(self._directory(tree, "", limits))
        named = ((_decode_name(raw_name, ""), mode, child) for mode, raw_name, child in rows)
        return {name: TreeEntry(_normalize_mode(mode, name), child) for name, mode, child in named}

    def entry(self, tree: str, name: str) -> TreeEntry | None:
        """Return the file of this name directly in a tree, or None."""
        for mode, raw_name, child in parse_tree(self._directory(tree, "", self.limits)):
            if raw_name == name.encode() and mode != FileMode.TREE:
                return TreeEntry(_normalize_mode(mode, name), child)
        return None

    def files(
        self, tree: str, contents_by_id: Mapping[str, bytes] | None = None
    ) -> Mapping[str, tuple[TreeEntry, bytes]]:
        """Return all files below a tree with their content, by path.

        The headers of the objects tell whether they exceed the limits, before any content is read.
        Bytes count once per path, since every path is parsed, rendered and written separately.
        """
        entries, contents_by_id = self.entries(tree), contents_by_id or {}
        sizes = {
            oid: len(contents_by_id[oid])
            if oid in contents_by_id
            else self._header(oid, referenced=True)[1]
            for oid in dict.fromkeys(entry.oid for entry in entries.values())
        }
        self.limits.check_sizes({path: sizes[entry.oid] for path, entry in entries.items()})
        content = {
            oid: contents_by_id[oid]
            if oid in contents_by_id
            else self._read(oid, _BLOB, referenced=True)
            for oid in sizes
        }
        return {path: (entry, content[entry.oid]) for path, entry in entries.items()}

    def blob(self, oid: str, max_bytes: int | None = None) -> bytes:
        """Return the content of a file; `max_bytes` has the limit of packages as default."""
        return self._read(oid, _BLOB, max_bytes or self.limits.file_size, referenced=True)

    def raw_tree(self, oid: str) -> bytes:
        """Return a directory as git stores it. Raises Unavailable if it is missing."""
        return self._read(oid, _TREE, _MAX_DIRECTORY_SIZE)

    def _directory(self, oid: str, prefix: str, limits: SizeLimits) -> bytes:
        """Read a directory of a package; one that must exceed the limits is not read."""
        largest = min(_MAX_DIRECTORY_SIZE, 2 * limits.files * _MAX_ROW_SIZE)
        try:
            return self._read(oid, _TREE, largest, referenced=bool(prefix))
        except _TooLargeError:
            raise limits.too_many_error() from None

    def _read(
        self, oid: str, kind: int, size_limit: int | None = None, *, referenced: bool = False
    ) -> bytes:
        """Return the content. Without `size_limit` the caller has checked the size."""
        if size_limit is not None:
            size = self._header(oid, referenced=referenced)[1]
            if size > size_limit:
                raise _TooLargeError(oid, size, size_limit)
        try:
            actual_kind, data = self._odb.read(oid)
        except (KeyError, ValueError) as error:
            raise self._unreadable_error(oid, error, referenced=referenced) from error
        if actual_kind != kind:
            raise _wrong_kind(oid, actual_kind, kind)
        return data

    def _header(self, oid: str, *, referenced: bool = False) -> tuple[int, int]:
        """Return type and size."""
        try:
            return self._odb.read_header(oid)
        except (KeyError, ValueError) as error:
            raise self._unreadable_error(oid, error, referenced=referenced) from error

    def _commit(self, oid: str) -> pygit2.Commit:
        if (size := self._header(oid)[1]) > _MAX_COMMIT_SIZE:
            raise _TooLargeError(oid, size, _MAX_COMMIT_SIZE)
        with _refuse_unparsed(f"commit {oid}"):
            parsed = self._parse(oid)
        if not isinstance(parsed, pygit2.Commit):
            raise _wrong_kind(oid, parsed.type, _COMMIT)
        return parsed

    def _parse(self, oid: str, *, referenced: bool = False) -> pygit2.Object:
        try:
            return self._repository[oid]
        except (KeyError, ValueError) as error:
            raise self._unreadable_error(oid, error, referenced=referenced) from error

    def _unreadable_error(
        self, oid: str, error: KeyError | ValueError, *, referenced: bool
    ) -> Exception:
        """Build the error for an object; `referenced`: another object of the mirror names it."""
        if isinstance(error, ValueError):
            if _OID.fullmatch(oid):  # an existing object is not where a pack's index points
                return pygit2.GitError(str(error))
            return Bug(f"{oid!r} is not an object ID", reason="NoObjectId")
        # An id from outside may be wrong; an id that the mirror's own objects contain is right,
        # so the mirror is damaged and must be created again.
        if referenced:
            mark_damaged(Path(self._repository.path))
        return missing_object_error(oid)


class _TooLargeError(InvalidInput):
    """An object is not read because of its size."""

    def __init__(self, oid: str, size: int, largest: int) -> None:
        problem = f"object {oid} has {size:,} bytes, more than {largest:,}"
        error = limit_exceeded_error(problem, "fileBytes")
        super().__init__(error.problem, reason=error.reason, remedy=error.remedy)


@contextmanager
def open_mirror(path: Path, limits: SizeLimits = DEFAULT_SIZES) -> Iterator[MirrorReader]:
    """Open the mirror for reading; `limits` are the size limits of packages. Raises Unavailable.

    A mirror that cannot be read is marked as damaged, and created again by the next listing.
    """
    try:
        repository = pygit2.Repository(str(path), RepositoryOpenFlag.BARE)
    except pygit2.GitError as error:
        raise DamagedMirrorError(
            "the mirror is missing", reason="MirrorMissing", remedy=_MIRROR_REMEDY
        ) from error
    try:
        yield MirrorReader(repository, limits)
    except pygit2.GitError as error:
        mark_damaged(path)
        raise DamagedMirrorError(
            f"the mirror is damaged: {error}", reason="MirrorDamaged", remedy=_MIRROR_REMEDY
        ) from error
    finally:
        repository.free()


def describe_invalid_date(seconds: int) -> str:
    """Describe a date that Git refuses."""
    return f"{seconds} cannot be the date of a commit"


def parse_tree(raw: bytes) -> Iterator[tuple[int, bytes, str]]:
    """Yield mode, name and hex id of each entry of a directory."""
    position = 0
    while position < len(raw):
        end = raw.index(b"\0", position)
        mode, _, name = raw[position:end].partition(b" ")
        yield int(mode, 8), name, raw[end + 1 : end + 21].hex()
        position = end + 21


def _decode_name(name: bytes, parent: str) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"a file name in {escape_unprintable(parent) or _ROOT_DIRECTORY} is not valid UTF-8:"
            f" {name!r}",
            reason="UnreadableName",
            remedy="rename the file",
        ) from error


_SUBMODULE = "a submodule"


def _normalize_mode(mode: int, path: str) -> str:
    if mode == FileMode.COMMIT:
        raise InvalidInput(
            f"{escape_unprintable(path)} is {_SUBMODULE}",
            reason="SubmoduleRefused",
            remedy="commit its files instead",
        )
    # Very old commits have group-writable files; git writes them as plain ones today.
    return _MODES.get(mode, "100644")


def _wrong_kind(oid: str, actual: int, expected: int) -> InvalidInput:
    problem = f"{oid} is a {_KINDS.get(actual)}, not a {_KINDS[expected]}"
    return InvalidInput(problem, reason="WrongObject")


@contextmanager
def _refuse_unparsed(subject: str) -> Iterator[None]:
    """Raise InvalidInput for a commit with a person or a date that libgit2 cannot parse.

    libgit2 compares the bytes with the id first: somebody pushed the commit so, the mirror is
    sound, and creating it again would fetch the same commit.
    """
    try:
        yield
    except pygit2.GitError as error:
        _, parsing, reason = str(error).partition("failed to parse")
        if not parsing:
            raise
        raise InvalidInput(
            f"{subject} cannot be read: {parsing}{reason}",
            reason="WrongObject",
            remedy=_UNPARSED_REMEDY,
        ) from error


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
