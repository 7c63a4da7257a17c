"""Views: objects that `fanout get`, `forecast` and `schedule` print.

Documented and stable. Each has `metadata`, `spec` (what it is) and `status` (what was observed).
"""

from typing import Literal

from pydantic import Field

from fanout.api.conflict_view import ConflictView
from fanout.api.explanation_view import ExplanationView
from fanout.api.fleet_status_view import FleetStatusView
from fanout.api.object_meta import API_VERSION, Model, StatusCondition
from fanout.api.reasons import ReasonClass
from fanout.api.view_base import DraftMeta, HoldView, VerdictLabel, View, ViewMeta


class OtherRevisionView(Model):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: str = Field(description="The revision's name.")
    newer: bool = Field(description="Whether it waits behind the candidate; else it was dropped.")
    holds: tuple[HoldView, ...] = Field(description="Why it is not the candidate.")


_POLICY_DESCRIPTION = "The UpstreamPolicy; empty for a variant written by hand."
_HOLDS_DESCRIPTION = "What it waits for."


class StageViewSpec(Model):
    """The stage that a StageView shows."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    stage: str = Field(description="The stage's name.")


class StageViewStatus(Model):
    """Observed state of a stage."""

    candidate: str = Field(description="The revision that the stage is to take next, or has.")
    verdict: VerdictLabel = Field(description="Of the candidate in this stage.")
    gate: VerdictLabel = Field(
        description="Whether the stages before let the candidate through, soak included."
    )
    verdicts: dict[str, VerdictLabel] = Field(
        default={}, description="The verdict of each revision."
    )
    counts: dict[str, int] = Field(default={}, description="How many variants are in each state.")
    published: dict[str, int] = Field(
        default={}, description="How many variants have each revision published."
    )
    queued: tuple[str, ...] = Field(
        default=(), description="Newer revisions that wait behind the candidate."
    )
    others: tuple[OtherRevisionView, ...] = Field(
        default=(),
        description="Why the newest of those waits, and the last that can pass no more.",
    )
    conflicts: int = Field(
        default=0, description="How many merge conflicts of its drafts nobody has decided."
    )
    in_flight: int = Field(
        default=0, description="How many variants are released and neither ready nor failed."
    )
    budget: int | None = Field(
        default=None, description="How many may be in flight; empty: as many as there are."
    )
    halted: bool = Field(default=False, description="Whether more have failed than it bears.")
    next: str | None = Field(
        default=None, description="The next instant at which something can change; RFC 3339."
    )
    conditions: tuple[StatusCondition, ...] = Field(
        default=(), description="Passed: the verdict of the candidate; MergeConflict if it has any."
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class StageView(View):
    """Current state of one stage of a policy."""

    kind: Literal["StageView"] = Field(default="StageView", description="StageView.")
    spec: StageViewSpec = Field(description="Which stage it is.")
    status: StageViewStatus = Field(description="What was observed.")


class TargetViewSpec(Model):
    """The target that a TargetView shows, and the variant made for it."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    target: str = Field(description="The target's key.")
    target_name: str = Field(
        description="The target's name, as short as is unique in the policy; accepted wherever a"
        " variant is named."
    )
    variant: str = Field(default="", description="The variant made for it; empty: none.")
    stage: str = Field(default="", description="The stage the variant is in.")
    repository: str = Field(default="", description="The name of the downstream Repository.")
    path: str = Field(default="", description="The package's path from the repository's root.")


