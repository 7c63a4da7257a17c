"""A repository of the tests' GitHub: what a real bare repository has, and what stands beside it."""

import subprocess
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import pygit2
from fleet import Repo

METHODS = ("merge", "squash", "rebase")
STATUSES = {
    pygit2.enums.DeltaStatus.ADDED: "added",
    pygit2.enums.DeltaStatus.DELETED: "removed",
    pygit2.enums.DeltaStatus.MODIFIED: "modified",
    pygit2.enums.DeltaStatus.RENAMED: "renamed",
    pygit2.enums.DeltaStatus.TYPECHANGE: "changed",
}


@dataclass(frozen=True)
class Account:
    """A person, an organization, or what an App acts as: a bot, whose login ends in `[bot]`."""

    id: int
    login: str
    kind: str = "User"  # User, Bot, Organization


@dataclass(frozen=True)
class App:
    """A GitHub App."""

    id: int
    slug: str
    account: Account
    key: Path | None = None  # file of the public key; None: signatures are not checked

    @property
    def client_id(self) -> str:
        return f"Iv23{self.id:012}"


@dataclass
class Review:
    """A review of a request; a dismissed one has no verdict any more."""

    id: int
    author: Account
    state: str  # APPROVED, CHANGES_REQUESTED, COMMENTED, DISMISSED
    commit: str | None
    submitted_at: datetime
    body: str = ""


@dataclass(frozen=True)
class CommitStatus:
    """A status of a commit."""

    id: int
    context: str
    state: str  # success, pending, failure, error
    creator: Account
    at: datetime
    description: str | None = None
    target_url: str | None = None


@dataclass(frozen=True)
class CheckRun:
    """A check of a commit, by an App."""

    id: int
    name: str
    status: str  # queued, in_progress, completed
    conclusion: str | None
    app: App
    at: datetime
    details_url: str | None = None


@dataclass(frozen=True)
class Event:
    """An act on a request, with its actor."""

    id: int
    kind: str  # closed, reopened, merged, head_ref_deleted
    actor: Account
    at: datetime
    commit: str | None = None
    app: App | None = None
    reason: str = ""  # why it left the queue


@dataclass
class Pull:
    """A pull request."""

    id: int
    number: int
    author: Account
    title: str
    body: str | None
    base: str
    head: str
    head_commit: str
    base_commit: str
    created_at: datetime
    updated_at: datetime
    is_draft: bool = False
    state: str = "open"
    closed_at: datetime | None = None
    merged_at: datetime | None = None
    merged_by: Account | None = None
    merge_commit: str | None = None
    labels: list[str] = field(default_factory=list)
    reviewers: list[Account] = field(default_factory=list)
    teams: list[str] = field(default_factory=list)
    reviews: list[Review] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    # For which head and base it was asked whether this can be merged, and how often.
    asked: tuple[str, str] | None = None
    reads: int = 0
    auto_merge: Any = None  # what is armed, an ArmedMerge of the state
    queued_at: datetime | None = None  # in the merge queue since then
    queued_by: Any = None  # whose Credential put it there
    queue_base: str | None = None  # that the queue's commit is on
    queue_commit: str | None = None  # whose checks the queue waits for

    @property
    def node(self) -> str:
        return f"PR_{self.id}"

    @property
    def queue_branch(self) -> str:
        return f"gh-readonly-queue/{self.base}/pr-{self.number}-{self.queue_base}"


@dataclass
class Rules:
    """Demands of a branch, by a ruleset or by classic protection."""

    checks: dict[str, int | None] = field(default_factory=dict)  # context: App that must set it
    approvals: int = 0
    methods: tuple[str, ...] = METHODS
    is_strict: bool = False  # the head must contain the base
    linear_history: bool = False
    signatures: bool = False
    code_owners: bool = False
    last_push_approval: bool = False
    conversation_resolution: bool = False
    queue: bool = False


class MergeConflict(Exception):
    """Head and base change the same lines."""


