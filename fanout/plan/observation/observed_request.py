"""Repositories as their forges show them: pull requests, reviews, statuses and branch rules.

Logins are those of the host, without its name; `ForgeIdentity` compares them. Instants are in UTC
and whole seconds.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from urllib.parse import urlsplit

from fanout.api.promotion_policy import MergeStyle
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.observation.branch_rules import BranchFacts
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.merge_outcome import Accepted, Mergeability
from fanout.values import Value, field


class RepositoryName(Value):
    """Repository on a forge: `owner/name`, or with the path of its groups as the owner."""

    owner: str
    name: str

    def __str__(self) -> str:
        """Return `owner/name`."""
        return f"{self.owner}/{self.name}"


def locate_repository(url: str) -> tuple[str, RepositoryName]:
    """Return host and name of the repository at a Git URL.

    The port belongs to the host of http:// and https://, not of ssh://, where it is another
    service's. Raises InvalidInput for a URL without a host, or without owner and name.
    """
    host, path = "", ""
    if "://" in url:
        parts = urlsplit(url)
        host, path = parts.hostname or "", parts.path
        host = f"[{host}]" if ":" in host else host
        if parts.scheme != "ssh" and parts.port is not None:
            host = f"{host}:{parts.port}"
    elif ":" in url:  # git@host:path
        host, _, path = url.rpartition("@")[2].partition(":")
        host = host.lower()
    segments = path.strip("/").removesuffix(".git").split("/")
    if not host or len(segments) < 2:
        raise InvalidInput(
            f"the URL {url} names no repository of a forge",
            reason="InvalidObject",
            remedy="write one like https://git.example.com/OWNER/NAME.git",
        )
    return host, RepositoryName(segments[-2], segments[-1])


class RequestState(StrEnum):
    """State of a pull request."""

    OPEN = "open"
    CLOSED = "closed"  # without having been merged
    MERGED = "merged"


class RequestDraft(Value):
    """Content of a pull request: of one that is to be opened, or that a forge shows."""

    head_branch: str
    base_branch: str
    title: str
    text: str
    is_draft: bool


class ObservedRequest(RequestDraft, kw_only=True):
    """Pull request as a forge shows it.

    `title` is without the prefix by which some forges mark drafts. `text_version` counts the
    changes of the text where the forge does, so that no change of a person is overwritten.
    `accepted`: the host has accepted its merge, by whomever, and has not made it. `mergeability`:
    None where the host says nothing that would tell a refusal from an attempt.
    """

    number: int
    url: str
    state: RequestState
    author: str
    labels: frozenset[str]
    head_repository: RepositoryName | None  # None: deleted, or not visible
    head_commit: str
    updated: datetime
    closed: datetime | None = None
    merged_by: str = ""
    merged_commit: str = ""  # on the base branch
    text_version: int = 0
    accepted: Accepted | None = None
    mergeability: Mergeability | None = None

    def may_change_unseen(self, *, checks_when_merging: bool) -> bool:
        """Return whether the host may show it otherwise although nobody has updated it.

        A queue moves on, checks end and a rule is met without an update of the request.
        """
        if self.state is not RequestState.OPEN:
            return False
        mergeability = self.mergeability
        return self.accepted is not None or (
            mergeability is not None
            and mergeability.is_refused(checks_when_merging=checks_when_merging)
        )

    def is_from(self, repository: RepositoryName) -> bool:
        """Return whether its head is a branch of this repository; hosts ignore case in names."""
        return str(self.head_repository).lower() == str(repository).lower()


class RequestMatch(Value):
    """Pull request found by a search of the host."""

    repository: RepositoryName
    number: int
    updated: datetime


class SearchedRequests(Value):
    """Pull requests that a search found, and the host's time when it answered."""

    matches: tuple[RequestMatch, ...]
    instant: datetime | None  # None: the host does not say


class RequestPart(StrEnum):
    """Part of a pull request that is written by itself, and may fail by itself."""

    TITLE = "title"
    DRAFT_FLAG = "draft flag"
    TEXT = "text"
    BASE_BRANCH = "target branch"
    LABELS = "labels"
    REVIEWERS = "reviewers"


class RequestEdit(Value):
    """Change of a pull request; None leaves a field as it is.

    Title and draft flag are given together, because some forges keep the flag in the title.
    """

    title: str | None = None
    is_draft: bool | None = None
    text: str | None = None
    base_branch: str | None = None

    @property
    def parts(self) -> tuple[RequestPart, ...]:
        """Parts that are to be changed."""
        values = {
            RequestPart.TITLE: self.title,
            RequestPart.DRAFT_FLAG: self.is_draft,
            RequestPart.TEXT: self.text,
            RequestPart.BASE_BRANCH: self.base_branch,
        }
        return tuple(part for part, value in values.items() if value is not None)


class ReviewVerdict(StrEnum):
    """Verdict of a review."""

    APPROVED = "approved"
    CHANGES_REQUESTED = "changes requested"
    COMMENTED = "commented"


