"""Scenario: stated inputs of the gates, events, and expected results.

It needs no repository and no cluster: every input of the gates can be stated in it.

An instant may be written as one, or as a distance from the scenario's `now`, like `-30h`.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StrictBool, StrictInt, WithJsonSchema

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
from fanout.api.object_meta import KRMObject, Model, kind_field, listed, optional
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


class _CheckResult(Model):
    """Result of a check, from any source."""

    check: Name = Field(description="Name of the check.")
    status: Verdict = Field(description="Result of the check.")
    message: str = optional("Message of the check, for people.", default="")
    seen: Text | None = optional(
        "Revision or commit that the checked system reports; default: the one the check is about."
    )


class StatedCheckResult(_CheckResult):
    """Result of a check at an instant."""

    at: InstantOrDistance = optional("Time of the result; default: the time of the publication.")


class CheckResultEvent(_CheckResult):
    """Result of a check from the event on."""

    variants: NonEmptyDistinct[Name] = Field(
        description="Names of the variants that the result is for."
    )


class StatedPublication(Model):
    """Published revision of a variant, with the results of its checks."""

    revision: RevisionName | None = optional("Name of the published revision; default: none.")
    digest: Text | None = optional("Digest of its inputs; default: the name of the revision.")
    tree: Text | None = optional("Git tree of the package.")
    commits: Distinct[CommitId] = listed("Commits whose evidence counts for it.")
    reads: Mapping[Text, Text] = optional(
        "Versions of the cluster objects that the package uses, by object.", default={}
    )
    published: InstantOrDistance = optional(
        "Time of the publication; default: `ready` if set, otherwise `now`."
    )
    ready: InstantOrDistance = optional("Time when all checks of `verification` had passed.")
    failed: InstantOrDistance = optional("Time when all checks of `verification` failed.")
    withdrawn: InstantOrDistance = optional(
        "Time when the checks that had passed were reported as failed."
    )
    answers: tuple[StatedCheckResult, ...] = listed(
        "Results of single checks, of `verification` and `requires`."
    )


class StatedDraft(Model):
    """Open draft that differs from an up-to-date draft of the candidate."""

    revision: RevisionName | None = optional(
        "Name of the revision that the draft was rendered for; default: the candidate of the stage."
    )
    digest: Text | None = optional("Digest of its inputs; default: the name of the revision.")
    tree: Text | None = optional("Git tree of the draft, which approvals refer to.")
    current: StrictBool = optional(
        "Whether the draft was rendered from the current inputs; otherwise it"
        " waits to be rewritten.",
        default=True,
    )
    disputed: Annotated[StrictInt, Field(ge=0)] = optional(
        "Number of undecided merge conflicts.", default=0
    )
    adopts: StrictBool = optional(
        "Whether the draft adopts a package that fanout did not write.", default=False
    )
    moves: StrictBool = optional(
        "Whether the draft moves the package to another location.", default=False
    )
    reads: Mapping[Text, Text] = optional(
        "Versions of the cluster objects that the package uses, by object.", default={}
    )
    commits: Distinct[CommitId] = listed("Commits whose evidence counts for it.")
    authors: Distinct[Text] = listed(
        "Authors of the changes in the draft, as `Name <address>` or as the address."
    )


class StatedHold(Model):
    """Hold on a variant that is independent of the gates."""

    message: Text = Field(description="Explanation of the hold as one sentence.")
    reason: Text | None = optional("Reason as one CamelCase word, from the index of reasons.")
    who: str = optional("Person or group that can resolve it.", default="")


class StatedDependency(Model):
    """Variant elsewhere that has to be ready first."""

    name: Text = Field(description="Name of the dependency.")
    ready: StrictBool = optional("Whether the dependency is ready.", default=False)


class StatedVariant(StatedPublication):
    """State of one variant, or of several equal ones.

    A state without an instant has always held.
    """

    name: Name = Field(description="Name of the variant; with `count`, the prefix of the names.")
    count: Annotated[StrictInt, Field(ge=1, le=100_000)] | None = optional(
        "Number of identical variants, named `name-001`, `name-002` and so on;"
        " default: a single variant."
    )
    stage: Name | Literal[""] = Field(
        description="Name of the stage of the variant; empty for none."
    )
    target: FreeForm = optional("Object of the target, for `propagateWhen`.", default={})
    labels: Labels = optional("Labels of the variant, for `rollout.groups`.", default={})
    priority: StrictInt = optional(
        "Priority within the stage; higher values are released first.", default=0
    )
    suspended: StrictBool = optional("Whether the spec suspends the variant.", default=False)
    offline: StrictBool = optional("Whether the target is offline.", default=False)
    released: InstantOrDistance = optional("Time when the draft was released.")
    drafted: StrictBool = optional("Whether a draft exists where one is needed.", default=True)
    draft: StatedDraft | None = optional("Properties of the draft that differ from the defaults.")
    earlier: tuple[StatedPublication, ...] = listed(
        "Earlier publications of the variant, oldest first."
    )
    depends_on: tuple[StatedDependency, ...] = listed(
        "Variants that must be ready before this one is published."
    )
    held: StatedHold | None = optional("Hold that prevents writing or publishing the variant.")
    broken: StatedHold | None = optional("Error that prevents rendering the variant.")
    taken_back: StrictBool = optional(
        "Whether the publication was reverted on the branch.", default=False
    )
    removed: InstantOrDistance = optional("Time of the last decision to remove the variant.")
    ready_after: Duration = optional(
        "With `advance`: time from publication until the checks pass; default: that of `advance`."
    )
    fails: StrictBool = optional("With `advance`: whether the checks fail.", default=False)


class _StatedRecord(Model):
    """Fields that all records have."""

    at: InstantOrDistance = optional("Time of the record; default: `now`.")
    by: Text = optional(
        "Author of the record, as `Name <address>` or as the address.",
        default="scenario@example.com",
    )
    name: RecordName = optional(
        "Name of the record, which later records can revoke or withdraw.", default=""
    )
    variants: Distinct[Name] = listed("Names of the variants; default: all of the stage.")


class StatedEvidence(_StatedRecord):
    """Recorded result of a `report` check."""

    stage: Name = Field(description="Name of the stage that the record is about.")
    check: Name = Field(description="Name of the check.")
    status: Verdict = Field(description="Result of the check.")
    revision: RevisionName | None = optional(
        "Revision that the evidence is about; excludes `commit`."
    )
    commit: CommitId | None = optional("Commit that the evidence is about; excludes `revision`.")


class StatedApproval(_StatedRecord):
    """Recorded approval of drafts by one person."""

    stage: Name = Field(description="Name of the stage that the record is about.")
    check: Name = Field(description="Name of an approval check under `requires` of the stage.")
    revision: RevisionName = Field(description="Revision of the approved drafts.")
    trees: Distinct[Text] | None = optional(
        "Git trees of the approved drafts; default: those of the drafts at that time."
    )
    revokes: RecordName = optional("Name of the approval that is revoked.", default="")


class StatedDecision(_StatedRecord):
    """Recorded decision of a person."""

    stage: Name | None = optional(
        "Name of the stage; default: the listed variants, or the whole policy if none are listed."
    )
    action: Action = Field(description="Action to perform.")
    revision: RevisionName | None = optional("Revision that the decision is about.")
    overrides: Distinct[OverridableGate] = listed("Gates that a `Publish` overrides.")
    trees: Distinct[Text] | None = optional(
        "For `Publish`: Git trees of the drafts; default: those of the drafts at that time."
    )
    accept_conflicts: StrictBool = optional(
        "For `Publish`: whether the drafts of the named variants are published"
        " as they are, with undecided merge conflicts.",
        default=False,
    )
    reason: str = optional("Reason for the decision.", default="")
    expires: InstantOrDistance = optional("Time when the decision expires.")
    withdraws: RecordName = optional("Name of the decision that is withdrawn.", default="")


StatedRecord = StatedEvidence | StatedApproval | StatedDecision


class StatedHistory(Model):
    """Recorded history of a revision in a stage, beside the variants' publications."""

    stage: Name = Field(description="Name of the stage.")
    revision: RevisionName = Field(description="Name of the revision.")
    passed: InstantOrDistance = optional("Time since which the stage has passed the revision.")
    left: InstantOrDistance = optional("Time when the stage went on to another revision.")
    soaked: Duration = optional(
        "Time that the revision was ready without interruption, as of `left` or `now`."
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


class ScenarioEvent(Model):
    """Event at an instant; without any other field, time has passed."""

    at: InstantOrDistance = Field(description="Time of the event.")
    revision: RevisionName | None = optional("Name of a new revision, newer than all before.")
    evidence: StatedEvidence | None = optional("Evidence that is recorded.")
    approval: StatedApproval | None = optional("Approval that is recorded.")
    decision: StatedDecision | None = optional("Decision that is recorded.")
    answer: CheckResultEvent | None = optional("Result of a check, by any method.")
    publish: StrictBool = optional(
        "Whether everything that the gates allow is released and published.", default=False
    )
    comes: StatedVariant | None = optional("Variant that is added, or replaced if it exists.")
    goes: Distinct[Name] = listed("Names of variants that are removed.")
    offline: Distinct[Name] = listed("Names of variants whose targets go offline.")
    online: Distinct[Name] = listed("Names of variants whose targets come back online.")
    changed: Distinct[Name] = listed("Names of variants whose inputs change.")


class AdvanceSettings(Model):
    """Simulated progress: open gates are acted on at once, and checks pass after a time."""

    ready_after: Duration = optional("Time from publication until checks pass; default: 0.")
    until: InstantOrDistance = optional(
        "End of the simulation; default: when nothing more happens without"
        " action, at most 30 days after the last event or moment."
    )


class ExpectedRevision(Model):
    """Revision that a stage is expected not to take, and the reasons."""

    revision: RevisionName = Field(description="Name of the revision.")
    newer: StrictBool | None = optional(
        "Whether the revision is expected to be queued behind the candidate;"
        " otherwise it can no longer pass."
    )
    held: Distinct[ReasonClass] | None = optional("Expected classes of the reasons.")
    reasons: Distinct[Text] | None = optional(
        "Expected reasons, in CamelCase; not checked if absent."
    )


class ExpectedStage(Model):
    """Expected state of a stage; absent fields are not compared."""

    stage: Name = Field(description="Name of the stage.")
    candidate: RevisionName | Literal[""] | None = optional("Expected candidate; empty for none.")
    gate: Verdict | None = optional("Expected result of `after`.")
    verdict: Verdict | None = optional("Expected verdict of the candidate in the stage.")
    halted: StrictBool | None = optional("Whether the stage is expected to be halted by failures.")
    budget: Count | None = optional("Expected maximum number of variants in flight.")
    in_flight: Count | None = optional("Expected number of variants in flight.")
    ready: Count | None = optional("Expected number of ready variants.")
    failed: Count | None = optional("Expected number of failed variants.")
    total: Count | None = optional("Expected number of variants that count for the candidate.")
    released: tuple[Name, ...] | None = optional(
        "Expected variants that the pass releases, in order."
    )
    releases: Count | None = optional("Expected number of variants that the pass releases.")
    published: Distinct[Name] | None = optional("Expected variants that the pass publishes.")
    held: Distinct[ReasonClass] | None = optional(
        "Expected classes of all reasons by which the stage or a variant of it is held."
    )
    queued: tuple[RevisionName, ...] | None = optional(
        "Expected revisions queued behind the candidate."
    )
    others: tuple[ExpectedRevision, ...] | None = optional(
        "Expected other revisions that the stage does not take, with reasons;"
        " an empty list expects none."
    )
    next: InstantOrDistance = optional(
        "Expected next time when the stage can change without action."
    )


class ExpectedVariant(Model):
    """Expected state of a variant; absent fields are not compared."""

    variant: Name = Field(description="Name of the variant.")
    state: VariantStateName | None = optional("Expected state of the variant.")
    revision: RevisionName | Literal[""] | None = optional(
        "Expected published revision; empty for none."
    )
    released: StrictBool | None = optional("Whether the pass is expected to release the variant.")
    published: StrictBool | None = optional("Whether the pass is expected to publish the variant.")
    held: Distinct[ReasonClass] | None = optional(
        "Expected classes of the reasons by which the variant is held; an empty list expects none."
    )
    reasons: Distinct[Text] | None = optional(
        "Expected reasons, in CamelCase; not checked if absent."
    )


class Expectation(Model):
    """Expected results at a moment, of the first pass there."""

    at: InstantOrDistance = optional("Time of the moment; default: `now`.")
    stages: tuple[ExpectedStage, ...] = listed("Expectations about stages.")
    variants: tuple[ExpectedVariant, ...] = listed("Expectations about variants.")
    held: Distinct[ReasonClass] | None = optional(
        "Expected classes of the reasons by which the policy as a whole is held."
    )
    next: InstantOrDistance = optional(
        "Expected next time when the state can change without action."
    )


class ExpectedWaves(Model):
    """Expected numbers of released variants, pass by pass."""

    stage: Name = Field(description="Name of the stage.")
    waves: tuple[Count, ...] = Field(
        description="Expected number of variants that each pass releases; passes that"
        " release none are left out."
    )


class ScenarioSpec(Model):
    """Stated inputs, events, and expected results."""

    policy: Name | None = optional(
        "Name of an UpstreamPolicy in the same files; excludes `stages`."
    )
    stages: tuple[Stage, ...] = listed(
        "Stages, as in an UpstreamPolicy; excludes `policy`.", json_schema_extra=LIST_MAP_BY_NAME
    )
    promotion: PromotionPolicySpec | None = optional(
        "With `stages`: promotion settings, as in a PromotionPolicy; default:"
        " all stages are promoted automatically."
    )
    in_flight: InFlight | None = optional(
        "With `stages`: effect of a newer revision on one that is being rolled"
        " out; default: `Supersede`."
    )
    suspend: StrictBool = optional("Whether the spec suspends the policy.", default=False)
    unread: StrictBool = optional(
        "Whether a PromotionPolicy is unreadable: nothing is promoted"
        " automatically and no window is open.",
        default=False,
    )
    revisions: Distinct[RevisionName] = Field(
        description="Revisions that the policy selects, oldest first."
    )
    now: Instant = Field(description="Time of the initial state, in RFC 3339.")
    sweep: StrictBool = optional(
        "Whether the passes are sweeps. If not, and a PromotionPolicy has a schedule,"
        " nothing is published automatically.",
        default=True,
    )
    variants: tuple[StatedVariant, ...] = listed(
        "Variants and their initial state.", json_schema_extra=LIST_MAP_BY_NAME
    )
    history: tuple[StatedHistory, ...] = listed(
        "Recorded history of revisions in stages, besides that of the variants."
    )
    evidence: tuple[StatedEvidence, ...] = listed("Recorded evidence.")
    approvals: tuple[StatedApproval, ...] = listed("Recorded approvals.")
    decisions: tuple[StatedDecision, ...] = listed("Recorded decisions.")
    events: tuple[ScenarioEvent, ...] = listed("Events at `now` or later, in order of time.")
    moments: tuple[InstantOrDistance, ...] = listed(
        "Further times to evaluate; `now` and the times of all events are always evaluated."
    )
    advance: AdvanceSettings | None = optional(
        "Settings for carrying out what the gates allow; default: nothing is carried out."
    )
    expect: tuple[Expectation, ...] = listed(
        "Expected results by moment, checked by `fanout test`."
    )
    expect_waves: tuple[ExpectedWaves, ...] = listed("Expected waves of rollouts.")

    def resolve_instant(self, when: datetime | timedelta | None) -> datetime:
        """Return a moment as an instant; a distance counts from `now`, absent is `now`."""
        assert self.now is not None, "validation requires now"
        return when if isinstance(when, datetime) else self.now + (when or timedelta(0))


class Scenario(KRMObject):
    """Stated inputs of the gates, and the expected results."""

    PLURAL: ClassVar[str] = "scenarios"

    kind: Literal["Scenario"] = kind_field("Scenario")
    spec: ScenarioSpec = Field(description="Initial state, events and expected results.")


def expand_variant_names(variant: StatedVariant) -> Iterator[str]:
    """Yield the names of the variants of an entry: one, or as many as `count` says."""
    if variant.count is None:
        yield variant.name
        return
    width = max(3, len(str(variant.count)))
    yield from (f"{variant.name}-{number:0{width}}" for number in range(1, variant.count + 1))
