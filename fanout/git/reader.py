"""Reads commits, directories and files of a mirror in process; starts nothing."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pygit2
from pygit2.enums import FileMode, ObjectType, RepositoryOpenFlag

from fanout.errors import Bug, InvalidInput
from fanout.git.failures import DamagedMirrorError
from fanout.git.mirror import mark_damaged
from fanout.package.limits import DEFAULT_SIZES, LONGEST_PATH, SizeLimits, exceeded
from fanout.package.tree import Entry
from fanout.plan.repository import Commit, PathState

_OID = re.compile(r"[0-9a-f]{40}")
_FILE_MODES = {int(FileMode.BLOB_EXECUTABLE): "100755", int(FileMode.LINK): "120000"}
_TREE = int(ObjectType.TREE)
_COMMIT = int(ObjectType.COMMIT)
_BLOB = int(ObjectType.BLOB)
# Directories of a repository hold thousands of packages, and messages of commits name what was
# published together. Both are far below these sizes in every repository that people work with.
_LARGEST_DIRECTORY = 64 << 20  # bytes as git stores it, about a million entries
_LARGEST_COMMIT = 4 << 20  # bytes of a commit or an annotated tag
_ROW = 512  # bytes that a file may take in a directory of a package: its name and its id
_KINDS = {_TREE: "directory", _COMMIT: "commit", _BLOB: "file", int(ObjectType.TAG): "tag"}


class MirrorReader:
    """`fanout.ports.Reader` on one mirror. Not for several threads at once."""

    def __init__(self, repository: pygit2.Repository, limits: SizeLimits) -> None:
        """`limits` are those of packages."""
        self._repository = repository
        self._odb = repository.odb
        self._limits = limits

    def has(self, oid: str) -> bool:
        """Is the object in the mirror?"""
        return pygit2.Oid(hex=oid) in self._odb

    def commit(self, oid: str) -> Commit:
        """The commit. Raises Unavailable when it is not there, InvalidInput for another kind."""
        found = self._commit(oid)
        who = found.committer
        return Commit(
            oid=oid,
            tree=str(found.tree_id),
            parents=tuple(map(str, found.parent_ids)),
            when=found.commit_time,
            committer=f"{_text(who.raw_name)} <{_text(who.raw_email)}>",
            message=_text(found.raw_message),
            author=f"{_text(found.author.raw_name)} <{_text(found.author.raw_email)}>",
        )

    def peel(self, oid: str) -> str:
        """The commit behind an annotated tag, or what the tag names when that is no commit."""
        while (found := self._object(oid, _LARGEST_COMMIT))[0] == int(ObjectType.TAG):
            oid = found[1].split(b"\n", 1)[0].removeprefix(b"object ").decode()
        return oid

    def contains(self, head: str, commit: str) -> bool:
        """Is the commit the head or one of its ancestors? Whatever is in no mirror is neither."""
        if not head or not commit or not self.has(commit):
            return False
        return head == commit or self._repository.descendant_of(head, commit)

    def paths(self, commit: str, paths: Iterable[str]) -> Mapping[str, PathState]:
        """What is at each path of the commit; "" is its root directory.

        A directory on the way that is too large to be opened is the problem of the paths below it.
        """
        known = {"": PathState(str(self._commit(commit).tree_id))}
        directories: dict[str, pygit2.Tree] = {}
        return {path: self._state(path, known, directories) for path in paths}

    def _state(
        self, path: str, known: dict[str, PathState], directories: dict[str, pygit2.Tree]
    ) -> PathState:
        """Looked up level by level; each directory on the way is opened once, and none listed."""
        if path not in known:
            parent, _, name = path.rpartition("/")
            above = self._state(parent, known, directories)
            if above.tree is None:
                known[path] = above
            else:
                known[path] = self._state_in(above.tree, path, name, directories)
        return known[path]

    def _state_in(
        self, tree: str, path: str, name: str, directories: dict[str, pygit2.Tree]
    ) -> PathState:
        if tree not in directories:
            if self._size(tree) > _LARGEST_DIRECTORY:
                parent = path.rpartition("/")[0] or "the root directory"
                return PathState(None, f"{parent} has too many entries to be opened")
            directories[tree] = self._tree(tree)
        return _state_of(path, directories[tree], name)

    def _tree(self, oid: str) -> pygit2.Tree:
        found = self._parsed(oid, named=True)
        if not isinstance(found, pygit2.Tree):
            raise _wrong_kind(oid, found.type, _TREE)
        return found

    def entries(self, tree: str, limits: SizeLimits | None = None) -> Mapping[str, Entry]:
        """All files below a tree, by path; submodules and unreadable names are InvalidInput.

        Raises InvalidInput as soon as more files or directories were walked than `limits` allow,
        which are those of packages where none are given. No content is read.
        """
        limits = limits or self._limits
        found: dict[str, Entry] = {}
        waiting = [("", 0, tree)]
        directories = 0
        while waiting:
            above, depth, oid = waiting.pop()
            for mode, name, child in parse_tree(self._directory(oid, above, limits)):
                path = above + _file_name(name, above)
                if depth >= limits.depth or len(path) > LONGEST_PATH:
                    limits.check_path(path, depth + (mode == FileMode.TREE))
                if mode == FileMode.TREE:
                    # Directories are counted too: a tree of trees may hold no file at all.
                    directories += 1
                    waiting.append((f"{path}/", depth + 1, child))
                else:
                    found[path] = Entry(_file_mode(mode, path), child)
                if len(found) > limits.files:
                    raise limits.too_many()
                if directories > limits.files:
                    raise limits.too_many("directories")
        return {path: found[path] for path in sorted(found)}

    def entry(self, tree: str, name: str) -> Entry | None:
        """The file of this name directly in a tree, None where there is none."""
        for mode, raw, child in parse_tree(self._directory(tree, "", self._limits)):
            if raw == name.encode() and mode != FileMode.TREE:
                return Entry(_file_mode(mode, name), child)
        return None

    def files(
        self, tree: str, known: Mapping[str, bytes] | None = None
    ) -> Mapping[str, tuple[Entry, bytes]]:
        """All files below a tree with their content, by path. `known` are contents by blob id.

        Raises InvalidInput as `entries` does, and when a file or all of them are larger than a
        package may be: that is told from the headers of the objects, before any content is read.
        Bytes count once per path, since every path is parsed, rendered and written by itself.
        """
        entries, known = self.entries(tree), known or {}
        sizes = {
            oid: len(known[oid]) if oid in known else self._size(oid, named=True)
            for oid in dict.fromkeys(entry.oid for entry in entries.values())
        }
        self._limits.check_sizes({path: sizes[entry.oid] for path, entry in entries.items()})
        content = {
            oid: known[oid] if oid in known else self._read(oid, _BLOB, named=True) for oid in sizes
        }
        return {path: (entry, content[entry.oid]) for path, entry in entries.items()}

    def blob(self, oid: str, largest: int | None = None) -> bytes:
        """A file's content. Raises Unavailable when it is not there.

        Raises InvalidInput when it has more bytes than `largest`, or than a file of a package may
        have where that is not given.
        """
        return self._read(oid, _BLOB, largest or self._limits.file_size, named=True)

    def raw_tree(self, oid: str) -> bytes:
        """A directory as git stores it. Raises Unavailable when it is not there."""
        return self._read(oid, _TREE, _LARGEST_DIRECTORY)

    def _directory(self, oid: str, above: str, limits: SizeLimits) -> bytes:
        """A directory of a package; one that cannot be within the limits is not read."""
        largest = min(_LARGEST_DIRECTORY, 2 * limits.files * _ROW)
        try:
            return self._read(oid, _TREE, largest, named=bool(above))
        except _TooLargeError:
            raise limits.too_many() from None

    def _read(
        self, oid: str, kind: int, largest: int | None = None, *, named: bool = False
    ) -> bytes:
        found, data = self._object(oid, largest, named=named)
        if found != kind:
            raise _wrong_kind(oid, found, kind)
        return data

    def _object(self, oid: str, largest: int | None, *, named: bool = False) -> tuple[int, bytes]:
        """Kind and content. The size is in the object's header, which is read first.

        Without `largest` it is not read: the caller has done so.
        """
        if largest is not None and (size := self._size(oid, named=named)) > largest:
            raise _TooLargeError(oid, size, largest)
        try:
            return self._odb.read(oid)
        except (KeyError, ValueError) as error:
            raise self._unreadable(oid, error, named=named) from error

    def _size(self, oid: str, *, named: bool = False) -> int:
        try:
            return self._odb.read_header(oid)[1]
        except (KeyError, ValueError) as error:
            raise self._unreadable(oid, error, named=named) from error

    def _commit(self, oid: str) -> pygit2.Commit:
        if (size := self._size(oid)) > _LARGEST_COMMIT:
            raise _TooLargeError(oid, size, _LARGEST_COMMIT)
        found = self._parsed(oid)
        if not isinstance(found, pygit2.Commit):
            raise _wrong_kind(oid, found.type, _COMMIT)
        return found

    def _parsed(self, oid: str, *, named: bool = False) -> pygit2.Object:
        try:
            return self._repository[oid]
        except (KeyError, ValueError) as error:
            raise self._unreadable(oid, error, named=named) from error

    def _unreadable(self, oid: str, error: KeyError | ValueError, *, named: bool) -> Exception:
        """`named`: another object says that it is there, so the mirror has lost it."""
        if isinstance(error, ValueError):
            if _OID.fullmatch(oid):  # it is not where the index of a pack says
                return pygit2.GitError(str(error))
            return Bug(f"{oid!r} is no object id", reason="NoObjectId")
        if named:
            mark_damaged(Path(self._repository.path))
        return DamagedMirrorError(
            f"object {oid} is not in the mirror",
            reason="ObjectMissing",
            remedy="the next pass observes the repository again",
        )


class _TooLargeError(InvalidInput):
    """An object that is not read because of its size."""

    def __init__(self, oid: str, size: int, largest: int) -> None:
        error = exceeded(f"object {oid} has {size:,} bytes, more than {largest:,}", "fileBytes")
        super().__init__(error.problem, reason=error.reason, remedy=error.remedy)


@contextmanager
def open_mirror(path: Path, limits: SizeLimits = DEFAULT_SIZES) -> Iterator[MirrorReader]:
    """A reader of the mirror at the path; `limits` are those of packages.

    Raises Unavailable when nothing is there or when it cannot be read; such a mirror is marked and
    made again at the next look.
    """
    try:
        repository = pygit2.Repository(str(path), RepositoryOpenFlag.BARE)
    except pygit2.GitError as error:
        raise DamagedMirrorError(
            "the mirror is not there", reason="MirrorMissing", remedy="the next pass makes it again"
        ) from error
    try:
        yield MirrorReader(repository, limits)
    except pygit2.GitError as error:
        mark_damaged(path)
        raise DamagedMirrorError(
            f"the mirror is damaged: {error}",
            reason="MirrorDamaged",
            remedy="the next pass makes it again",
        ) from error
    finally:
        repository.free()


def parse_tree(raw: bytes) -> Iterator[tuple[int, bytes, str]]:
    """Mode, name and id of each entry of a directory."""
    at = 0
    while at < len(raw):
        end = raw.index(b"\0", at)
        mode, _, name = raw[at:end].partition(b" ")
        yield int(mode, 8), name, raw[end + 1 : end + 21].hex()
        at = end + 21


def _file_name(name: bytes, above: str) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"a file name below {above or 'the root'} is not UTF-8: {name!r}",
            reason="UnreadableName",
            remedy="rename the file",
        ) from error


def _file_mode(mode: int, path: str) -> str:
    if mode == FileMode.COMMIT:
        raise InvalidInput(
            f"{path} is a submodule",
            reason="SubmoduleRefused",
            remedy="a package holds its files itself",
        )
    # Very old commits have group-writable files; git writes them as plain ones today.
    return _FILE_MODES.get(mode, "100644")


def _state_of(path: str, directory: pygit2.Tree, name: str) -> PathState:
    try:
        found = directory[name]
    except KeyError:
        return PathState(None)
    if found.filemode == FileMode.TREE:
        return PathState(str(found.id))
    kinds = {FileMode.LINK: "a symlink", FileMode.COMMIT: "a submodule"}
    return PathState(None, f"{path} is {kinds.get(found.filemode, 'a file')}")


def _wrong_kind(oid: str, found: int, wanted: int) -> InvalidInput:
    return InvalidInput(
        f"{oid} is a {_KINDS.get(found)}, not a {_KINDS[wanted]}", reason="WrongObject"
    )


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
