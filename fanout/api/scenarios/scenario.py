"""Scenario: stated inputs of the gates, events, and expected results.

It needs no repository and no cluster: every input of the gates can be stated in it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from fanout.api.durations import Duration, Instant
from fanout.api.object_meta import KRMObject
from fanout.api.promotion_policy import PromotionPolicySpec
from fanout.api.reasons import ReasonClass
from fanout.api.record_objects import EvidenceStatus
from fanout.api.scenarios.scenario_state import (
    CheckResultEvent,
    InstantOrDistance,
    ScenarioModel,
    StatedApproval,
    StatedDecision,
    StatedEvidence,
    StatedHistory,
    StatedVariant,
)
from fanout.api.stages import LIST_MAP_BY_NAME, Stage
from fanout.api.text_fields import Distinct, Name, RevisionName, Text
from fanout.api.upstream_policy import InFlight

Count = Annotated[StrictInt, Field(ge=0)]
Verdict = EvidenceStatus


VariantStateName = Literal[
    "Drafted",
    "Released",
    "Proposed",
    "Verifying",
    "Ready",
    "Failed",
    "Suspended",
    "Held",
    "Skipped",
]


class ScenarioEvent(ScenarioModel):
    """Event at an instant; without any other field, time has passed."""

    at: InstantOrDistance = Field(description="When.")
    revision: RevisionName | None = Field(
        default=None, description="A new revision, newer than all before."
    )
    evidence: StatedEvidence | None = Field(default=None, description="Somebody reports.")
    approval: StatedApproval | None = Field(default=None, description="Somebody approves.")
    decision: StatedDecision | None = Field(default=None, description="Somebody decides.")
    answer: CheckResultEvent | None = Field(
        default=None, description="A check answers, whatever way it is asked."
    )
    publish: StrictBool = Field(
        default=False, description="What the gates let through is released and published."
    )
    comes: StatedVariant | None = Field(
        default=None, description="A variant comes, or stands anew as it is said here."
    )
    goes: Distinct[Name] = Field(default=(), description="Variants that are there no more.")
    offline: Distinct[Name] = Field(default=(), description="Variants that go offline.")
    online: Distinct[Name] = Field(default=(), description="Variants that come back.")
    changed: Distinct[Name] = Field(
        default=(), description="Variants whose inputs are others from now on."
    )


class AdvanceSettings(ScenarioModel):
    """Simulated progress: open gates are acted on at once, and checks pass after a time."""

    ready_after: Duration = Field(
        default=None, description="How long after publication checks pass; absent: at once."
    )
    until: InstantOrDistance = Field(
        default=None,
        description="Where to stop; absent: where nothing more happens by itself, 30 days after the"
        " last event or moment at the latest.",
    )


class ExpectedRevision(ScenarioModel):
    """Revision that a stage is expected not to take, and the reasons."""

    revision: RevisionName = Field(description="The revision.")
    newer: StrictBool | None = Field(
        default=None, description="It waits behind the candidate; false: it can pass no more."
    )
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of the reasons."
    )
    reasons: Distinct[Text] | None = Field(default=None, description="The reasons themselves.")


class ExpectedStage(ScenarioModel):
    """Expected state of a stage; absent fields are not compared."""

    stage: Name = Field(description="The stage.")
    candidate: RevisionName | Literal[""] | None = Field(
        default=None, description="Its candidate; empty: none."
    )
    gate: Verdict | None = Field(default=None, description="Whether the stages before let it.")
    verdict: Verdict | None = Field(default=None, description="The candidate's verdict here.")
    halted: StrictBool | None = Field(default=None, description="Halted by failures.")
    budget: Count | None = Field(default=None, description="How many may be in flight.")
    in_flight: Count | None = Field(default=None, description="How many are.")
    ready: Count | None = Field(default=None, description="How many are ready.")
    failed: Count | None = Field(default=None, description="How many have failed.")
    total: Count | None = Field(default=None, description="How many count.")
    released: tuple[Name, ...] | None = Field(
        default=None, description="The variants that are released now, in their order."
    )
    releases: Count | None = Field(default=None, description="How many are released now.")
    published: Distinct[Name] | None = Field(
        default=None, description="The variants that are published now."
    )
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of all reasons why something in it is held."
    )
    queued: tuple[RevisionName, ...] | None = Field(
        default=None, description="The revisions that wait behind the candidate."
    )
    others: tuple[ExpectedRevision, ...] | None = Field(
        default=None,
        description="The revisions that it might be expected to take instead, and why not; empty:"
        " there are none.",
    )
    next: InstantOrDistance = Field(
        default=None, description="The next instant at which it can change."
    )


class ExpectedVariant(ScenarioModel):
    """Expected state of a variant; absent fields are not compared."""

    variant: Name = Field(description="The variant.")
    state: VariantStateName | None = Field(default=None, description="Where it is on its way.")
    revision: RevisionName | Literal[""] | None = Field(
        default=None, description="What it has in force; empty: nothing."
    )
    released: StrictBool | None = Field(default=None, description="It is released now.")
    published: StrictBool | None = Field(default=None, description="It is published now.")
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of the reasons why it is held; empty: it is not."
    )
    reasons: Distinct[Text] | None = Field(default=None, description="The reasons themselves.")


class Expectation(ScenarioModel):
    """Expected results at a moment, of the first pass there."""

    at: InstantOrDistance = Field(default=None, description="The moment; absent: `now`.")
    stages: tuple[ExpectedStage, ...] = Field(default=(), description="Of stages.")
    variants: tuple[ExpectedVariant, ...] = Field(default=(), description="Of variants.")
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of the reasons why the policy as a whole is held."
    )
    next: InstantOrDistance = Field(
        default=None, description="The next instant at which anything can change."
    )


class ExpectedWaves(ScenarioModel):
    """Expected numbers of released variants, pass by pass."""

    stage: Name = Field(description="The stage.")
    waves: tuple[Count, ...] = Field(
        description="How many variants each pass releases; passes that release none do not count."
    )


class ScenarioSpec(ScenarioModel):
    """Stated inputs, events, and expected results."""

    policy: Name | None = Field(
        default=None, description="An UpstreamPolicy of the files, by name; or:"
    )
    stages: tuple[Stage, ...] = Field(
        default=(),
        description="The stages themselves, as an UpstreamPolicy has them.",
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    promotion: PromotionPolicySpec | None = Field(
        default=None,
        description="With `stages`: what an administrator says; absent: all of them are automatic.",
    )
    in_flight: InFlight | None = Field(
        default=None,
        description="With `stages`: what a newer revision does to one under way; absent:"
        " Supersede.",
    )
    suspend: StrictBool = Field(default=False, description="The policy is suspended by its spec.")
    unread: StrictBool = Field(
        default=False,
        description="A PromotionPolicy cannot be read: nothing is automatic, no window is open.",
    )
    revisions: Distinct[RevisionName] = Field(
        description="The revisions that the policy's rule allows, oldest first."
    )
    now: Instant = Field(description="The moment that the world is stated for, RFC 3339.")
    sweep: StrictBool = Field(
        default=True, description="The passes are sweeps; false: automation publishes nothing."
    )
    variants: tuple[StatedVariant, ...] = Field(
        default=(),
        description="The variants and how they stand.",
        json_schema_extra=LIST_MAP_BY_NAME,
    )
    history: tuple[StatedHistory, ...] = Field(
        default=(), description="What is on record of revisions in stages beside that."
    )
    evidence: tuple[StatedEvidence, ...] = Field(default=(), description="Recorded evidence.")
    approvals: tuple[StatedApproval, ...] = Field(default=(), description="Recorded approvals.")
    decisions: tuple[StatedDecision, ...] = Field(default=(), description="Recorded decisions.")
    events: tuple[ScenarioEvent, ...] = Field(
        default=(), description="What happens at `now` or later, in order."
    )
    moments: tuple[InstantOrDistance, ...] = Field(
        default=(), description="Further moments to be asked; `now` and all events are."
    )
    advance: AdvanceSettings | None = Field(
        default=None, description="Carry out what the gates let through."
    )
    expect: tuple[Expectation, ...] = Field(
        default=(), description="What is expected, moment by moment (`fanout test`)."
    )
    expect_waves: tuple[ExpectedWaves, ...] = Field(
        default=(), description="What is expected of rollouts as a whole."
    )

    def resolve_instant(self, when: datetime | timedelta | None) -> datetime:
        """Return a moment as an instant; a distance counts from `now`, absent is `now`."""
        assert self.now is not None, "validation wants it"
        return when if isinstance(when, datetime) else self.now + (when or timedelta(0))


class Scenario(KRMObject):
    """Stated inputs of the gates, and the expected results."""

    model_config = ConfigDict(defer_build=True)
    PLURAL: ClassVar[str] = "scenarios"

    kind: Literal["Scenario"] = Field(default="Scenario", description="Scenario.")
    spec: ScenarioSpec = Field(description="The world, what happens in it, and what is expected.")


def expand_variant_names(variant: StatedVariant) -> Iterator[str]:
    """Yield the names of the variants of an entry: one, or as many as `count` says."""
    if variant.count is None:
        yield variant.name
        return
    width = max(3, len(str(variant.count)))
    for number in range(1, variant.count + 1):
        yield f"{variant.name}-{number:0{width}}"
