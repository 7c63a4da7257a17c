"""Statuses and columns of policies, variants and repositories as `fanout get` lists them.

What else these objects have is as in the files; a variant of a policy is listed as somebody would
write it by hand.
"""

from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import CheckResult, Condition
from fanout.api.table_column import TableColumn
from fanout.api.view_base import REQUEST_COLUMN, RequestView, ViewModel
from fanout.values import Instant


class ListedStage(ViewModel):
    """Stage of a policy: its candidate, and the verdict of that."""

    name: str
    candidate: str
    verdict: Verdict


class ListedPolicyStatus(ViewModel, kw_only=True):
    """Observed state of a policy, with numbers of its variants."""

    observed_generation: int
    conditions: tuple[Condition, ...]
    variants: int
    failed_targets: int  # which have no variant
    failed_variants: int
    gone_variants: int  # whose target is gone
    edited_variants: int
    conflicts: int  # undecided ones, of all drafts
    broken_variants: int  # published with invalid files
    stages: tuple[ListedStage, ...]
    next: Instant | None = None  # next time when the state can change without action


# When a cluster stored the object; objects in files have no such time.
_AGE = TableColumn("AGE", "metadata.creationTimestamp", priority=3, absent="<unknown>")
POLICY_COLUMNS = (
    TableColumn("NAME", "metadata.name", priority=0),
    TableColumn("READY", "status.conditions.status", priority=0),
    TableColumn("REASON", "status.conditions.reason"),
    TableColumn("VARIANTS", "status.variants"),
    TableColumn(
        "FAILED",  # targets without a variant, and variants that failed
        lambda item: item["status"]["failedTargets"] + item["status"]["failedVariants"],
    ),
    TableColumn("CONFLICTS", "status.conflicts", priority=3),
    TableColumn("EDITED", "status.editedVariants", wide=True),
    TableColumn("BROKEN", "status.brokenVariants", wide=True),
    _AGE,
    TableColumn("MESSAGE", "status.conditions.message", priority=4, cut_width=12),
)


class PackageLocation(ViewModel):
    """Place of a package: name of a Repository, and path from the root of that."""

    repository: str
    package: str


class ListedPackage(ViewModel):
    """Package of a variant: upstream revision, and Git tree."""

    revision: str
    tree: str


class ListedPublication(ListedPackage, kw_only=True):
    """Publication of a variant; its place is given where the variant moves away from it."""

    digest: str
    at: Instant | None = None  # None: it is not on record yet
    commit: str
    tag: str
    out_of_band: bool
    repository: str | None = None
    package: str | None = None


class ListedDraft(ListedPackage, kw_only=True):
    """Open draft of a variant."""

    branch: str


class ListedVariantStatus(ViewModel, kw_only=True):
    """Observed state of a variant."""

    target: str
    target_name: str
    state: str
    candidate: str
    conditions: tuple[Condition, ...]
    conflicts: tuple[str, ...]  # keys of those that hold the draft
    checks: tuple[CheckResult, ...]
    published: ListedPublication | None = None
    left: tuple[PackageLocation, ...] | None = None  # places that a move left a package at
    draft: ListedDraft | None = None
    request: RequestView | None = None


VARIANT_COLUMNS = (
    TableColumn("TARGET", "status.targetName", priority=0),
    TableColumn("POLICY", "spec.policyRef.name", priority=2),
    TableColumn("STAGE", "spec.stage"),
    TableColumn("PUBLISHED", "status.published.revision"),
    TableColumn("CANDIDATE", "status.candidate"),
    TableColumn("STATE", "status.state", priority=0),
    TableColumn("REASON", "status.conditions.reason"),
    TableColumn("AGE", "status.published.at", priority=2),
    TableColumn(
        "ALSO",  # the true conditions beside Ready, such as OutOfBand
        lambda item: ",".join(
            str(it["type"]) for it in item["status"]["conditions"][1:] if it["status"] == "True"
        ),
        priority=3,
        cut_width=12,
    ),
    TableColumn("REPOSITORY", "spec.downstream.repository", priority=4),
    TableColumn("PATH", "spec.downstream.package", priority=4),
    TableColumn("NAME", "metadata.name", priority=5),
    TableColumn("CONFLICTS", "status.conflicts", wide=True),
    REQUEST_COLUMN,
    TableColumn("MESSAGE", "status.conditions.message", wide=True, cut_width=12),
)


class ListedRepositoryStatus(ViewModel):
    """Number of the variants in a repository, and whether it could be listed if it was."""

    variants: int
    conditions: tuple[Condition, ...] | None = None


REPOSITORY_COLUMNS = (
    TableColumn("NAME", "metadata.name", priority=0),
    TableColumn("URL", "spec.url", priority=2),
    TableColumn("BRANCH", "spec.branch", priority=2, absent="main"),
    TableColumn("READY", "status.conditions.status"),
    TableColumn("VARIANTS", "status.variants"),
    _AGE,
    TableColumn("MESSAGE", "status.conditions.message", wide=True, cut_width=12),
)
