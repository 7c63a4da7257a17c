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
from fanout.package.tree import Entry
from fanout.plan.repository import Commit, PathState

_OID = re.compile(r"[0-9a-f]{40}")
_FILE_MODES = {int(FileMode.BLOB_EXECUTABLE): "100755", int(FileMode.LINK): "120000"}
_TREE = int(ObjectType.TREE)
_COMMIT = int(ObjectType.COMMIT)
_BLOB = int(ObjectType.BLOB)
_KINDS = {_TREE: "directory", _COMMIT: "commit", _BLOB: "file", int(ObjectType.TAG): "tag"}


class MirrorReader:
    """`fanout.ports.Reader` on one mirror. Not for several threads at once."""

    def __init__(self, repository: pygit2.Repository) -> None:
        self._repository = repository
        self._odb = repository.odb

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
        while (found := self._object(oid))[0] == int(ObjectType.TAG):
            oid = found[1].split(b"\n", 1)[0].removeprefix(b"object ").decode()
        return oid

    def contains(self, head: str, commit: str) -> bool:
        """Is the commit the head or one of its ancestors? Whatever is in no mirror is neither."""
        if not head or not commit or not self.has(commit):
            return False
        return head == commit or self._repository.descendant_of(head, commit)

    def paths(self, commit: str, paths: Iterable[str]) -> Mapping[str, PathState]:
        """What is at each path of the commit; "" is its root directory."""
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
                if above.tree not in directories:
                    directories[above.tree] = self._tree(above.tree)
                known[path] = _state_of(path, directories[above.tree], name)
        return known[path]

    def _tree(self, oid: str) -> pygit2.Tree:
        found = self._parsed(oid, named=True)
        if not isinstance(found, pygit2.Tree):
            raise _wrong_kind(oid, found.type, _TREE)
        return found

    def entries(self, tree: str) -> Mapping[str, Entry]:
        """All files below a tree, by path; submodules and unreadable names are InvalidInput."""
        found: dict[str, Entry] = {}
        waiting = [("", tree)]
        while waiting:
            above, oid = waiting.pop()
            for mode, name, child in parse_tree(self._read(oid, _TREE, named=bool(above))):
                path = above + _file_name(name, above)
                if mode == FileMode.TREE:
                    waiting.append((f"{path}/", child))
                else:
                    found[path] = Entry(_file_mode(mode, path), child)
        return {path: found[path] for path in sorted(found)}

    def blob(self, oid: str) -> bytes:
        """A file's content. Raises Unavailable when it is not there."""
        return self._read(oid, _BLOB, named=True)

    def raw_tree(self, oid: str) -> bytes:
        """A directory as git stores it. Raises Unavailable when it is not there."""
        return self._read(oid, _TREE)

    def _read(self, oid: str, kind: int, *, named: bool = False) -> bytes:
        found, data = self._object(oid, named=named)
        if found != kind:
            raise _wrong_kind(oid, found, kind)
        return data

    def _object(self, oid: str, *, named: bool = False) -> tuple[int, bytes]:
        try:
            return self._odb.read(oid)
        except (KeyError, ValueError) as error:
            raise self._unreadable(oid, error, named=named) from error

    def _commit(self, oid: str) -> pygit2.Commit:
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


@contextmanager
def open_mirror(path: Path) -> Iterator[MirrorReader]:
    """A reader of the mirror at the path.

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
        yield MirrorReader(repository)
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
