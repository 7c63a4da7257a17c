"""Views: objects that `fanout get`, `forecast` and `schedule` print.

Documented and stable. Each has `metadata`, `spec` (what it is) and `status` (what was observed).
"""

from typing import Annotated, Literal

from fanout.api.explanation_view import ExplanationView, FleetStatusView
from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import ReasonClass
from fanout.api.results import ForecastResult, Hold, StageAggregates, StageResult, VariantResult
from fanout.api.table_column import TableColumn
from fanout.api.view_base import (
    REQUEST_COLUMN,
    Candidate,
    DraftMeta,
    InputDigest,
    NextChange,
    PackagePath,
    PartMeta,
    PolicyName,
    RepositoryName,
    RevisionName,
    StageName,
    StateCounts,
    TargetReference,
    VariantReference,
    VariantStateName,
    VerdictsByRevision,
    View,
    ViewMeta,
    ViewModel,
)
from fanout.control_characters import escape_unprintable
from fanout.values import Instant, doc


class StageViewSpec(ViewModel):
    """The stage that a StageView shows."""

    policy: PolicyName
    stage: StageName


class StageView(View):
    """Current state of one stage of a policy."""

    metadata: PartMeta
    spec: Annotated[StageViewSpec, doc("Policy and stage that the view describes.")]
    status: Annotated[StageResult, doc("Observed state.")]


class TargetViewSpec(TargetReference):
    """The target that a TargetView shows, and the variant made for it."""

    variant: Annotated[str, doc("Name of the variant for the target; empty if there is none.")] = ""
    stage: Annotated[str, doc("Name of the stage that the variant is assigned to.")] = ""
    repository: RepositoryName = ""
    path: PackagePath = ""


class TargetView(View):
    """One target of a policy and its variant."""

    metadata: PartMeta
    spec: Annotated[
        TargetViewSpec, doc("Target that the view describes, and the location of its variant.")
    ]
    status: Annotated[VariantResult, doc("Observed state.")]


class DraftViewSpec(VariantReference, kw_only=True):
    """The variant that a DraftView shows, and the branch of its draft."""

    repository: RepositoryName
    path: PackagePath
    branch: Annotated[str, doc("Branch of the draft.")]


class DraftViewStatus(VariantResult, kw_only=True):
    """Observed state of an open draft."""

    commit: Annotated[str, doc("Commit at the tip of the draft's branch.")]
    tree: Annotated[str, doc("Git tree of the package in the draft, which approvals refer to.")]
    revision: Annotated[str, doc("Name of the upstream revision that the draft was rendered for.")]
    digest: InputDigest
    conflicts: Annotated[int, doc("Number of undecided merge conflicts in the draft.")] = 0
    edited: Annotated[bool, doc("Whether the branch has commits that fanout did not write.")]
    current: Annotated[
        bool, doc("Whether the draft was rendered from the current inputs of the candidate.")
    ]


class DraftView(View):
    """One open draft."""

    metadata: Annotated[DraftMeta, doc("Name, namespace, labels and creation time of the draft.")]
    spec: Annotated[DraftViewSpec, doc("Draft that the view describes.")]
    status: Annotated[DraftViewStatus, doc("Observed state.")]


DRAFT_COLUMNS = (
    TableColumn("TARGET", "spec.targetName", priority=0),
    TableColumn("POLICY", "spec.policy", priority=2),
    TableColumn("STAGE", "spec.stage"),
    TableColumn("REVISION", "status.revision"),
    TableColumn("STATE", "status.state", priority=0),
    TableColumn("CURRENT", "status.current"),
    TableColumn("CONFLICTS", "status.conflicts", priority=3),
    TableColumn("EDITED", "status.edited", priority=3),
    TableColumn("AGE", "metadata.creationTimestamp", priority=2),
    TableColumn("REPOSITORY", "spec.repository", priority=4),
    TableColumn("NAME", "metadata.name", priority=5),
    TableColumn("BRANCH", "spec.branch", priority=5),
    TableColumn("TREE", "status.tree", wide=True),
    REQUEST_COLUMN,
)


class ConflictViewSpec(VariantReference, kw_only=True):
    """The value that a ConflictView is about."""

    repository: RepositoryName
    path: PackagePath
    key: Annotated[
        str,
        doc(
            "Key of the conflict, as `fanout resolve --take KEY=SIDE` takes it. The"
            " same field with the same three values has the same key in every revision."
        ),
    ]
    file: Annotated[str, doc("Path of the file, relative to the package.")] = ""
    object: Annotated[
        str,
        doc(
            "Kind and name of the object in the file; empty if the conflict is"
            " about the whole file."
        ),
    ] = ""
    field: Annotated[
        str,
        doc(
            "Path of the field in the object; empty if the conflict is about the"
            " whole object or file."
        ),
    ] = ""


