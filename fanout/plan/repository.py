"""Git repositories as data: what was seen of one, and what is to be changed in one.

Commit, tree and blob ids are 40 hex digits; ref names are full (`refs/heads/main`); times are Unix
seconds in UTC. Nothing here talks to Git: `fanout.git` does, behind `fanout.ports.GitStore`.
"""

from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache

from fanout.api.urls import canonical_url
from fanout.package.tree import Entry
from fanout.values import frozen


@frozen
class Remote:
    """Where a repository is. The secret is a name; its content never leaves the git room."""

    url: str
    secret: str = ""


@lru_cache(maxsize=1 << 14)  # of all variants in a repository it is one text
def place_at(url: str, branch: str) -> str:
    """The identity of a Git repository that is published to on a branch (its full name)."""
    return f"{canonical_url(url)}#{branch}"


def same_place(place: str) -> str:
    """The identity of a place as it is on record, however its url was spelled there."""
    url, mark, branch = place.partition("#refs/heads/")
    return f"{canonical_url(url)}{mark}{branch}" if mark else place


@frozen
class Look:
    """One listing to be made. Objects behind the refs in `keep` are in the mirror afterwards.

    A pattern is a full ref name or ends with ``/*``.
    """

    remote: Remote
    keep: tuple[str, ...]


@frozen
class Listing:
    """All branches and tags of a repository at one moment; annotated tags by their commit."""

    refs: Mapping[str, str]


@frozen
class Commit:
    """A commit as read from the mirror."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    when: int  # committer's time
    committer: str  # "name <email>"
    message: str
    author: str = ""  # the same


@frozen
class PathState:
    """What is at a path of a commit: the directory's tree id, or None when nothing is there.

    `problem` says why no package can be there: a file or a symlink on the way.
    """

    tree: str | None
    problem: str = ""


@frozen
class Identity:
    """Who writes commits."""

    name: str
    email: str


@frozen
class DraftCommit:
    """A draft to be written: the base's tree with the package at `path` replaced, one commit."""

    ref: str
    base: str  # the parent: the branch's head
    path: str
    entries: Mapping[str, Entry]
    tree: str  # id of the package's tree, as computed before anything is written
    message: str
    when: int
    also: tuple[str, ...] = ()  # further parents: a draft with a person's commits that it takes in


@frozen
class StoredTree:
    """A directory that no commit of the change holds but the vendor commit names."""

    entries: Mapping[str, Entry]
    tree: str  # its id, as computed before anything is written


@frozen
class MergedDraft:
    """A draft that becomes part of a publication, and the tag that it gets."""

    commit: str
    path: str
    tree: str  # of the package in the draft
    tag: str  # full ref name, to be created
    last_tag: str = ""  # the newest that is there, full ref name
    last_commit: str = ""  # its commit: if the merge is this one, it has its tag already


@frozen
class Merge:
    """The publication of one stage in one repository.

    The writer makes one commit for each 16 drafts, in this order, each on top of the one before;
    a tag points to the commit that merges its draft. Without drafts it is one commit that takes
    packages off the branch.
    """

    drafts: tuple[MergedDraft, ...]
    message: str
    when: int
    drop: tuple[str, ...] = ()  # directories that leave the branch with the last of them


@frozen
class VendorCommit:
    """The next commit of fanout's own branch with the pristine renderings."""

    ref: str
    parent: str  # "": the branch's first commit
    put: Mapping[str, str]  # directory → tree id
    drop: tuple[str, ...]  # directories
    message: str
    when: int


@frozen
class FileCommit:
    """A commit that writes and removes single files: how records are kept."""

    ref: str
    parent: str  # "": the branch's first commit
    put: Mapping[str, bytes]
    drop: tuple[str, ...]
    message: str
    when: int


@frozen
class RepositoryChange:
    """Everything that one pass does to one repository: one atomic push, a second for removals."""

    remote: Remote
    identity: Identity
    expected: Mapping[str, str]  # every ref touched → id in the listing; "": it was not there
    blobs: Mapping[str, bytes] = field(default_factory=dict)  # new file content, by blob id
    trees: tuple[StoredTree, ...] = ()
    drafts: tuple[DraftCommit, ...] = ()
    branch: str = ""  # full name of the ref that the merges move
    merges: tuple[Merge, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)  # to be created on existing commits
    vendor: VendorCommit | None = None
    files: tuple[FileCommit, ...] = ()
    remove: tuple[str, ...] = ()  # draft refs, gone in the second push
    drafts_under: str = ""  # "refs/heads/drafts/<install>/": the only place where refs are removed


@frozen
class Written:
    """What a change came to: the new id of every ref that was pushed."""

    refs: Mapping[str, str]
    removed: tuple[str, ...] = ()
