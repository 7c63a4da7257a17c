"""Scenario: a stated world for the gates, with what is expected of it (`fanout simulate`, `test`).

It needs no repository and no cluster: everything that the gates look at can be said in it.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt

from fanout.api.durations import Duration, Instant
from fanout.api.meta import KRMObject
from fanout.api.promotion_policy import PromotionPolicySpec
from fanout.api.reason_classes import ReasonClass
from fanout.api.records import Answer
from fanout.api.scenario_state import (
    AnswerEvent,
    Stated,
    StatedApproval,
    StatedDecision,
    StatedEvidence,
    StatedHistory,
    StatedVariant,
    When,
)
from fanout.api.stages import BY_NAME, Stage
from fanout.api.texts import Distinct, Name, RevisionName, Text
from fanout.api.upstream_policy import InFlight

Number = Annotated[StrictInt, Field(ge=0)]
Verdict = Answer


StateName = Literal[
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


class Event(Stated):
    """Something that happens at an instant; without anything else, time has passed."""

    at: When = Field(description="When.")
    revision: RevisionName | None = Field(
        default=None, description="A new revision, newer than all before."
    )
    evidence: StatedEvidence | None = Field(default=None, description="Somebody reports.")
    approval: StatedApproval | None = Field(default=None, description="Somebody approves.")
    decision: StatedDecision | None = Field(default=None, description="Somebody decides.")
    answer: AnswerEvent | None = Field(
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


class Advance(Stated):
    """What the gates let through is carried out at once, and checks pass after a time."""

    ready_after: Duration = Field(
        default=None, description="How long after publication checks pass; absent: at once."
    )
    until: When = Field(
        default=None,
        description="Where to stop; absent: where nothing more happens by itself, 30 days after the"
        " last event or moment at the latest.",
    )


class ExpectedRevision(Stated):
    """A revision that a stage is expected not to take, and why."""

    revision: RevisionName = Field(description="The revision.")
    newer: StrictBool | None = Field(
        default=None, description="It waits behind the candidate; false: it can pass no more."
    )
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of the reasons."
    )
    reasons: Distinct[Text] | None = Field(default=None, description="The reasons themselves.")


class ExpectedStage(Stated):
    """What is expected of a stage; what is absent is not looked at."""

    stage: Name = Field(description="The stage.")
    candidate: RevisionName | Literal[""] | None = Field(
        default=None, description="Its candidate; empty: none."
    )
    gate: Verdict | None = Field(default=None, description="Whether the stages before let it.")
    verdict: Verdict | None = Field(default=None, description="The candidate's verdict here.")
    halted: StrictBool | None = Field(default=None, description="Halted by failures.")
    budget: Number | None = Field(default=None, description="How many may be in flight.")
    in_flight: Number | None = Field(default=None, description="How many are.")
    ready: Number | None = Field(default=None, description="How many are ready.")
    failed: Number | None = Field(default=None, description="How many have failed.")
    total: Number | None = Field(default=None, description="How many count.")
    released: tuple[Name, ...] | None = Field(
        default=None, description="The variants that are released now, in their order."
    )
    releases: Number | None = Field(default=None, description="How many are released now.")
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
    next: When = Field(default=None, description="The next instant at which it can change.")


class ExpectedVariant(Stated):
    """What is expected of a variant; what is absent is not looked at."""

    variant: Name = Field(description="The variant.")
    state: StateName | None = Field(default=None, description="Where it is on its way.")
    revision: RevisionName | Literal[""] | None = Field(
        default=None, description="What it has in force; empty: nothing."
    )
    released: StrictBool | None = Field(default=None, description="It is released now.")
    published: StrictBool | None = Field(default=None, description="It is published now.")
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of the reasons why it is held; empty: it is not."
    )
    reasons: Distinct[Text] | None = Field(default=None, description="The reasons themselves.")


class Expectation(Stated):
    """What is expected at a moment, of the first pass there."""

    at: When = Field(default=None, description="The moment; absent: `now`.")
    stages: tuple[ExpectedStage, ...] = Field(default=(), description="Of stages.")
    variants: tuple[ExpectedVariant, ...] = Field(default=(), description="Of variants.")
    held: Distinct[ReasonClass] | None = Field(
        default=None, description="The classes of the reasons why the policy as a whole is held."
    )
    next: When = Field(default=None, description="The next instant at which anything can change.")


class ExpectedWaves(Stated):
    """How a rollout is expected to grow."""

    stage: Name = Field(description="The stage.")
    waves: tuple[Number, ...] = Field(
        description="How many variants each pass releases; passes that release none do not count."
    )


class ScenarioSpec(Stated):
    """The world, what happens in it, and what is expected."""

    policy: Name | None = Field(
        default=None, description="An UpstreamPolicy of the files, by name; or:"
    )
    stages: tuple[Stage, ...] = Field(
        default=(),
        description="The stages themselves, as an UpstreamPolicy has them.",
        json_schema_extra=BY_NAME,
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
        default=(), description="The variants and how they stand.", json_schema_extra=BY_NAME
    )
    history: tuple[StatedHistory, ...] = Field(
        default=(), description="What is on record of revisions in stages beside that."
    )
    evidence: tuple[StatedEvidence, ...] = Field(default=(), description="Recorded evidence.")
    approvals: tuple[StatedApproval, ...] = Field(default=(), description="Recorded approvals.")
    decisions: tuple[StatedDecision, ...] = Field(default=(), description="Recorded decisions.")
    events: tuple[Event, ...] = Field(
        default=(), description="What happens at `now` or later, in order."
    )
    moments: tuple[When, ...] = Field(
        default=(), description="Further moments to be asked; `now` and all events are."
    )
    advance: Advance | None = Field(
        default=None, description="Carry out what the gates let through."
    )
    expect: tuple[Expectation, ...] = Field(
        default=(), description="What is expected, moment by moment (`fanout test`)."
    )
    expect_waves: tuple[ExpectedWaves, ...] = Field(
        default=(), description="What is expected of rollouts as a whole."
    )

    def instant(self, when: datetime | timedelta | None) -> datetime:
        """A moment as an instant: as written, so long from `now`, or `now` where none is said."""
        assert self.now is not None, "validation wants it"
        return when if isinstance(when, datetime) else self.now + (when or timedelta(0))


class Scenario(KRMObject):
    """A stated world for the gates, and what is expected of them."""

    model_config = ConfigDict(defer_build=True)
    PLURAL: ClassVar[str] = "scenarios"

    kind: Literal["Scenario"] = Field(default="Scenario", description="Scenario.")
    spec: ScenarioSpec = Field(description="The world, what happens in it, and what is expected.")


def names_of(variant: StatedVariant) -> Iterator[str]:
    """The names of the variants that are meant: one, or as many as `count` says."""
    if variant.count is None:
        yield variant.name
        return
    width = max(3, len(str(variant.count)))
    for number in range(1, variant.count + 1):
        yield f"{variant.name}-{number:0{width}}"