class TargetViewStatus(Model):
    """Observed state of a target."""

    state: str = Field(description="Where the variant is on its way, or Failed.")
    conditions: tuple[StatusCondition, ...] = Field(
        default=(), description="Those of the variant; Ready is the first."
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class TargetView(View):
    """One target of a policy and its variant."""

    kind: Literal["TargetView"] = Field(default="TargetView", description="TargetView.")
    spec: TargetViewSpec = Field(description="Which target it is, and where its variant is.")
    status: TargetViewStatus = Field(description="What was observed.")


class DraftViewSpec(Model):
    """The variant that a DraftView shows, and the branch of its draft."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    target: str = Field(description="The key of the variant's target.")
    target_name: str = Field(
        description="The target's name, as short as is unique in the policy; accepted wherever a"
        " variant is named."
    )
    variant: str = Field(description="The variant that is drafted.")
    stage: str = Field(description="The stage the variant is in.")
    repository: str = Field(description="The name of the downstream Repository.")
    path: str = Field(description="The package's path from the repository's root.")
    branch: str = Field(description="The draft's branch.")


class DraftViewStatus(Model):
    """Observed state of an open draft."""

    commit: str = Field(description="The tip of the branch.")
    tree: str = Field(description="The package's tree in the draft: what an approval is about.")
    revision: str = Field(description="The upstream revision that it was rendered for.")
    digest: str = Field(description="The digest of what it was rendered from.")
    conflicts: int = Field(
        default=0, description="How many values both sides changed and nobody has decided."
    )
    edited: bool = Field(description="Whether a person's commits are on it.")
    current: bool = Field(description="Whether it is what the candidate asks for.")
    state: str = Field(description="Where the variant is on its way.")
    conditions: tuple[StatusCondition, ...] = Field(
        default=(), description="Those of the variant; Ready is the first."
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class DraftView(View):
    """One open draft."""

    kind: Literal["DraftView"] = Field(default="DraftView", description="DraftView.")
    metadata: DraftMeta = Field(description="Name, namespace, labels and time of creation.")
    spec: DraftViewSpec = Field(description="Which draft it is.")
    status: DraftViewStatus = Field(description="What was observed.")


class ForecastViewSpec(Model):
    """The stage and revision that a ForecastView is about."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    stage: str = Field(description="The stage's name.")
    revision: str = Field(description="The upstream revision.")


class ForecastViewStatus(Model):
    """Earliest times of a revision in a stage."""

    begins: str | None = Field(
        default=None,
        description="When its first variant can be published; RFC 3339. Empty: never by itself.",
    )
    passes: str | None = Field(
        default=None, description="When it can have passed; RFC 3339. Empty: never by itself."
    )
    assumptions: tuple[str, ...] = Field(
        default=(), description="What is taken to be done at once, and how long things take."
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class ForecastView(View):
    """Earliest times of a revision in a stage, as `fanout forecast` prints them."""

    kind: Literal["ForecastView"] = Field(default="ForecastView", description="ForecastView.")
    spec: ForecastViewSpec = Field(description="Which stage and revision it is about.")
    status: ForecastViewStatus = Field(description="What was computed.")


class InstantMeta(Model):
    """The name of a view of an instant."""

    name: str = Field(description="The instant; RFC 3339.")


class InstantViewSpec(Model):
    """The time zone in which an instant is shown."""

    time_zone: str = Field(description="The time zone's IANA name.")


class InstantViewStatus(Model):
    """Local time of an instant."""

    local: str = Field(description="The instant as clocks of the time zone show it; RFC 3339.")
    weekday: str = Field(description="The day of the week there: Mon to Sun.")


class InstantView(Model):
    """Instant at which a schedule fires, as `fanout schedule next` prints it."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["InstantView"] = Field(default="InstantView", description="InstantView.")
    metadata: InstantMeta = Field(description="The instant is its name.")
    spec: InstantViewSpec = Field(description="How it is shown.")
    status: InstantViewStatus = Field(description="Its local time.")


class WindowViewStatus(InstantViewStatus):
    """State of the windows from an instant on."""

    open: bool = Field(description="Whether publication is open from the instant on.")
    until: str | None = Field(
        default=None, description="When that changes; RFC 3339. Empty: not within five years."
    )
    promotion_policy: str = Field(
        default="", description="The PromotionPolicy that closes it, now or then."
    )
    window: str = Field(default="", description="The window of it that does so.")
    message: str = Field(description="The same in a sentence.")


class WindowView(Model):
    """State of the windows from an instant on, as `fanout schedule windows` prints it."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["WindowView"] = Field(default="WindowView", description="WindowView.")
    metadata: InstantMeta = Field(description="The instant is its name.")
    spec: InstantViewSpec = Field(description="How it is shown.")
    status: WindowViewStatus = Field(description="What the windows say from then on.")


VIEWS: tuple[type[Model], ...] = (
    StageView,
    TargetView,
    DraftView,
    ConflictView,
    ForecastView,
    InstantView,
    WindowView,
    ExplanationView,
    FleetStatusView,
)


class ReasonView(Model):
    """Reason why a variant, stage or policy is blocked."""

    class_: ReasonClass = Field(description="What kind of reason it is.")
    reason: str = Field(description="Why, in one CamelCase word of a closed list.")
    message: str = Field(description="Why, in a sentence.")
    who: str = Field(default="", description="Who can do something about it.")
    since: str | None = Field(default=None, description="Since when; RFC 3339.")
    until: str | None = Field(default=None, description="When it ends by itself; RFC 3339.")


class HeldView(Model):
    """Variant that is blocked."""

    variant: str = Field(description="The variant.")
    state: str = Field(description="Where it is on its way.")
    reasons: tuple[ReasonView, ...] = Field(description="All that is in its way.")


class AggregatesView(Model):
    """Counts of a stage's variants, as `propagateWhen` sees them."""

    total: int = Field(description="That count for the candidate.")
    updated: int = Field(description="Released for the candidate, or published at it.")
    ready: int = Field(description="Ready at the candidate.")
    in_flight: int = Field(description="Released and neither ready nor failed.")
    failed: int = Field(description="Failed at the candidate.")


class OtherRevisionMoment(Model):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: str = Field(description="The revision.")
    newer: bool = Field(description="It waits behind the candidate; else it can pass no more.")
    reasons: tuple[ReasonView, ...] = Field(description="Why the stage does not take it.")


class StageMoment(Model):
    """State of one stage at a moment."""

    stage: str = Field(description="The stage's name.")
    candidate: str = Field(description="The revision that it is to take next, or has.")
    gate: VerdictLabel = Field(
        description="Whether the stages before let the candidate through, soak included."
    )
    verdict: VerdictLabel = Field(description="Of the candidate in this stage.")
    verdicts: dict[str, VerdictLabel] = Field(description="The verdict of each revision.")
    halted: bool = Field(description="Too many variants have failed: nothing is released.")
    budget: int | None = Field(description="How many may be in flight; null: all.")
    aggregates: AggregatesView = Field(description="Its variants in numbers.")
    counts: dict[str, int] = Field(description="How many variants are in each state.")
    released: tuple[str, ...] = Field(
        description="The variants that are released now, in their order."
    )
    published: tuple[str, ...] = Field(description="The variants that may be published now.")
    held: tuple[HeldView, ...] = Field(description="The variants that do not go on, and why.")
    holds: tuple[ReasonView, ...] = Field(description="What the stage as a whole waits for.")
    queued: tuple[str, ...] = Field(description="Newer revisions that wait.")
    others: tuple[OtherRevisionMoment, ...] = Field(
        default=(), description="Other revisions that it might take, and why not."
    )
    next: str | None = Field(description="The next instant at which it can change; RFC 3339.")


class MomentView(Model):
    """Result of one pass of the gates."""

    at: str = Field(description="When; RFC 3339.")
    carried_out: bool = Field(description="What is released and published here was carried out.")
    stages: tuple[StageMoment, ...] = Field(description="Each stage, in the order written.")
    in_no_stage: tuple[HeldView, ...] = Field(description="Variants that no stage has.")
    holds: tuple[ReasonView, ...] = Field(description="What the policy as a whole waits for.")
    next: str | None = Field(description="The next instant at which anything can change.")


class Simulation(Model):
    """Results of a simulated scenario at each of its moments."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["Simulation"] = Field(default="Simulation", description="Simulation.")
    metadata: ViewMeta = Field(description="Name and namespace of the scenario.")
    policy: str = Field(description="The policy; of a scenario with own stages its own name.")
    moments: tuple[MomentView, ...] = Field(description="The passes, in order.")


class DifferenceView(Model):
    """Difference between an expected value and the result."""

    at: str = Field(description="At which moment; RFC 3339.")
    subject: str = Field(description="Of what: `stage prod`, `variant ams`, `policy`.")
    field: str = Field(description="Which expectation: `spec.expect[0].stages[1].candidate`.")
    expected: str = Field(description="What was expected, as text.")
    found: str = Field(description="What came out, as text.")
    why: str = Field(default="", description="What the engine says about the subject.")
    file: str = Field(default="", description="The file with the expectation.")
    line: int = Field(default=0, description="Its line.")


class TestResult(Model):
    """Result of comparing a scenario with its expectations."""

    __test__ = False  # keeps pytest from collecting the class

    api_version: Literal["fanout.dev/v1alpha1"] = Field(default=API_VERSION, description="Ours.")
    kind: Literal["TestResult"] = Field(default="TestResult", description="TestResult.")
    metadata: ViewMeta = Field(description="Name and namespace of the scenario.")
    policy: str = Field(description="The policy that the scenario is about.")
    file: str = Field(description="The scenario's file.")
    line: int = Field(description="Its line in the file.")
    result: Literal["Passed", "Failed", "Invalid", "Empty"] = Field(
        description="Empty: nothing is expected; Invalid: the scenario has faults."
    )
    expectations: int = Field(description="How many values were compared.")
    differences: tuple[DifferenceView, ...] = Field(default=(), description="What differs.")


SCENARIO_RESULTS: tuple[type[Model], ...] = (Simulation, TestResult)