class ConflictViewStatus(ViewModel, kw_only=True):
    """Observed state of a merge conflict. Values of a Secret are not shown."""

    place: Annotated[
        Literal["Draft", "Published"],
        doc(
            "Where the conflict is: `Draft` in an open draft, `Published` in the published package."
        ),
    ]
    revision: Annotated[str, doc("Name of the upstream revision that was merged.")]
    in_force: Annotated[
        Literal["Upstream", "Local", "Edited"],
        doc(
            "Side whose value the package has: `Upstream`, `Local`, or `Edited` for"
            " the value of a commit on the draft."
        ),
    ]
    decided: Annotated[
        bool,
        doc(
            "Whether the conflict is decided, by a person, by a commit on the draft"
            " or by `onConflict`."
        ),
    ]
    base: Annotated[
        str | None, doc("Value before either side changed it; null if not on record.")
    ] = None
    upstream: Annotated[
        str | None, doc("Value that upstream changed it to; null if not on record.")
    ] = None
    local: Annotated[str | None, doc("Value that it has downstream; null if not on record.")] = None
    since: Annotated[
        Instant | None, doc("Time of the draft's commit, or of the publication, in RFC 3339.")
    ] = None
    message: Annotated[str, doc("Summary of the conflict as one sentence.")]


class ConflictView(View):
    """One merge conflict of a draft, or of what is published."""

    metadata: PartMeta
    spec: Annotated[
        ConflictViewSpec, doc("Place of the conflict: policy, variant, package, file and field.")
    ]
    status: Annotated[ConflictViewStatus, doc("Observed state of the conflict, with its values.")]


CONFLICT_COLUMNS = (
    TableColumn("KEY", "spec.key", priority=0),
    TableColumn("TARGET", "spec.targetName", priority=0),
    TableColumn("POLICY", "spec.policy", priority=4),
    TableColumn("STAGE", "spec.stage", priority=4),
    TableColumn("FILE", lambda item: escape_unprintable(item["spec"]["file"]), priority=2),
    TableColumn(
        "FIELD",  # with its object; a plain file has neither
        lambda item: " ".join(filter(None, (item["spec"]["object"], item["spec"]["field"]))),
        cut_width=12,
    ),
    TableColumn("BASE", "status.base", priority=3, cut_width=12),
    TableColumn("UPSTREAM", "status.upstream", priority=2, cut_width=12),
    TableColumn("LOCAL", "status.local", priority=2, cut_width=12),
    TableColumn("IN FORCE", "status.inForce", priority=2),
    TableColumn("DECIDED", "status.decided"),
    TableColumn("PLACE", "status.place", priority=3),
    TableColumn("REVISION", "status.revision", priority=3),
    TableColumn("AGE", "status.since", priority=2),
    TableColumn("VARIANT", "spec.variant", wide=True),
)


class ForecastViewSpec(ViewModel):
    """The stage and revision that a ForecastView is about."""

    policy: PolicyName
    stage: StageName
    revision: RevisionName


class ForecastView(View):
    """Earliest times of a revision in a stage, as `fanout forecast` prints them."""

    metadata: PartMeta
    spec: Annotated[ForecastViewSpec, doc("Stage and revision that the forecast is about.")]
    status: Annotated[ForecastResult, doc("Computed times, and the assumptions behind them.")]


class InstantMeta(ViewModel):
    """The name of a view of an instant."""

    name: Annotated[str, doc("The instant, in RFC 3339.")]


class InstantViewSpec(ViewModel):
    """The time zone in which an instant is shown."""

    time_zone: Annotated[str, doc("IANA name of the time zone.")]


class InstantViewStatus(ViewModel):
    """Local time of an instant."""

    local: Annotated[str, doc("The instant in local time of the time zone, in RFC 3339.")]
    weekday: Annotated[str, doc("Day of the week in the time zone: `Mon` to `Sun`.")]


class InstantView(View):
    """Instant at which a schedule fires, as `fanout schedule next` prints it."""

    metadata: Annotated[InstantMeta, doc("Metadata; the name is the instant.")]
    spec: Annotated[InstantViewSpec, doc("Time zone in which the instant is shown.")]
    status: Annotated[InstantViewStatus, doc("Local time of the instant.")]


class WindowViewStatus(InstantViewStatus, kw_only=True):
    """State of the windows from an instant on."""

    open: Annotated[bool, doc("Whether publication is allowed from the instant on.")]
    until: Annotated[
        Instant | None, doc("Time when `open` changes, in RFC 3339; null if not within five years.")
    ] = None
    promotion_policy: Annotated[
        str, doc("Name of the PromotionPolicy whose window closes publication, now or at `until`.")
    ] = ""
    window: Annotated[str, doc("Window of the PromotionPolicy that closes publication.")] = ""
    message: Annotated[str, doc("Summary of the status as one sentence.")]


class WindowView(View):
    """State of the windows from an instant on, as `fanout schedule windows` prints it."""

    metadata: Annotated[InstantMeta, doc("Metadata; the name is the instant.")]
    spec: Annotated[InstantViewSpec, doc("Time zone in which the instant is shown.")]
    status: Annotated[
        WindowViewStatus, doc("State of the publication windows from the instant on.")
    ]


