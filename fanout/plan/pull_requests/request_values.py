"""Content of the text of a pull request as values, from which the text is formatted alone."""

from datetime import datetime

from fanout.api.gate_vocabulary import Verdict
from fanout.api.promotion_policy import MergeMethod
from fanout.api.results import CheckResult, Hold
from fanout.api.view_base import RequestView
from fanout.plan.pull_requests.object_changes import PackageDifference
from fanout.plan.rendered_variant import ChangeVerb
from fanout.values import Value


class RequestVariant(Value, kw_only=True):
    """Variant in a pull request, with the change of its package."""

    name: str
    path: str
    verb: ChangeVerb
    target: str = ""
    old_path: str = ""  # before a move
    old_revision: str = ""  # in force now; "": none is, or it is not known
    revision: str = ""  # in the request; "": the package is removed
    detail: str = ""  # why, for a removal


class RequestUpstream(Value, kw_only=True):
    """An upstream revision that packages of a request were made from."""

    repository: str  # URL
    package: str
    revision: str
    commit: str


class PackageChange(Value):
    """Changes of files that several packages have alike, as lines of a patch.

    `paths` are those of the packages. Values of Secrets are masked. `omitted` says what is left
    out of a long one.
    """

    paths: tuple[str, ...]
    lines: tuple[str, ...]
    omitted: str = ""  # "120 more lines in 3 files"
    is_metadata: bool = False  # of Kptfile and package context, which change with each revision


class ChangedPackages(Value):
    """Packages with an equal difference in objects and files."""

    paths: tuple[str, ...]
    difference: PackageDifference


class UpstreamCommit(Value):
    """A commit of an upstream repository that touches the package."""

    commit: str
    subject: str
    author: str  # name without address
    url: str = ""  # of its page; "": the host's pages are not known


class UpstreamHistory(Value, kw_only=True):
    """Upstream's commits between two revisions of a package, the newest first.

    `omitted` is the number of those that are not listed, at least that many if `is_cut`.
    """

    package: str
    old_revision: str
    revision: str
    commits: tuple[UpstreamCommit, ...] = ()
    authors: tuple[str, ...] = ()  # of all of them
    omitted: int = 0
    is_cut: bool = False
    is_backward: bool = False  # the commits are those that an earlier revision lacks
    tag_url: str = ""
    compare_url: str = ""


class StageEvidence(Value):
    """Result of a check that a stage shows, and the page that whoever reported it names."""

    check: str
    verdict: Verdict
    url: str = ""


class StageLine(Value, kw_only=True):
    """State of a stage of the policy, with respect to the revisions of a request."""

    name: str
    revisions: tuple[str, ...] = ()  # published there, the newest first
    readiness: str = ""  # "all of 12", "some of 12", "none of 12"
    since: datetime | None = None
    evidence: tuple[StageEvidence, ...] = ()
    is_own: bool = False  # the stage of the request


class RequestConflict(Value):
    """A merge conflict that packages have alike."""

    paths: tuple[str, ...]
    message: str
    is_decided: bool


class RequestHold(Value):
    """Hold of packages of a request; without paths, of all of them."""

    hold: Hold
    paths: tuple[str, ...] = ()


class RequestCheck(Value):
    """Result of a check that packages of a request have alike."""

    result: CheckResult
    paths: tuple[str, ...]


class RequestReadings(Value, kw_only=True):
    """Facts for the text of one request that are read for it alone.

    `patches` and `changed` are of the packages that its drafts change.
    """

    patches: tuple[PackageChange, ...] = ()
    changed: tuple[ChangedPackages, ...] = ()
    histories: tuple[UpstreamHistory, ...] = ()


class RequestContent(Value, kw_only=True):
    """Content of the text of a pull request."""

    install: str
    policy: str  # "<namespace>/<name>"; of a variant written by hand its own name
    stage: str = ""
    repository: str  # name of the Repository object
    branch: str  # short name of the branch that is merged into
    head_branch: str  # short name of the branch of the draft
    variants: tuple[RequestVariant, ...]
    changes: tuple[PackageChange, ...] = ()
    conflicts: tuple[RequestConflict, ...] = ()
    holds: tuple[RequestHold, ...] = ()
    checks: tuple[RequestCheck, ...] = ()
    upstreams: tuple[RequestUpstream, ...] = ()
    changed: tuple[ChangedPackages, ...] = ()
    histories: tuple[UpstreamHistory, ...] = ()
    stages: tuple[StageLine, ...] = ()
    siblings: tuple[RequestView, ...] = ()  # of the same stage in other repositories
    omitted_siblings: int = 0
    merge: MergeMethod = MergeMethod.DIRECT
    approval_checks: tuple[str, ...] = ()  # checks of the stage that wait for approvals
