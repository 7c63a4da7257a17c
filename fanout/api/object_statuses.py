"""Statuses of the kinds in a cluster, where fanout writes what it observed.

Views have the same for files; a status keeps the part that people select and wait for.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, StrictInt, StringConstraints

from fanout.api.durations import Instant
from fanout.api.object_meta import Model
from fanout.api.output_views import StageViewStatus
from fanout.api.stages import LIST_MAP_BY_NAME
from fanout.api.text_fields import CommitId, Name, RecordName
from fanout.api.view_base import HoldView

MAX_HOLDS = 5


class ObjectCondition(Model):
    """One condition, with the fields that Kubernetes requires of conditions."""

    type: Annotated[
        str,
        StringConstraints(
            max_length=316,
            pattern=r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        ),
    ] = Field(
        description="Type of the condition: `Ready`, `Reconciling`, `Stalled` or another"
        " one of fanout."
    )
    status: Literal["True", "False", "Unknown"] = Field(
        description="Whether the condition holds: `True`, `False` or `Unknown`."
    )
    reason: Annotated[
        str,
        StringConstraints(
            min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
        ),
    ] = Field(description="Reason as one CamelCase word; the index of reasons lists all values.")
    message: Annotated[str, StringConstraints(max_length=32768)] = Field(
        description="Explanation of the reason as one sentence."
    )
    last_transition_time: Instant = Field(description="Time since which the condition holds.")
    observed_generation: StrictInt | None = Field(
        default=None, description="Generation of the object that the condition is about."
    )


class ResourceStatus(Model):
    """Status that all kinds have."""

    observed_generation: StrictInt = Field(
        description="Generation of the spec that the status is about."
    )
    last_handled_reconcile_at: str | None = Field(
        default=None,
        description="Value of the annotation `reconcile.fanout.dev/requestedAt` that was last"
        " acted on.",
    )
    conditions: tuple[ObjectCondition, ...] = Field(
        description="Conditions of the object; `Ready` is always present, `Reconciling` and"
        " `Stalled` only while they are true.",
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    )


class PolicyStageStatus(StageViewStatus):
    """Observed state of one stage of a policy."""

    name: Name = Field(description="Name of the stage.")


class PolicyStatus(ResourceStatus):
    """Observed state of a policy."""

    stages: tuple[PolicyStageStatus, ...] = Field(
        default=(),
        description="Observed state of the stages, in the order of the policy.",
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    counts: dict[str, int] = Field(
        default={}, description="Number of variants in each state, by state."
    )
    next: Instant = Field(
        default=None, description="Next time when the state can change without action."
    )


class DraftStatus(Model):
    """Draft of a variant."""

    revision: str | None = Field(default=None, description="Upstream revision of the draft.")
    branch: str = Field(description="Branch of the draft.")
    commit: CommitId = Field(description="Commit at the tip of the branch.")
    tree: CommitId | None = Field(
        default=None,
        description="Git tree of the package, which approvals refer to; absent if a commit"
        " removed the package from the branch.",
    )


class PublishedStatus(Model):
    """Publication of a variant."""

    revision: str | None = Field(default=None, description="Upstream revision that is published.")
    tag: str | None = Field(default=None, description="Tag of the publication, if there is one.")
    commit: CommitId | None = Field(
        default=None, description="Commit of the publication, if it is on record."
    )


class VariantStatus(ResourceStatus):
    """Observed state of a variant."""

    state: str = Field(description="State of the variant, as `fanout get targets` shows it.")
    stage: str | None = Field(default=None, description="Name of the stage that it is in.")
    revision: str | None = Field(
        default=None,
        description="Upstream revision that is published, or of the draft if none is.",
    )
    digest: str | None = Field(
        default=None, description="Digest of the inputs that the package was rendered from."
    )
    draft: DraftStatus | None = Field(default=None, description="Open draft.")
    published: PublishedStatus | None = Field(default=None, description="Last publication.")
    holds: Annotated[tuple[HoldView, ...], Field(max_length=MAX_HOLDS)] = Field(
        default=(), description="First reasons why it is blocked."
    )
    more_holds: StrictInt = Field(default=0, description="Number of further reasons.")
    next: Instant = Field(
        default=None, description="Next time when the state can change without action."
    )


class RecordStatus(ResourceStatus):
    """State of a record: whether it was taken in, and whether it counts."""

    record: RecordName = Field(
        default="", description="Name of the record in the records repository."
    )


STATUSES: Mapping[str, type[ResourceStatus]] = {
    "UpstreamPolicy": PolicyStatus,
    "PackageVariant": VariantStatus,
    "Evidence": RecordStatus,
    "Approval": RecordStatus,
    "Decision": RecordStatus,
}
"""Status by kind; those of other kinds have conditions alone."""
