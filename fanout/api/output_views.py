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

    revision: str = Field(description="Name of the revision.")
    newer: bool = Field(
        description="Whether the revision is queued behind the candidate; otherwise it was dropped."
    )
    holds: tuple[HoldView, ...] = Field(
        description="Reasons why the revision is not the candidate."
    )


_POLICY_DESCRIPTION = "Name of the UpstreamPolicy; empty for a manually written PackageVariant."
_HOLDS_DESCRIPTION = "Reasons why it is blocked; empty if it is not."


class StageViewSpec(Model):
    """The stage that a StageView shows."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    stage: str = Field(description="Name of the stage.")


class StageViewStatus(Model):
    """Observed state of a stage."""

    candidate: str = Field(
        description="Name of the revision that the stage is to take next, or has taken."
    )
    state: str = Field(
        default="",  # of a stage that an earlier version has written
        description="State of the stage; the first that applies of `Stopped` with the whole"
        " policy, `Halted` by too many failures, `Failed`, `Suspended`, `Passed` and `Pending`."
        " For a variant written by hand, its own state.",
    )
    verdict: VerdictLabel = Field(description="Verdict of this stage for its candidate.")
    gate: VerdictLabel = Field(
        description="Result of `after` for the candidate, soak time included."
    )
    verdicts: dict[str, VerdictLabel] = Field(
        default={}, description="Verdict of the stage for each revision, by name of the revision."
    )
    counts: dict[str, int] = Field(
        default={}, description="Number of variants in each state, by state."
    )
    published: dict[str, int] = Field(
        default={},
        description="Number of variants that have each revision published, by name of the"
        " revision.",
    )
    published_since: str | None = Field(
        default=None,
        description="Time since which a variant of the stage has the candidate published, the"
        " earliest on record, in RFC 3339; null if none has it.",
    )
    queued: tuple[str, ...] = Field(
        default=(), description="Names of newer revisions that are queued behind the candidate."
    )
    others: tuple[OtherRevisionView, ...] = Field(
        default=(),
        description="The newest queued revision and the last one that can no longer pass,"
        " with the reasons.",
    )
    conflicts: int = Field(
        default=0, description="Number of undecided merge conflicts in drafts of the stage."
    )
    in_flight: int = Field(
        default=0, description="Number of variants that are released and neither ready nor failed."
    )
    budget: int | None = Field(
        default=None, description="Maximum number of variants in flight; null if not limited."
    )
    halted: bool = Field(
        default=False,
        description="Whether the stage is halted because more variants failed than it tolerates.",
    )
    next: str | None = Field(
        default=None,
        description="Next time when the state can change without action, in RFC 3339; null"
        " if there is none.",
    )
    conditions: tuple[StatusCondition, ...] = Field(
        default=(),
        description="Conditions of the stage: `Passed`, the verdict of the candidate, and"
        " `MergeConflict` if it has undecided conflicts.",
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class StageView(View):
    """Current state of one stage of a policy."""

    kind: Literal["StageView"] = Field(
        default="StageView", description="Kind of the object; always `StageView`."
    )
    spec: StageViewSpec = Field(description="Policy and stage that the view describes.")
    status: StageViewStatus = Field(description="Observed state.")


class TargetViewSpec(Model):
    """The target that a TargetView shows, and the variant made for it."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    target: str = Field(description="Key of the target within the policy.")
    target_name: str = Field(
        description="Shortest name of the target that is unique in the policy; commands"
        " accept it in place of the variant's name."
    )
    variant: str = Field(
        default="", description="Name of the variant for the target; empty if there is none."
    )
    stage: str = Field(default="", description="Name of the stage that the variant is assigned to.")
    repository: str = Field(default="", description="Name of the downstream Repository object.")
    path: str = Field(
        default="", description="Path of the package, relative to the root of the repository."
    )