VIEWS: tuple[type[ViewModel], ...] = (
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


class ReasonView(Hold, kw_only=True):
    """Reason why a variant, stage or policy is blocked, with its class."""

    class_: Annotated[ReasonClass, doc("Class of the reason.")]


class HeldView(ViewModel):
    """Variant that is blocked."""

    variant: Annotated[str, doc("Name of the blocked variant.")]
    state: VariantStateName
    reasons: Annotated[tuple[ReasonView, ...], doc("Reasons why the variant is blocked.")]


class OtherRevisionMoment(ViewModel):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: Annotated[str, doc("Name of the revision.")]
    newer: Annotated[
        bool,
        doc(
            "Whether the revision is queued behind the candidate; otherwise it can no longer pass."
        ),
    ]
    reasons: Annotated[
        tuple[ReasonView, ...], doc("Reasons why the stage does not take the revision.")
    ]


class StageMoment(ViewModel, kw_only=True):
    """State of one stage at a moment."""

    stage: StageName
    candidate: Candidate
    gate: Annotated[Verdict, doc("Result of `after` for the candidate, soak time included.")]
    verdict: Annotated[Verdict, doc("Verdict of this stage for its candidate.")]
    verdicts: VerdictsByRevision
    halted: Annotated[
        bool,
        doc(
            "Whether the stage is halted because too many variants failed; nothing"
            " is released then."
        ),
    ]
    budget: Annotated[int | None, doc("Maximum number of variants in flight; null if not limited.")]
    aggregates: Annotated[StageAggregates, doc("Counts of the variants of the stage.")]
    counts: StateCounts
    released: Annotated[
        tuple[str, ...], doc("Names of the variants released in this pass, in order of release.")
    ]
    published: Annotated[
        tuple[str, ...], doc("Names of the variants that may be published in this pass.")
    ]
    held: Annotated[tuple[HeldView, ...], doc("Blocked variants of the stage, with the reasons.")]
    holds: Annotated[tuple[ReasonView, ...], doc("Reasons why the stage as a whole is blocked.")]
    queued: Annotated[
        tuple[str, ...], doc("Names of newer revisions that are queued behind the candidate.")
    ]
    others: Annotated[
        tuple[OtherRevisionMoment, ...],
        doc(
            "Other revisions that the stage might be expected to take, with the"
            " reasons why it does not."
        ),
    ] = ()
    next: Annotated[
        Instant | None,
        doc(
            "Next time when the stage can change without action, in RFC 3339; null if"
            " there is none."
        ),
    ]


class MomentView(ViewModel):
    """Result of one pass of the gates."""

    at: Annotated[Instant, doc("Time of the pass, in RFC 3339.")]
    carried_out: Annotated[
        bool, doc("Whether the releases and publications of this pass were carried out.")
    ]
    stages: Annotated[tuple[StageMoment, ...], doc("Stages, in the order of the policy.")]
    in_no_stage: Annotated[
        tuple[HeldView, ...],
        doc("Variants that are assigned to no stage, with the reasons why they are blocked."),
    ]
    holds: Annotated[tuple[ReasonView, ...], doc("Reasons why the policy as a whole is blocked.")]
    next: NextChange


class Simulation(View):
    """Results of a simulated scenario at each of its moments."""

    metadata: Annotated[ViewMeta, doc("Name and namespace of the scenario.")]
    policy: Annotated[
        str, doc("Name of the policy; the name of the scenario if it has stages of its own.")
    ]
    moments: Annotated[tuple[MomentView, ...], doc("Results of the passes, in order of time.")]


class DifferenceView(ViewModel):
    """Difference between an expected value and the result."""

    at: Annotated[str, doc("Time of the moment, in RFC 3339.")]
    subject: Annotated[
        str, doc("Subject of the expectation, like `stage prod`, `variant ams` or `policy`.")
    ]
    field: Annotated[
        str,
        doc("Path of the expectation in the scenario, like `spec.expect[0].stages[1].candidate`."),
    ]
    expected: Annotated[str, doc("Expected value, as text.")]
    found: Annotated[str, doc("Actual value, as text.")]
    why: Annotated[str, doc("Explanation of the actual value, as `fanout explain` gives it.")] = ""
    file: Annotated[str, doc("Path of the file with the expectation.")] = ""
    line: Annotated[int, doc("Line of the expectation in the file.")] = 0


class TestResult(View):
    """Result of comparing a scenario with its expectations."""

    __test__ = False  # keeps pytest from collecting the class

    metadata: Annotated[ViewMeta, doc("Name and namespace of the scenario.")]
    policy: Annotated[str, doc("Name of the policy that the scenario is about.")]
    file: Annotated[str, doc("Path of the scenario's file.")]
    line: Annotated[int, doc("Line of the scenario in the file.")]
    result: Annotated[
        Literal["Passed", "Failed", "Invalid", "Empty"],
        doc(
            "`Passed`: all values are as expected; `Failed`: at least one differs;"
            " `Invalid`: the scenario has errors; `Empty`: the scenario expects nothing."
        ),
    ]
    expectations: Annotated[int, doc("Number of compared values.")]
    differences: Annotated[
        tuple[DifferenceView, ...], doc("Expected values that differ from the result.")
    ] = ()


SCENARIO_RESULTS: tuple[type[ViewModel], ...] = (Simulation, TestResult)
