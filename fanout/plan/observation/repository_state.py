"""Git repositories as data: the observed state of one, and the changes to make in one.

Commit, tree and blob ids are 40 hex digits; ref names are full (`refs/heads/main`); times are Unix
seconds in UTC. Nothing here calls Git: `fanout.git` does, behind `fanout.ports.GitStore`. A state
is frozen for the pass, and the planner reads nothing else.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from fanout.api.durations import parse_instant
from fanout.api.field_errors import InvalidValue
from fanout.api.urls import canonicalize_url
from fanout.errors import FanoutError, InvalidInput
from fanout.package.tree_ids import TreeEntry
from fanout.plan.commit_statement import PackageStatement, PublicationStatement
from fanout.plan.observation.observed_request import ForgeState, RequestFacts
from fanout.selection.ref_names import SetScope, scope_of, tag_ref
from fanout.values import Value, field

_RECORD_NAME = re.compile(r"[\w.-]{1,253}")  # as much as a message shows

RepositoryAccess = tuple[str, str]
"""Canonical URL of a repository, and the credentials it is reached with ("": none)."""


class Remote(Value):
    """Location of a repository, and the secret it is reached with.

    The secret is read only inside `fanout.git`.
    """

    url: str
    secret: str = ""  # its name
    namespace: str = ""  # of the secret
    is_own: bool = False  # the process's own: reached with the credentials of its user, if any
    allowed_objects: tuple[str, ...] = ()  # ids of objects that are fetched without a check

    @property
    def credentials(self) -> str:
        """Return namespace and name of the secret, or a word without a slash; "" without one."""
        if self.secret:
            return f"{self.namespace}/{self.secret}"
        return "own" if self.is_own else ""

    @property
    def access(self) -> RepositoryAccess:
        """Return repository and credentials, equal for all spellings of the URL."""
        return canonicalize_url(self.url), self.credentials

    @property
    def key(self) -> str:
        """Return the key of mirror, listing and pushes; that of one without secret is its URL.

        What one secret shows is not for whoever names the same URL without it.
        """
        return f"{self.url}\0{self.credentials}" if self.credentials else self.url


def url_of_remote(key: str) -> str:
    """Return the URL in the key of a remote."""
    return key.partition("\0")[0]


@lru_cache(maxsize=1 << 14)  # all variants of a repository ask for one URL
def repository_identity(url: str, branch: str) -> str:
    """Return the identity of a repository and its target branch (full ref name)."""
    return f"{canonicalize_url(url)}#{branch}"


def normalize_identity(identity: str) -> str:
    """Return a recorded repository identity with its URL in canonical form."""
    url, separator, branch = identity.partition("#refs/heads/")
    return f"{canonicalize_url(url)}{separator}{branch}" if separator else identity


class RefListingRequest(Value):
    """Request to list a repository; objects behind `mirrored_patterns` are mirrored.

    A pattern is a full ref name or ends with ``/*``.
    """

    remote: Remote
    mirrored_patterns: tuple[str, ...]


class RefListing(Value):
    """All branches and tags of a repository at one moment; annotated tags by their commit.

    `unfetched` are tags whose objects cannot be fetched, each with the reason.
    """

    refs: Mapping[str, str]
    unfetched: Mapping[str, FanoutError] = field(default_factory=dict)


class Commit(Value, kw_only=True):
    """A commit as read from the mirror."""

    oid: str
    tree: str
    parents: tuple[str, ...]
    timestamp: int  # committer's time
    committer: str  # "name <email>"
    message: str
    author: str = ""  # "name <email>"


class PathState(Value):
    """State of a path in a commit: the directory's tree id, or None if nothing is there.

    `problem` says why no package can be there: a file or a symlink on the way.
    """

    tree: str | None
    problem: str = ""


class CommitIdentity(Value):
    """Name and email address of the author of commits."""

    name: str
    email: str


class TreeCommit(Value, kw_only=True):
    """A commit that puts in packages by path, and takes packages out."""

    trees_by_path: Mapping[str, str] = field(default_factory=dict)  # directory → tree id
    dropped_paths: tuple[str, ...] = ()  # directories
    message: str
    timestamp: int


class BranchCommit(TreeCommit, kw_only=True):
    """One commit of the branch of a set.

    `more_parents` come after the commit before it: earlier drafts whose commits by people it takes
    over.
    """

    more_parents: tuple[str, ...] = ()


class BranchUpdate(Value):
    """The branch of a set to write: commits on top of each other, the first one on `parent`.

    `parent` is a head of the target branch, or the tip of the branch that people committed to.
    """

    ref: str
    parent: str
    commits: tuple[BranchCommit, ...]


class StoredTree(Value):
    """A directory with its files, which commits of the change name by its id."""

    entries: Mapping[str, TreeEntry]
    tree: str  # its id, as computed before anything is written


class MergedDraft(Value, kw_only=True):
    """A draft to merge in a publication, and the tag to create for it."""

    commit: str
    path: str
    tree: str  # of the package in the draft
    tag: str  # full ref name, to be created
    last_tag: str = ""  # of the newest publication so far, full ref name
    last_commit: str = ""  # commit of that publication; a merge that yields it is the same one


class PublicationMerge(Value):
    """One commit that publishes packages of one stage in one repository, and merges their drafts.

    Its parents are the branch and each draft branch. Without drafts it is one that removes
    packages from the branch; `more_parents` are the heads of the branches on which they were.
    """

    drafts: tuple[MergedDraft, ...]
    message: str
    timestamp: int
    dropped_paths: tuple[str, ...] = ()  # directories removed from the branch
    more_parents: tuple[str, ...] = ()


class VendorCommit(TreeCommit, kw_only=True):
    """The next commit of fanout's own branch with the pristine renderings.

    `message` is without its statements. `statements` are about the publications of the same push;
    those that it merges itself have no commit yet. `used_numbers` are those of paths that variants
    leave. `last_statements` is the newest vendor commit so far that has either.
    """

    ref: str
    parent: str  # "": the branch's first commit
    statements: tuple[PublicationStatement, ...] = ()
    used_numbers: Mapping[str, int] = field(default_factory=dict)  # by path
    last_statements: str = ""


class FileCommit(TreeCommit, kw_only=True):
    """A commit that writes and removes single files, as for records.

    Its trees are put in before the files, after what is dropped. Of several of a change for one
    branch each is the parent of the next.
    """

    ref: str
    parent: str  # head of the branch before the change; "": it has none
    content_by_path: Mapping[str, bytes]
    identity: CommitIdentity | None = None  # None: that of the change
    more_parents: tuple[str, ...] = ()  # heads of branches that it merges


class RepositoryChange(Value, kw_only=True):
    """All changes of a pass in one repository: an atomic push, and one for removals."""

    remote: Remote
    identity: CommitIdentity
    expected: Mapping[str, str]  # id in the listing of every touched ref; "": absent
    blobs: Mapping[str, bytes] = field(default_factory=dict)  # new file content, by blob id
    trees: tuple[StoredTree, ...] = ()
    branches: tuple[BranchUpdate, ...] = ()  # of sets
    branch: str = ""  # full name of the ref that the merges move
    merges: tuple[PublicationMerge, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)  # to be created on existing commits
    pushes_tags: bool = True  # False: those of the publications are names alone
    vendor: VendorCommit | None = None
    files: tuple[FileCommit, ...] = ()
    removed_drafts: tuple[str, ...] = ()  # draft refs, removed by the second push
    # The writer refuses to remove any other ref, so a faulty plan cannot delete a branch of people.
    drafts_under: str = ""  # "refs/heads/drafts/<install>/": the only place where refs are removed

    @property
    def ref_count(self) -> int:
        """Number of refs that the change pushes or removes."""
        count = len(self.branches) + len({it.ref for it in self.files})
        count += len(self.removed_drafts) + bool(self.merges) + (self.vendor is not None)
        if self.pushes_tags:
            count += len(self.tags) + sum(len(merge.drafts) for merge in self.merges)
        return count


class PushedChange(Value):
    """Result of a change: the new id of every ref that was pushed.

    `removal_error` is why the second push, which removes drafts, did not go through. With
    `tags: None` the tags of publications are among `refs`, although they were not pushed.
    """

    refs: Mapping[str, str]
    removed_refs: tuple[str, ...] = ()
    removal_error: FanoutError | None = None


EMPTY_PATH = PathState(None)


class DraftBranch(Value, kw_only=True):
    """The branch of a draft that fanout wrote, by its full ref and its tip."""

    ref: str
    commit: str  # its tip; "": it is not written yet
    is_edited: bool = False  # people committed to it


class OpenDraft(DraftBranch, kw_only=True):
    """Draft of one package of this installation: what a set has of it.

    One of several packages of a set is edited if what people committed changed it.
    """

    path: str  # of the package
    tree: str | None  # of the package at the tip
    trailers: PackageStatement  # of fanout's newest commit about it
    settled_keys: frozenset[str] = frozenset()  # keys of the disputes that those commits decided
    faults: tuple[InvalidInput, ...] = ()  # errors that people's commits brought into the draft
    editors: frozenset[str] = frozenset()  # authors and committers of those commits
    # Values rejected at merge conflicts, from the message of fanout's commit.
    rejected_lines: tuple[str, ...] = ()
    timestamp: int = 0  # of fanout's newest commit about it; 0: it is not written yet

    @property
    def key(self) -> tuple[str, str]:
        """Return the key of the draft in its repository."""
        return self.ref, self.path

    @property
    def is_shared(self) -> bool:
        """Return whether variants of a stage share the branch."""
        return scope_of(self.ref) is SetScope.STAGE

    @property
    def has_edits(self) -> bool:
        """Return whether the draft holds edits, on top of fanout's commit or merged into it.

        Its faults are edits too: those beside all packages of a set change none of them.
        """
        return self.is_edited or bool(self.trailers.takes or self.faults)


class SetState(DraftBranch, kw_only=True):
    """The branch of a set of packages that fanout writes or removes, as it stands.

    `idle_paths` are packages whose removal its commits name, and that a merge would not remove:
    people have put them back, or they are newer than its base.
    """

    tree: str = ""  # root tree of the tip, by which people approve removals
    timestamp: int  # of the tip
    base: str  # the commit of the target branch that it begins on
    policy: str  # "<namespace>/<name>"; of a draft of a variant written by hand "<namespace>/"
    stage: str  # "": none
    drafts: Mapping[str, OpenDraft] = field(default_factory=dict)  # what it writes, by path
    removed_trees: Mapping[str, str] = field(default_factory=dict)  # path → tree in the base
    idle_paths: frozenset[str] = frozenset()
    faults: tuple[InvalidInput, ...] = ()  # changes outside of its packages
    editors: frozenset[str] = frozenset()  # authors and committers of people's commits
    # A commit of it has several parents, such as one that carries over what people edited.
    has_joints: bool = False

    @property
    def is_removal(self) -> bool:
        """Return whether the set is one of removals, also if nothing is left to be removed."""
        return scope_of(self.ref) is SetScope.REMOVALS


class OtherBranch(Value):
    """A branch in place of a draft that fanout did not write there."""

    variant: str = ""  # whose draft it is, pushed there by somebody; "": nobody's
    has_commits: bool = True  # False: the target branch has its tip


class PristineRenderings(Value):
    """Tree ids of the pristine renderings of one path on fanout's own branch."""

    published_tree: str | None
    drafted_tree: str | None


class RecordTrace(Value):
    """Name and instant of the last record that stops something, in a downstream repository.

    By it a process that has never read the records sees that they were put back to an older state.
    One branch of each repository has a file for each policy.
    """

    record: str
    at: datetime


def format_trace(trace: RecordTrace) -> bytes:
    """Return the content of the file of a trace."""
    return (
        f'{{"at":"{trace.at:%Y-%m-%dT%H:%M:%SZ}","record":{json.dumps(trace.record)}}}\n'.encode()
    )


def parse_trace(data: bytes) -> RecordTrace | None:
    """Parse the content of the file of a trace; None if it is none, as after an edit."""
    try:
        line = json.loads(data)
        name, at = str(line["record"]), parse_instant(line["at"])
    except (InvalidValue, ValueError, KeyError, TypeError, RecursionError):
        return None
    return RecordTrace(name, at) if _RECORD_NAME.fullmatch(name) else None


class RepositoryState(Value, kw_only=True):
    """State of a downstream repository as listed and read at one moment."""

    remote: Remote
    branch: str  # full ref name
    refs: Mapping[str, str]
    head: str = ""  # "": the branch does not exist
    head_time: int = 0
    vendor_head: str = ""  # head of fanout's own branch; "": there is none
    vendor_time: int = 0
    path_states: Mapping[str, PathState] = field(default_factory=dict)  # on the branch
    published_renderings: Mapping[str, str] = field(default_factory=dict)  # pristine, in force
    # Paths whose package a set of removals has removed; the vendor branch has its rendering still.
    obsolete_renderings: frozenset[str] = frozenset()
    drafted_renderings: Mapping[str, str] = field(default_factory=dict)  # pristine, of open drafts
    sets: Mapping[str, SetState] = field(default_factory=dict)  # by ref
    # by ref: branches in place of sets
    unmanaged_drafts: Mapping[str, OtherBranch] = field(default_factory=dict)
    # by path: the other installation that has drafts there
    other_installations: Mapping[str, str] = field(default_factory=dict)
    pushes_tags: bool = True  # False: `Repository.spec.tags` is None
    publication_numbers: Mapping[str, int] = field(default_factory=dict)  # by path: the highest
    # by path: newest statement of the vendor branch
    publication_statements: Mapping[str, PublicationStatement] = field(default_factory=dict)
    # by path that a variant has left: the highest number that the vendor branch names
    used_numbers: Mapping[str, int] = field(default_factory=dict)
    last_statements: str = ""  # newest vendor commit that has one of these; "": there is none
    # by path in their branch: last records that stop something
    record_traces: Mapping[str, RecordTrace] = field(default_factory=dict)
    default_branch: str = ""  # short name; asked for where the target branch is missing
    forge: ForgeState | None = None  # None: the repository has no forge
    failure: FanoutError | None = None

    @property
    def identity(self) -> str:
        """Return the identity by which two Repository objects are the same repository."""
        return repository_identity(self.remote.url, self.branch)

    @property
    def key(self) -> str:
        """Return the key of what is pushed: the identity, and the secret it is reached with."""
        credentials = self.remote.credentials
        return f"{self.identity}\0{credentials}" if credentials else self.identity

    @property
    def drafts(self) -> list[OpenDraft]:
        """Return the drafts of all packages that sets write."""
        return [draft for it in self.sets.values() for draft in it.drafts.values()]

    @property
    def removal_sets(self) -> list[SetState]:
        """Return the sets that remove packages."""
        return [it for it in self.sets.values() if it.is_removal]

    def find_tree(self, path: str) -> str | None:
        """Return the tree of the package at a path of the target branch, or None without one."""
        return self.path_states.get(path, EMPTY_PATH).tree

    def find_draft(self, ref: str, path: str) -> OpenDraft | None:
        """Return the draft of a package on a branch, or None."""
        state = self.sets.get(ref)
        return state.drafts.get(path) if state is not None else None

    def find_request(self, ref: str) -> RequestFacts | None:
        """Return the pull request from a branch as the forge shows it, or None."""
        return self.forge.requests.get(ref) if self.forge is not None else None

    def is_number_stated(self, path: str, number: int) -> bool:
        """Return whether the vendor branch shows that the number at the path is used."""
        statement = self.publication_statements.get(path)
        stated = statement.number if statement is not None else 0
        return number <= max(stated, self.used_numbers.get(path, 0))

    def find_statement(self, path: str) -> PublicationStatement | None:
        """Return the statement about the newest publication at the path, or None without one."""
        statement = self.publication_statements.get(path)
        number = self.publication_numbers.get(path)
        return statement if statement is not None and statement.number == number else None

    def find_publication_commit(self, path: str) -> str:
        """Return the commit of the newest publication at the path, or "" without any.

        Its tag comes before its statement, so that a tag that somebody moved is noticed.
        """
        number = self.publication_numbers.get(path)
        tagged = self.refs.get(tag_ref(path, number), "") if number else ""
        statement = None if tagged else self.find_statement(path)
        return statement.merge if statement is not None else tagged


class RepositoryPath(Value):
    """A path on the target branch of a repository, where a variant has a package or had one."""

    repository_state: RepositoryState | None  # None: the repository is not declared any more
    repository: str  # name of the Repository object; "": none is declared
    path: str

    @property
    def path_state(self) -> PathState:
        """Return the state of the path on the branch."""
        state = self.repository_state
        return state.path_states.get(self.path, EMPTY_PATH) if state is not None else EMPTY_PATH

    @property
    def pristine_tree(self) -> str | None:
        """Return the tree of the rendering published there, without edits."""
        state = self.repository_state
        return state.published_renderings.get(self.path) if state is not None else None


class ObservedPath(RepositoryPath):
    """A path in a repository that is declared."""

    repository_state: RepositoryState
