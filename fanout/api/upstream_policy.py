"""UpstreamPolicy: one upstream package, its targets, and the stages of their rollout."""

from enum import StrEnum
from fractions import Fraction
from typing import ClassVar, Literal

from pydantic import Field, StrictBool, StrictInt

from fanout.api.object_meta import KRMObject, Model, ObjectStatus
from fanout.api.package_variant import (
    AdoptionPolicy,
    DeletionPolicy,
    OnConflict,
    UpdateStrategy,
    Upstream,
)
from fanout.api.stages import LIST_MAP_BY_NAME, Amount, Stage
from fanout.api.target_spec import TargetEntry

REMOVAL_LIMIT = Fraction(1, 5)


class DraftPer(StrEnum):
    """Number of variants that share a draft."""

    AUTO = "Auto"
    VARIANT = "Variant"
    STAGE = "Stage"


class InFlight(StrEnum):
    """Effect of a newer revision on one that is in flight."""

    SUPERSEDE = "Supersede"
    SERIALIZE = "Serialize"


class UpstreamPolicySpec(Model):
    """Upstream package, targets, and the order of their rollout."""

    upstream: Upstream = Field(description="The upstream package and its wanted revisions.")
    targets: tuple[TargetEntry, ...] = Field(
        min_length=1, description="For what variants are made, entry by entry."
    )
    stages: tuple[Stage, ...] = Field(
        min_length=1,
        description="The stages that the variants go through.",
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    suspend: StrictBool = Field(
        default=False,
        description="All of the policy stays as it is: no draft is written, nothing published.",
    )
    draft_per: DraftPer = Field(
        default=DraftPer.AUTO,
        description="Whether each variant has its own draft, or a stage in a repository one.",
    )
    in_flight: InFlight = Field(
        default=InFlight.SUPERSEDE, description="What a newer revision does to one under way."
    )
    removal_limit: Amount = Field(
        default=REMOVAL_LIMIT,
        description='A pass that would remove more variants than this, 5 or "20%", holds until a'
        " person confirms it. A share of more than nothing is 3 at least.",
        json_schema_extra={"default": "20%"},
    )
    update_strategy: UpdateStrategy = Field(
        default=UpdateStrategy.RESOURCE_MERGE,
        description="How a new upstream revision meets what is downstream.",
    )
    on_conflict: OnConflict = Field(
        default=OnConflict.HOLD,
        description="What becomes of a draft in which upstream and local changed the same: it is"
        " held until a person decides, or one side's values win.",
    )
    adoption_policy: AdoptionPolicy = Field(
        default=AdoptionPolicy.ADOPT_NONE,
        description="What happens when there is a package at a variant's path already.",
    )
    deletion_policy: DeletionPolicy = Field(
        default=DeletionPolicy.DELETE, description="What happens to packages that are not wanted."
    )
    history: StrictInt = Field(
        default=10, ge=1, description="How many revisions are remembered in the status."
    )


class UpstreamPolicy(KRMObject):
    """One upstream package, cloned into a variant per target and promoted stage by stage."""

    PLURAL: ClassVar[str] = "upstreampolicies"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("upol",)

    kind: Literal["UpstreamPolicy"] = Field(default="UpstreamPolicy", description="UpstreamPolicy.")
    spec: UpstreamPolicySpec = Field(
        description="What comes from where, for whom, and in which order."
    )
    status: ObjectStatus = Field(default=ObjectStatus(), description="What fanout says about it.")
