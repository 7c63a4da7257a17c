"""Changes of a pass in one pull request, as data."""

from fanout.plan.observation.observed_request import (
    GuardedMerge,
    ObservedRequest,
    RequestDraft,
    RequestEdit,
    StatusState,
)
from fanout.plan.observation.repository_state import Remote
from fanout.values import Value


class RequestStatus(Value):
    """Status of fanout at the head of a pull request."""

    context: str  # "fanout", or "fanout/<install>"
    state: StatusState
    description: str


class RequestChange(Value, kw_only=True):
    """Calls of a pass about one pull request, in the order of the fields below `request`.

    `request` is None for one that is to be opened. The status is set at `head_commit`, or, if
    that is "", at the commit that the same pass pushes to the head branch.
    """

    remote: Remote  # of the repository in Git
    repository: str  # its identity
    policy: str  # "<namespace>/<name>", for which the calls are counted
    head_ref: str  # full name of the head branch
    head_commit: str = ""
    request: ObservedRequest | None = None
    opening: RequestDraft | None = None
    edit: RequestEdit | None = None
    added_labels: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()  # logins, or "team/NAME"
    status: RequestStatus | None = None
    merge: GuardedMerge | None = None
    closes: bool = False