class TargetViewStatus(Model):
    """Observed state of a target."""

    state: str = Field(
        description="State of the variant: `Drafted`, `Released`, `Proposed`, `Verifying`,"
        " `Ready`, `Failed`, `Suspended`, `Held` or `Skipped`."
    )
    conditions: tuple[StatusCondition, ...] = Field(
        default=(), description="Conditions of the variant; the first one is `Ready`."
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class TargetView(View):
    """One target of a policy and its variant."""

    kind: Literal["TargetView"] = Field(
        default="TargetView", description="Kind of the object; always `TargetView`."
    )
    spec: TargetViewSpec = Field(
        description="Target that the view describes, and the location of its variant."
    )
    status: TargetViewStatus = Field(description="Observed state.")


class DraftViewSpec(Model):
    """The variant that a DraftView shows, and the branch of its draft."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    target: str = Field(description="Key of the target that the variant was created for.")
    target_name: str = Field(
        description="Shortest name of the target that is unique in the policy; commands"
        " accept it in place of the variant's name."
    )
    variant: str = Field(description="Name of the variant that the draft is for.")
    stage: str = Field(description="Name of the stage that the variant is assigned to.")
    repository: str = Field(description="Name of the downstream Repository object.")
    path: str = Field(description="Path of the package, relative to the root of the repository.")
    branch: str = Field(description="Branch of the draft.")


class DraftViewStatus(Model):
    """Observed state of an open draft."""

    commit: str = Field(description="Commit at the tip of the draft's branch.")
    tree: str = Field(description="Git tree of the package in the draft, which approvals refer to.")
    revision: str = Field(
        description="Name of the upstream revision that the draft was rendered for."
    )
    digest: str = Field(description="Digest of the inputs that the package was rendered from.")
    conflicts: int = Field(
        default=0, description="Number of undecided merge conflicts in the draft."
    )
    edited: bool = Field(description="Whether the branch has commits that fanout did not write.")
    current: bool = Field(
        description="Whether the draft was rendered from the current inputs of the candidate."
    )
    state: str = Field(
        description="State of the variant: `Drafted`, `Released`, `Proposed`, `Verifying`,"
        " `Ready`, `Failed`, `Suspended`, `Held` or `Skipped`."
    )
    conditions: tuple[StatusCondition, ...] = Field(
        default=(), description="Conditions of the variant; the first one is `Ready`."
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class DraftView(View):
    """One open draft."""

    kind: Literal["DraftView"] = Field(
        default="DraftView", description="Kind of the object; always `DraftView`."
    )
    metadata: DraftMeta = Field(
        description="Name, namespace, labels and creation time of the draft."
    )
    spec: DraftViewSpec = Field(description="Draft that the view describes.")
    status: DraftViewStatus = Field(description="Observed state.")


class ForecastViewSpec(Model):
    """The stage and revision that a ForecastView is about."""

    policy: str = Field(description=_POLICY_DESCRIPTION)
    stage: str = Field(description="Name of the stage.")
    revision: str = Field(description="Name of the upstream revision.")


class ForecastViewStatus(Model):
    """Earliest times of a revision in a stage."""

    begins: str | None = Field(
        default=None,
        description="Earliest time when the first variant can be published, in RFC 3339;"
        " null if that needs action.",
    )
    passes: str | None = Field(
        default=None,
        description="Earliest time when the stage can have passed the revision, in RFC"
        " 3339; null if that needs action.",
    )
    assumptions: tuple[str, ...] = Field(
        default=(),
        description="Assumptions of the forecast: actions taken to happen at once, and"
        " durations taken from the past.",
    )
    holds: tuple[HoldView, ...] = Field(default=(), description=_HOLDS_DESCRIPTION)


class ForecastView(View):
    """Earliest times of a revision in a stage, as `fanout forecast` prints them."""

    kind: Literal["ForecastView"] = Field(
        default="ForecastView", description="Kind of the object; always `ForecastView`."
    )
    spec: ForecastViewSpec = Field(description="Stage and revision that the forecast is about.")
    status: ForecastViewStatus = Field(
        description="Computed times, and the assumptions behind them."
    )


class InstantMeta(Model):
    """The name of a view of an instant."""

    name: str = Field(description="The instant, in RFC 3339.")


class InstantViewSpec(Model):
    """The time zone in which an instant is shown."""

    time_zone: str = Field(description="IANA name of the time zone.")


class InstantViewStatus(Model):
    """Local time of an instant."""

    local: str = Field(description="The instant in local time of the time zone, in RFC 3339.")
    weekday: str = Field(description="Day of the week in the time zone: `Mon` to `Sun`.")


class InstantView(Model):
    """Instant at which a schedule fires, as `fanout schedule next` prints it."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    kind: Literal["InstantView"] = Field(
        default="InstantView", description="Kind of the object; always `InstantView`."
    )
    metadata: InstantMeta = Field(description="Metadata; the name is the instant.")
    spec: InstantViewSpec = Field(description="Time zone in which the instant is shown.")
    status: InstantViewStatus = Field(description="Local time of the instant.")


