"""Scenario: stated inputs of the gates, events, and expected results.

It needs no repository and no cluster: every input of the gates can be stated in it.

An instant may be written as one, or as a distance from the scenario's `now`, like
`-30h`.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StrictBool,
    StrictInt,
    WithJsonSchema,
)

from fanout.api.durations import (
    INSTANT_PATTERN,
    Duration,
    Instant,
    format_duration,
    parse_duration,
    parse_instant,
)
from fanout.api.field_errors import InvalidValue
from fanout.api.gate_vocabulary import Action, OverridableGate, Verdict
from fanout.api.object_meta import KRMObject, Model
from fanout.api.promotion_policy import PromotionPolicySpec
from fanout.api.reasons import ReasonClass
from fanout.api.stages import LIST_MAP_BY_NAME, Stage
from fanout.api.text_fields import (
    CommitId,
    Distinct,
    FreeForm,
    Labels,
    Name,
    NonEmptyDistinct,
    RecordName,
    RevisionName,
    Text,
)
from fanout.api.upstream_policy import InFlight

_DISTANCE = r"[+-](?=.)([0-9]+h)?([0-9]+m)?([0-9]+s)?"
_INSTANT_OR_DISTANCE_SCHEMA = {"type": "string", "pattern": f"{INSTANT_PATTERN}|^{_DISTANCE}$"}


def _read_instant_or_distance(value: Any) -> datetime | timedelta | None:
    if value is None or isinstance(value, timedelta):
        return value
    if isinstance(value, str) and re.match(r"[+-]", value):
        distance = parse_duration(value[1:])
        return -distance if value[0] == "-" else distance
    try:
        return parse_instant(value)
    except InvalidValue as error:
        remedy = "write it like 2030-01-31T16:00:00Z, or from `now` on like -30h or +15m"
        raise InvalidValue(error.problem, remedy) from error


def _write_instant_or_distance(value: datetime | timedelta | None) -> str | None:
    if isinstance(value, timedelta):
        sign = "-" if value < timedelta(0) else "+"
        return f"{sign}{format_duration(abs(value))}"
    return None if value is None else value.isoformat().replace("+00:00", "Z")


InstantOrDistance = Annotated[
    datetime | timedelta | None,
    BeforeValidator(_read_instant_or_distance),
    PlainSerializer(_write_instant_or_distance),
    WithJsonSchema(_INSTANT_OR_DISTANCE_SCHEMA),
]


class ScenarioModel(Model):
    """Base of the parts of a scenario.

    Models are built on first use, since most commands read none.
    """

    model_config = ConfigDict(defer_build=True)


class _CheckResult(ScenarioModel):
    """Result of a check, from any source."""

    check: Name = Field(description="The check's name.")
    status: Verdict = Field(description="The answer.")
    message: str = Field(default="", description="What was said, for people.")
    seen: Text | None = Field(
        default=None,
        description="The revision or commit that a machine says it has seen; absent: the one asked"
        " about.",
    )


class StatedCheckResult(_CheckResult):
    """Result of a check at an instant."""

    at: InstantOrDistance = Field(default=None, description="When; absent: at the publication.")


class CheckResultEvent(_CheckResult):
    """Result of a check from the event on."""

    variants: NonEmptyDistinct[Name] = Field(description="For which variants.")


class StatedPublication(ScenarioModel):
    """Published revision of a variant, with the results of its checks."""

    revision: RevisionName | None = Field(
        default=None, description="The revision that is in force; absent: none is."
    )
    digest: Text | None = Field(
        default=None, description="The digest of its inputs; absent: the revision's name."
    )
    tree: Text | None = Field(default=None, description="The tree of its package.")
    commits: Distinct[CommitId] = Field(
        default=(), description="Commits at which evidence about it counts."
    )
    reads: Mapping[Text, Text] = Field(
        default={}, description="The cluster objects in it, each with its version."
    )
    published: InstantOrDistance = Field(
        default=None, description="When it was published; absent: when it was ready, else `now`."
    )
    ready: InstantOrDistance = Field(
        default=None, description="When all checks of `verification` had passed."
    )
    failed: InstantOrDistance = Field(
        default=None, description="When all checks of `verification` failed."
    )
    withdrawn: InstantOrDistance = Field(
        default=None, description="When the checks that had passed were reported as failed."
    )
    answers: tuple[StatedCheckResult, ...] = Field(
        default=(), description="Answers to single checks, those of `requires` among them."
    )


class StatedDraft(ScenarioModel):
    """Open draft that differs from an up-to-date draft of the candidate."""

    revision: RevisionName | None = Field(
        default=None, description="What it was rendered for; absent: the stage's candidate."
    )
    digest: Text | None = Field(
        default=None, description="The digest of its inputs; absent: the revision's name."
    )
    tree: Text | None = Field(default=None, description="Its tree, which approvals are about.")
    current: StrictBool = Field(
        default=True, description="It is what its inputs ask for; if not, it waits to be rewritten."
    )
    disputed: Annotated[StrictInt, Field(ge=0)] = Field(
        default=0, description="Values that both sides changed and nobody has decided."
    )
    adopts: StrictBool = Field(
        default=False, description="Its package is one that fanout did not write."
    )
    moves: StrictBool = Field(default=False, description="It is for another place.")
    reads: Mapping[Text, Text] = Field(
        default={}, description="The cluster objects in it, each with its version."
    )
    commits: Distinct[CommitId] = Field(
        default=(), description="Commits at which evidence about it counts."
    )
    authors: Distinct[Text] = Field(
        default=(), description="Who has changed what is in it: `Name <address>`, or the address."
    )


class StatedHold(ScenarioModel):
    """Hold on a variant that is independent of the gates."""

    message: Text = Field(description="What it is, in a sentence.")
    reason: Text | None = Field(
        default=None, description="The reason in one CamelCase word, from fanout's list."
    )
    who: str = Field(default="", description="Who can do something about it.")


class StatedDependency(ScenarioModel):
    """Variant elsewhere that has to be ready first."""

    name: Text = Field(description="Its name.")
    ready: StrictBool = Field(default=False, description="Whether it is ready.")


class StatedVariant(StatedPublication):
    """State of one variant, or of several equal ones.

    A state without an instant has always held.
    """

    name: Name = Field(description="The variant's name; with `count`, what the names begin with.")
    count: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = Field(
        default=None, description="So many variants alike, named `name-001`, `name-002` and so on."
    )
    stage: Name | Literal[""] = Field(description="The stage that it is in; empty: in none.")
    target: FreeForm = Field(default={}, description="The target's object, for propagateWhen.")
    labels: Labels = Field(default={}, description="Its labels, for `rollout.groups`.")
    priority: StrictInt = Field(default=0, description="Higher goes first.")
    suspended: StrictBool = Field(default=False, description="Its spec suspends it.")
    offline: StrictBool = Field(default=False, description="Its target says that it is offline.")
    released: InstantOrDistance = Field(default=None, description="When its draft was released.")
    drafted: StrictBool = Field(
        default=True, description="It has a draft when it is to have one; false: none was written."
    )
    draft: StatedDraft | None = Field(default=None, description="What is special about its draft.")
    earlier: tuple[StatedPublication, ...] = Field(
        default=(), description="What was in force in it before, oldest first."
    )
    depends_on: tuple[StatedDependency, ...] = Field(
        default=(), description="Variants that have to be ready first."
    )
    held: StatedHold | None = Field(
        default=None, description="Why it cannot be written or published."
    )
    broken: StatedHold | None = Field(default=None, description="Why it cannot be rendered.")
    taken_back: StrictBool = Field(
        default=False, description="Somebody took its publication off the branch."
    )
    removed: InstantOrDistance = Field(
        default=None, description="When a person last decided that it goes."
    )
    ready_after: Duration = Field(
        default=None,
        description="With `advance`: how long after publication its checks pass; absent: as"
        " `advance` says.",
    )
    fails: StrictBool = Field(
        default=False, description="With `advance`: its checks fail instead of passing."
    )


class _StatedRecord(ScenarioModel):
    """Fields that all records have."""

    at: InstantOrDistance = Field(default=None, description="When it was recorded; absent: `now`.")
    by: Text = Field(
        default="scenario@example.com", description="By whom: `Name <address>`, or the address."
    )
    name: RecordName = Field(
        default="", description="The record's name, for those that take it back."
    )
    variants: Distinct[Name] = Field(
        default=(), description="The variants; none: all of the stage."
    )


class StatedEvidence(_StatedRecord):
    """Recorded result of a `report` check."""

    stage: Name = Field(description="The stage that it is about.")
    check: Name = Field(description="The name of the check.")
    status: Verdict = Field(description="The answer.")
    revision: RevisionName | None = Field(
        default=None, description="The revision that it is about."
    )
    commit: CommitId | None = Field(default=None, description="The commit, instead.")


class StatedApproval(_StatedRecord):
    """Recorded approval of drafts by one person."""

    stage: Name = Field(description="The stage that it is about.")
    check: Name = Field(description="The name of the check under `requires`.")
    revision: RevisionName = Field(description="The revision of the drafts.")
    trees: Distinct[Text] | None = Field(
        default=None,
        description="The trees that were approved; absent: those of the drafts there were then.",
    )
    revokes: RecordName = Field(default="", description="The approval that is taken back.")


class StatedDecision(_StatedRecord):
    """Recorded decision of a person."""

    stage: Name | None = Field(
        default=None, description="The stage; absent: the variants, else all of the policy."
    )
    action: Action = Field(description="What is to happen.")
    revision: RevisionName | None = Field(default=None, description="The revision.")
    overrides: Distinct[OverridableGate] = Field(default=(), description="What a Publish lifts.")
    trees: Distinct[Text] | None = Field(
        default=None,
        description="The trees that a Publish is about; absent: those of the drafts there were"
        " then.",
    )
    accept_conflicts: StrictBool = Field(
        default=False,
        description="A Publish takes the drafts of the variants that it names as they stand, merge"
        " conflicts included.",
    )
    reason: str = Field(default="", description="Why.")
    expires: InstantOrDistance = Field(default=None, description="When it ends.")
    withdraws: RecordName = Field(default="", description="The decision that is taken back.")


StatedRecord = StatedEvidence | StatedApproval | StatedDecision


class StatedHistory(ScenarioModel):
    """Recorded history of a revision in a stage, beside the variants' publications."""

    stage: Name = Field(description="The stage.")
    revision: RevisionName = Field(description="The revision.")
    passed: InstantOrDistance = Field(default=None, description="Since when it has passed there.")
    left: InstantOrDistance = Field(default=None, description="When the stage moved on from it.")
    soaked: Duration = Field(
        default=None, description="For how long it was ready without a break, as of then."
    )


Count = Annotated[StrictInt, Field(ge=0)]


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