@dataclass
class Repository:
    """A repository: bare on disk at `path`."""

    id: int
    owner: Account
    name: str
    path: Path
    created_at: datetime
    is_private: bool = False
    is_archived: bool = False
    allows_drafts: bool = True
    allows_auto_merge: bool = False
    deletes_merged_branches: bool = False
    methods: tuple[str, ...] = METHODS
    writers: set[str] = field(default_factory=set)  # logins that may push
    readers: set[str] = field(default_factory=set)  # logins that see it where it is private
    teams: set[str] = field(default_factory=set)  # slugs of the organization
    rulesets: dict[str, Rules] = field(default_factory=dict)  # by branch
    protections: dict[str, Rules] = field(default_factory=dict)  # by branch, classic
    pulls: dict[int, Pull] = field(default_factory=dict)
    statuses: defaultdict[str, list[CommitStatus]] = field(
        default_factory=lambda: defaultdict(list)
    )
    check_runs: defaultdict[str, list[CheckRun]] = field(default_factory=lambda: defaultdict(list))
    # Called between the test of a merge and its write, as another merge would come in. It may
    # commit on disk and not ask the server, which is waiting for it.
    before_merge: Callable[[], object] = lambda: None

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    @property
    def node(self) -> str:
        return f"R_{self.id}"

    @property
    def on_disk(self) -> Repo:
        """The repository for committing and looking with git, as somebody beside the server."""
        return Repo(self.path)

    def rules(self, branch: str) -> list[Rules]:
        """Return the rules of a branch, of both kinds."""
        return [it[branch] for it in (self.rulesets, self.protections) if branch in it]

    @cached_property
    def _git(self) -> pygit2.Repository:
        return pygit2.Repository(str(self.path))  # sees at once what other processes push

    def commit_of(self, revision: str) -> str | None:
        """Return the id of the commit that a branch, tag or id names; None without one."""
        try:
            return str(self._git.revparse_single(revision).peel(pygit2.Commit).id)
        except (KeyError, ValueError, pygit2.InvalidSpecError):
            return None

    def branch_commit(self, branch: str) -> str | None:
        """Return the commit of a branch; None without one."""
        return self.commit_of(f"refs/heads/{branch}")

    def commit(self, commit: str) -> pygit2.Commit:
        """Return a commit that is there."""
        found = self._git[commit]
        assert isinstance(found, pygit2.Commit)
        return found

    def contains(self, descendant: str, ancestor: str) -> bool:
        """Return whether a commit is the other or comes after it."""
        return descendant == ancestor or self._git.descendant_of(descendant, ancestor)

    def merge_base(self, one: str, other: str) -> str | None:
        """Return the commit that both come from; None without one."""
        found = self._git.merge_base(one, other)
        return None if found is None else str(found)

    def commits(self, base: str, head: str) -> list[str]:
        """Return the commits of the head that the base does not have, oldest first."""
        order = pygit2.enums.SortMode.TOPOLOGICAL | pygit2.enums.SortMode.REVERSE
        walker = self._git.walk(head, order)
        walker.hide(base)
        return [str(it.id) for it in walker]

    def merge(self, pull: Pull, method: str, message: str, author: Account, at: datetime) -> str:
        """Return the commit that merges the request; the base stays where it is.

        Raises MergeConflict.
        """
        git, base, head = self._git, pull.base_commit, pull.head_commit
        instant = int(at.timestamp())
        merger = pygit2.Signature(author.login, f"{author.login}@users.noreply.github.com", instant)
        committer = pygit2.Signature("GitHub", "noreply@github.com", instant)
        if method != "rebase":
            tree = self._merge_trees(git, self.merge_base(base, head), base, head)
            parents = [base, head] if method == "merge" else [base]
            return str(git.create_commit(None, merger, committer, message, tree, parents))
        for commit in self.commits(base, head):
            original = self.commit(commit)
            if len(original.parents) > 1:
                continue  # as `git rebase` omits merges
            tree = self._merge_trees(git, str(original.parents[0].id), base, commit)
            text = original.message
            base = str(git.create_commit(None, original.author, committer, text, tree, [base]))
        return base

    def has_conflict(self, pull: Pull) -> bool:
        """Return whether git cannot merge the request."""
        base, head = pull.base_commit, pull.head_commit
        try:
            self._merge_trees(self._git, self.merge_base(base, head), base, head)
        except MergeConflict:
            return True
        return False

    def move_branch(self, branch: str, commit: str, expected: str) -> bool:
        """Move a branch from the expected commit; return whether it was still there."""
        self.on_disk.git("update-ref", f"refs/heads/{branch}", commit, expected, check=False)
        return self.branch_commit(branch) == commit

    def point_request(self, pull: Pull) -> None:
        """Set `refs/pull/N/head`, which stays when the branch goes."""
        self._git.references.create(f"refs/pull/{pull.number}/head", pull.head_commit, force=True)

    def create_branch(self, branch: str, commit: str) -> None:
        """Create a branch, or move it."""
        self._git.references.create(f"refs/heads/{branch}", commit, force=True)

    def queue(self) -> list[Pull]:
        """Return the requests in the merge queue, first ones first."""
        queued = [it for it in self.pulls.values() if it.queued_at is not None]
        return sorted(queued, key=lambda it: (it.queued_at, it.number))

    def delete_branch(self, branch: str) -> None:
        """Delete a branch that is there."""
        self._git.references.delete(f"refs/heads/{branch}")

    def changed_files(self, base: str, head: str) -> list[dict[str, Any]]:
        """Return what changed between two commits, in fields of `diff-entry`."""
        difference = self._git.diff(base, head)
        difference.find_similar()
        files = []
        for patch in difference:
            assert patch is not None, "it is a change of a file"
            delta = patch.delta
            _, additions, deletions = patch.line_stats
            entry = {
                "filename": delta.new_file.path,
                "status": STATUSES[delta.status],
                "sha": str((delta.new_file if delta.new_file.mode else delta.old_file).id),
                "additions": additions,
                "deletions": deletions,
                "changes": additions + deletions,
            }
            if delta.status == pygit2.enums.DeltaStatus.RENAMED:
                entry["previous_filename"] = delta.old_file.path
            files.append(entry)
        return files

    @staticmethod
    def _merge_trees(
        git: pygit2.Repository, origin: str | None, base: str, head: str
    ) -> pygit2.Oid:
        if origin is None:
            raise MergeConflict("the histories are unrelated")
        ancestor, ours, theirs = (git[it].peel(pygit2.Tree) for it in (origin, base, head))
        index = git.merge_trees(ancestor, ours, theirs)
        if index.conflicts is not None:
            raise MergeConflict
        return index.write_tree(git)


def create_bare(path: Path) -> None:
    """Create an empty repository that takes pushes to everything but requests' own refs."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(path)], check=True)
    for name, value in {
        "http.receivepack": "true",
        "receive.hideRefs": "refs/pull",
        "gc.auto": "0",
        "core.fsync": "none",
    }.items():
        subprocess.run(["git", "config", name, value], cwd=path, check=True)