class WindowViewStatus(InstantViewStatus):
    """State of the windows from an instant on."""

    open: bool = Field(description="Whether publication is allowed from the instant on.")
    until: str | None = Field(
        default=None,
        description="Time when `open` changes, in RFC 3339; null if not within five years.",
    )
    promotion_policy: str = Field(
        default="",
        description="Name of the PromotionPolicy whose window closes publication, now or at"
        " `until`.",
    )
    window: str = Field(
        default="", description="Window of the PromotionPolicy that closes publication."
    )
    message: str = Field(description="Summary of the status as one sentence.")


class WindowView(Model):
    """State of the windows from an instant on, as `fanout schedule windows` prints it."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    kind: Literal["WindowView"] = Field(
        default="WindowView", description="Kind of the object; always `WindowView`."
    )
    metadata: InstantMeta = Field(description="Metadata; the name is the instant.")
    spec: InstantViewSpec = Field(description="Time zone in which the instant is shown.")
    status: WindowViewStatus = Field(
        description="State of the publication windows from the instant on."
    )


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

    class_: ReasonClass = Field(description="Class of the reason.")
    reason: str = Field(
        description="Reason as one CamelCase word; the index of reasons lists all values."
    )
    message: str = Field(description="Explanation of the reason as one sentence.")
    who: str = Field(default="", description="Person or group that can resolve it.")
    since: str | None = Field(default=None, description="Time since which it applies, in RFC 3339.")
    until: str | None = Field(
        default=None,
        description="Time when it ends without action, in RFC 3339; null if it needs action.",
    )


class HeldView(Model):
    """Variant that is blocked."""

    variant: str = Field(description="Name of the blocked variant.")
    state: str = Field(
        description="State of the variant: `Drafted`, `Released`, `Proposed`, `Verifying`,"
        " `Ready`, `Failed`, `Suspended`, `Held` or `Skipped`."
    )
    reasons: tuple[ReasonView, ...] = Field(description="Reasons why the variant is blocked.")


class AggregatesView(Model):
    """Counts of a stage's variants, as `propagateWhen` sees them."""

    total: int = Field(description="Number of variants that count for the candidate.")
    updated: int = Field(
        description="Number of variants that are released for the candidate or published at it."
    )
    ready: int = Field(description="Number of variants that are ready at the candidate.")
    in_flight: int = Field(
        description="Number of variants that are released and neither ready nor failed."
    )
    failed: int = Field(description="Number of variants that have failed at the candidate.")


class OtherRevisionMoment(Model):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: str = Field(description="Name of the revision.")
    newer: bool = Field(
        description="Whether the revision is queued behind the candidate; otherwise it can"
        " no longer pass."
    )
    reasons: tuple[ReasonView, ...] = Field(
        description="Reasons why the stage does not take the revision."
    )


