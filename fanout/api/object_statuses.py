"""Statuses of the kinds: in a cluster, where fanout writes them, and as `fanout get` lists them.

A status in a cluster keeps the part of what views have that people select and wait for. What else
listed objects have is as in the files; a variant of a policy is listed as somebody would write it
by hand.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from fanout.api.durations import INSTANT_PATTERN
from fanout.api.gate_vocabulary import Verdict
from fanout.api.results import CheckResult, Condition, Hold, StageResult
from fanout.api.stages import LIST_MAP_BY_NAME
from fanout.api.table_column import TableColumn
from fanout.api.text_fields import COMMIT, NAME, RECORD_NAME, list_map
from fanout.api.view_base import (
    REQUEST_COLUMN,
    RequestView,
    StateCounts,
    ViewModel,
    build_view_schema,
)
from fanout.values import Instant, doc, field

MAX_HOLDS = 5
_CommitId = Annotated[str, doc(pattern=COMMIT, max_length=40)]
_InstantText = Annotated[str, doc(pattern=INSTANT_PATTERN, format="date-time")]


class ResourceStatus(ViewModel, kw_only=True):
    """Status that all kinds have."""

    observed_generation: Annotated[int, doc("Generation of the spec that the status is about.")]
    last_handled_reconcile_at: Annotated[
        str | None,
        doc("Value of the annotation `reconcile.fanout.dev/requestedAt` that was last acted on."),
    ] = None
    conditions: Annotated[
        tuple[Condition, ...],
        doc(
            "Conditions of the object; `Ready` is always present, `Reconciling` and `Stalled`"
            " only while they are true.",
            **list_map("type"),
        ),
    ]


class PolicyStageStatus(StageResult, kw_only=True):
    """Observed state of one stage of a policy."""

    name: Annotated[str, doc("Name of the stage.", pattern=NAME, max_length=63)]


class PolicyStatus(ResourceStatus, kw_only=True):
    """Observed state of a policy."""

    stages: Annotated[
        tuple[PolicyStageStatus, ...],
        doc("Observed state of the stages, in the order of the policy.", **LIST_MAP_BY_NAME),
    ] = ()
    counts: StateCounts = field(default_factory=dict)
    next: Annotated[
        _InstantText | None, doc("Next time when the state can change without action.")
    ] = None


class DraftStatus(ViewModel, kw_only=True):
    """Draft of a variant."""

    revision: Annotated[str | None, doc("Upstream revision of the draft.")] = None
    branch: Annotated[str, doc("Branch of the draft.")]
    commit: Annotated[_CommitId, doc("Commit at the tip of the branch.")]
    tree: Annotated[
        _CommitId | None,
        doc(
            "Git tree of the package, which approvals refer to; absent if a commit"
            " removed the package from the branch."
        ),
    ] = None


class PublishedStatus(ViewModel):
    """Publication of a variant."""

    revision: Annotated[str | None, doc("Upstream revision that is published.")] = None
    tag: Annotated[str | None, doc("Tag of the publication, if there is one.")] = None
    commit: Annotated[_CommitId | None, doc("Commit of the publication, if it is on record.")] = (
        None
    )


class VariantStatus(ResourceStatus, kw_only=True):
    """Observed state of a variant."""

    state: Annotated[str, doc("State of the variant, as `fanout get targets` shows it.")]
    stage: Annotated[str | None, doc("Name of the stage that it is in.")] = None
    revision: Annotated[
        str | None, doc("Upstream revision that is published, or of the draft if none is.")
    ] = None
    digest: Annotated[
        str | None, doc("Digest of the inputs that the package was rendered from.")
    ] = None
    draft: Annotated[DraftStatus | None, doc("Open draft.")] = None
    published: Annotated[PublishedStatus | None, doc("Last publication.")] = None
    holds: Annotated[
        tuple[Hold, ...], doc("First reasons why it is blocked.", max_length=MAX_HOLDS)
    ] = ()
    more_holds: Annotated[int, doc("Number of further reasons.")] = 0
    next: Annotated[
        _InstantText | None, doc("Next time when the state can change without action.")
    ] = None


class RecordStatus(ResourceStatus, kw_only=True):
    """State of a record: whether it was taken in, and whether it counts."""

    record: Annotated[
        str,
        doc("Name of the record in the records repository.", pattern=RECORD_NAME, max_length=253),
    ] = ""


STATUSES: Mapping[str, type[ResourceStatus]] = {
    "UpstreamPolicy": PolicyStatus,
    "PackageVariant": VariantStatus,
    "Evidence": RecordStatus,
    "Approval": RecordStatus,
    "Decision": RecordStatus,
}
"""Status by kind; those of other kinds have conditions alone."""

# What Kubernetes requires of conditions, beyond those of views.
_CONDITION_BOUNDS: Mapping[str, Mapping[str, Any]] = {
    "type": {
        "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
        r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        "maxLength": 316,
    },
    "reason": {
        "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        "minLength": 1,
        "maxLength": 1024,
    },
    "message": {"maxLength": 32768},
    "lastTransitionTime": {
        "anyOf": [{"type": "string", "pattern": INSTANT_PATTERN, "format": "date-time"}],
        "description": "Time since which the condition holds.",
    },
    "observedGeneration": {"description": "Generation of the object that the condition is about."},
}


def build_resource_schema(kind: str) -> dict[str, Any]:
    """Return the JSON Schema of the status of a kind, with the conditions of Kubernetes."""
    schema = build_view_schema(STATUSES.get(kind, ResourceStatus))
    condition = schema["$defs"]["Condition"]
    fields = {
        name: {**it, **_CONDITION_BOUNDS.get(name, {})}
        for name, it in condition["properties"].items()
    }
    schema["properties"]["conditions"]["items"] = {
        **condition,
        "description": "One condition, with the fields that Kubernetes requires of conditions.",
        "properties": fields,
        "required": [name for name in fields if name != "observedGeneration"],
    }
    return schema


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