class ObservedReview(Value):
    """Review of a pull request at one commit."""

    reviewer: str
    verdict: ReviewVerdict
    commit: str  # "" if the forge does not say
    instant: datetime
    is_dismissed: bool
    url: str = ""  # of its page; "" if the forge does not say

    @property
    def identity(self) -> ForgeIdentity:
        """Account of the reviewer."""
        return ForgeIdentity(self.reviewer)


class StatusState(StrEnum):
    """State of a commit status, or conclusion of a check run. Only "success" passes a check.

    A failure, an error and a timeout of the run are "failure". fanout sets the first three.
    """

    SUCCESS = "success"
    PENDING = "pending"
    FAILURE = "failure"
    NEUTRAL = "neutral"
    SKIPPED = "skipped"
    STALE = "stale"  # the host gave up a run that did not end
    CANCELLED = "cancelled"
    ACTION_REQUIRED = "action required"


class CommitStatus(Value):
    """Newest status or check run of one context (the name of a run) at a commit, by one creator."""

    context: str
    state: StatusState
    creator: str  # login or app
    instant: datetime
    description: str = ""
    url: str = ""
    is_rerunnable: bool = False  # the host can run it again
    creator_aliases: frozenset[str] = frozenset()

    @property
    def identity(self) -> ForgeIdentity:
        """Account that set it."""
        return ForgeIdentity(self.creator, self.creator_aliases)


def find_newest_statuses(statuses: Iterable[CommitStatus]) -> tuple[CommitStatus, ...]:
    """Return the newest status of each context and creator, newest first.

    Statuses and check runs are one list. Of those of one instant the first given is the newest.
    """
    newest: dict[tuple[str, str], CommitStatus] = {}
    for status in sorted(statuses, key=lambda it: it.instant, reverse=True):
        newest.setdefault((status.context, status.identity.key), status)
    return tuple(newest.values())


class PolledRepository(Value, kw_only=True):
    """Open pull requests of a repository, all of them, as a host showed those of many at once.

    `reviews` and `statuses` have only requests and head commits of which the host showed all.
    """

    requests: tuple[ObservedRequest, ...]
    reviews: Mapping[int, tuple[ObservedReview, ...]]  # by number of the request; oldest first
    statuses: Mapping[str, tuple[CommitStatus, ...]]  # by head commit; newest first


class ChangedPaths(Value):
    """Paths of the files that a pull request changes, and the head commit that they are of.

    A renamed file counts with both names. `head_commit` is "" where the host does not say it, as
    for a request that changes nothing.
    """

    head_commit: str
    paths: frozenset[str]


class RepositoryFacts(Value):
    """Settings of a repository."""

    name: RepositoryName  # the present one, if it was renamed
    is_archived: bool
    merge_styles: frozenset[MergeStyle]


class GuardedMerge(Value):
    """Merge of a pull request, guarded by the head that was judged.

    Its message is written when all merges of a pass are known.
    """

    number: int
    head_commit: str
    head_branch: str  # deleted after the merge
    style: MergeStyle
    subject: str = ""
    body: str = ""


class RequestFacts(Value, kw_only=True):
    """A pull request of fanout with its reviews: one from its branch to the Repository's branch.

    `reviewed_trees` has the package trees of each reviewed commit, by commit and path; commits
    whose objects are not there any more are left out. `refused_revisions` has the revisions that
    the draft had at each commit about which a review requests changes, by commit and variant.
    """

    request: ObservedRequest
    reviews: tuple[ObservedReview, ...] = ()
    reviewed_trees: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    refused_revisions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    earlier: tuple[int, ...] = ()  # closed requests whose requests for changes are in `reviews`
    closed_by: str = ""  # login of who closed it; "": it is open, or the forge does not say


class OtherRequest(Value, kw_only=True):
    """Open pull request of somebody else to a branch that requires the status of fanout.

    `status` is state and description of the newest status of fanout's context at the head; "" if
    there is none. `problem` says why it was not read.
    """

    number: int
    head_commit: str
    changed_packages: tuple[str, ...] = ()  # paths of packages of this installation
    status: str = ""
    problem: str = ""


class ForgeState(Value, kw_only=True):
    """A repository as its forge shows it in one pass.

    `account` is fanout's own. `branch` and `repository` are None where nothing depends on them in
    this pass. `checks_when_merging`: the host computes by an attempt to merge whether it can.
    `failure` says why nothing is known.
    """

    host: str  # "git.example.com"
    account: ForgeIdentity = ForgeIdentity()
    checks_when_merging: bool = True
    repository: RepositoryFacts | None = None
    branch: BranchFacts | None = None  # rules of the Repository's branch
    requests: Mapping[str, RequestFacts] = field(default_factory=dict)  # by full ref of the head
    # Other open pull requests from a branch of fanout, by full ref of the head.
    foreign_requests: Mapping[str, tuple[ObservedRequest, ...]] = field(default_factory=dict)
    # Of everybody else; empty where the branch does not require the status of fanout.
    other_requests: tuple[OtherRequest, ...] = ()
    # Statuses that checks wait for, by commit: newest of each context and creator, newest first.
    statuses: Mapping[str, tuple[CommitStatus, ...]] = field(default_factory=dict)
    failure: FanoutError | None = None