class StageMoment(Model):
    """State of one stage at a moment."""

    stage: str = Field(description="Name of the stage.")
    candidate: str = Field(
        description="Name of the revision that the stage is to take next, or has taken."
    )
    gate: VerdictLabel = Field(
        description="Result of `after` for the candidate, soak time included."
    )
    verdict: VerdictLabel = Field(description="Verdict of this stage for its candidate.")
    verdicts: dict[str, VerdictLabel] = Field(
        description="Verdict of the stage for each revision, by name of the revision."
    )
    halted: bool = Field(
        description="Whether the stage is halted because too many variants failed; nothing"
        " is released then."
    )
    budget: int | None = Field(
        description="Maximum number of variants in flight; null if not limited."
    )
    aggregates: AggregatesView = Field(description="Counts of the variants of the stage.")
    counts: dict[str, int] = Field(description="Number of variants in each state, by state.")
    released: tuple[str, ...] = Field(
        description="Names of the variants released in this pass, in order of release."
    )
    published: tuple[str, ...] = Field(
        description="Names of the variants that may be published in this pass."
    )
    held: tuple[HeldView, ...] = Field(
        description="Blocked variants of the stage, with the reasons."
    )
    holds: tuple[ReasonView, ...] = Field(
        description="Reasons why the stage as a whole is blocked."
    )
    queued: tuple[str, ...] = Field(
        description="Names of newer revisions that are queued behind the candidate."
    )
    others: tuple[OtherRevisionMoment, ...] = Field(
        default=(),
        description="Other revisions that the stage might be expected to take, with the"
        " reasons why it does not.",
    )
    next: str | None = Field(
        description="Next time when the stage can change without action, in RFC 3339; null if"
        " there is none."
    )


class MomentView(Model):
    """Result of one pass of the gates."""

    at: str = Field(description="Time of the pass, in RFC 3339.")
    carried_out: bool = Field(
        description="Whether the releases and publications of this pass were carried out."
    )
    stages: tuple[StageMoment, ...] = Field(description="Stages, in the order of the policy.")
    in_no_stage: tuple[HeldView, ...] = Field(
        description="Variants that are assigned to no stage, with the reasons why they are blocked."
    )
    holds: tuple[ReasonView, ...] = Field(
        description="Reasons why the policy as a whole is blocked."
    )
    next: str | None = Field(
        description="Next time when the state can change without action, in RFC 3339; null"
        " if there is none."
    )


class Simulation(Model):
    """Results of a simulated scenario at each of its moments."""

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    kind: Literal["Simulation"] = Field(
        default="Simulation", description="Kind of the object; always `Simulation`."
    )
    metadata: ViewMeta = Field(description="Name and namespace of the scenario.")
    policy: str = Field(
        description="Name of the policy; the name of the scenario if it has stages of its own."
    )
    moments: tuple[MomentView, ...] = Field(description="Results of the passes, in order of time.")


class DifferenceView(Model):
    """Difference between an expected value and the result."""

    at: str = Field(description="Time of the moment, in RFC 3339.")
    subject: str = Field(
        description="Subject of the expectation, like `stage prod`, `variant ams` or `policy`."
    )
    field: str = Field(
        description="Path of the expectation in the scenario, like"
        " `spec.expect[0].stages[1].candidate`."
    )
    expected: str = Field(description="Expected value, as text.")
    found: str = Field(description="Actual value, as text.")
    why: str = Field(
        default="", description="Explanation of the actual value, as `fanout explain` gives it."
    )
    file: str = Field(default="", description="Path of the file with the expectation.")
    line: int = Field(default=0, description="Line of the expectation in the file.")


class TestResult(Model):
    """Result of comparing a scenario with its expectations."""

    __test__ = False  # keeps pytest from collecting the class

    api_version: Literal["fanout.dev/v1alpha1"] = Field(
        default=API_VERSION, description="Version of the API; always `fanout.dev/v1alpha1`."
    )
    kind: Literal["TestResult"] = Field(
        default="TestResult", description="Kind of the object; always `TestResult`."
    )
    metadata: ViewMeta = Field(description="Name and namespace of the scenario.")
    policy: str = Field(description="Name of the policy that the scenario is about.")
    file: str = Field(description="Path of the scenario's file.")
    line: int = Field(description="Line of the scenario in the file.")
    result: Literal["Passed", "Failed", "Invalid", "Empty"] = Field(
        description="`Passed`: all values are as expected; `Failed`: at least one differs;"
        " `Invalid`: the scenario has errors; `Empty`: the scenario expects nothing."
    )
    expectations: int = Field(description="Number of compared values.")
    differences: tuple[DifferenceView, ...] = Field(
        default=(), description="Expected values that differ from the result."
    )


SCENARIO_RESULTS: tuple[type[Model], ...] = (Simulation, TestResult)
