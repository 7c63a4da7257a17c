"""What both ways of writing objects have in common: the protocol, and what a change may rest on."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from fanout.errors import Bug, InvalidInput, Where
from fanout.git.failures import DamagedMirrorError
from fanout.git.layout import Layouts
from fanout.git.pack import TREE, object_id
from fanout.git.reader import MirrorReader
from fanout.git.rows import ReadTree
from fanout.plan.repository import DraftCommit, Merge, RepositoryChange, StoredTree
from fanout.values import frozen, replace

DRAFTS_PER_MERGE = 16  # design §5: parents are the branch and at most so many drafts


@frozen
class Objects:
    """The commits that were written, by the ref that is to get them, and how many objects."""

    refs: dict[str, str]
    count: int


class Engine(Protocol):
    """Writes the objects of a change into a mirror; the same change gives the same ids."""

    def write(self, mirror: Path, change: RepositoryChange) -> Objects:
        """Write everything that the change brings; no ref moves. The mirror's lock is held.

        Raises InvalidInput for a path that git does not store, for a file in a package's way and
        where the branch is missing, Bug when a tree is not as planned, DamagedMirrorError when
        something that the change rests on is not in the mirror, OSError or Unavailable when the
        disk is full.
        """


def check_grounds(change: RepositoryChange, reader: MirrorReader) -> None:
    """What the change rests on is there. Raises DamagedMirrorError, InvalidInput, Bug."""
    if change.merges and not change.expected.get(change.branch):
        raise InvalidInput(
            f"branch {change.branch.removeprefix('refs/heads/')} is not there",
            reason="BranchMissing",
            remedy="push a first commit to it, or correct spec.branch of the Repository",
            where=Where(object=change.remote.url),
        )
    packages = _packages(change)
    if not all(item.entries for item in packages):
        raise Bug("a package without a file is no directory", reason="TreeMismatch")
    files = {entry.oid for item in packages for entry in item.entries.values()}
    trees = {draft.tree for merge in change.merges for draft in merge.drafts}
    trees |= set(change.vendor.put.values()) if change.vendor else set()
    _require(reader, files - change.blobs.keys())
    _require(reader, trees - {item.tree for item in packages})
    _require(reader, _commits(change))


def _packages(change: RepositoryChange) -> tuple[StoredTree | DraftCommit, ...]:
    return (*change.trees, *change.drafts)


def _commits(change: RepositoryChange) -> set[str]:
    """The commits that those of the change stand on."""
    commits = {oid for draft in change.drafts for oid in (draft.base, *draft.also)}
    commits |= {draft.commit for merge in change.merges for draft in merge.drafts}
    commits |= {commit.parent for commit in change.files}
    commits |= {change.vendor.parent} if change.vendor else set()
    commits |= {change.expected[change.branch]} if change.merges else set()
    return commits - {""}


def _require(reader: MirrorReader, needed: Iterable[str]) -> None:
    """The objects are in the mirror. Raises DamagedMirrorError."""
    missing = sorted(oid for oid in needed if not reader.has(oid))
    if missing:
        raise DamagedMirrorError(
            f"object {missing[0]} is not in the mirror",
            reason="ObjectMissing",
            remedy="the next pass observes the repository again",
        )


def check_tree(what: str, planned: str, written: str) -> None:
    """Raises Bug when a directory came out as another than planned."""
    if written != planned:
        raise Bug(
            f"{what or 'the root'} was written as {written or 'nothing'}, planned was {planned}",
            reason="TreeMismatch",
        )


def batches(merges: Iterable[Merge]) -> Iterator[Merge]:
    """One for each commit: at most 16 drafts; directories leave the branch with the last."""
    for merge in merges:
        for start in range(0, len(merge.drafts) or 1, DRAFTS_PER_MERGE):
            end = start + DRAFTS_PER_MERGE
            drop = merge.drop if end >= len(merge.drafts) else ()
            yield replace(merge, drafts=merge.drafts[start:end], drop=drop)


def tree_reader(change: RepositoryChange, reader: MirrorReader, layouts: Layouts) -> ReadTree:
    """Reads directories of the mirror, and those that the change is about to bring."""
    brought: dict[str, bytes] = {}

    def add(_: str, rows: list[bytes]) -> bytes:
        data = b"".join(rows)
        oid = object_id(TREE, data)
        brought[oid.hex()] = data
        return oid

    def read(oid: str) -> bytes:
        if not reader.has(oid) and not brought:  # a package is put inside one that is new itself
            for item in _packages(change):
                layouts.of(item.entries).write(item.entries, add)
        return brought[oid] if oid in brought else reader.raw_tree(oid)

    return read
