"""A repository as its forge shows it: the pull requests of fanout, their reviews and statuses."""

from collections.abc import Mapping

from fanout.errors import FanoutError
from fanout.plan.observation.observed_request import (
    BranchFacts,
    CommitStatus,
    ObservedRequest,
    ObservedReview,
    RepositoryFacts,
)
from fanout.values import Value, field


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

    `login` is fanout's own. `branch` and `repository` are None where nothing depends on them in
    this pass. `failure` says why nothing is known.
    """

    host: str  # "git.example.com"
    login: str = ""
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
