"""Results of the gates that output shows as they are, with their columns in tables."""

from collections.abc import Mapping
from typing import Annotated

from fanout.api.gate_vocabulary import Verdict
from fanout.api.table_column import TableColumn
from fanout.api.text_fields import LABEL_VALUE
from fanout.api.view_base import (
    INTERNAL,
    REQUEST_COLUMN,
    Candidate,
    ConditionStatus,
    ConditionStatuses,
    NextChange,
    RequestView,
    StateCounts,
    VariantStateName,
    VerdictsByRevision,
    ViewModel,
    status_of,
)
from fanout.values import Instant, Value, doc, field


class Hold(ViewModel):
    """Reason why a stage, target or draft is blocked."""

    reason: Annotated[
        str, doc("Reason as one CamelCase word; the index of reasons lists all values.")
    ]
    message: Annotated[str, doc("Explanation of the reason as one sentence.")]
    who: Annotated[str, doc("Person or group that can resolve it.")] = ""
    since: Annotated[Instant | None, doc("Time since which it applies, in RFC 3339.")] = None
    until: Annotated[
        Instant | None,
        doc("Time when it ends without action, in RFC 3339; null if it needs action."),
    ] = None


Holds = Annotated[tuple[Hold, ...], doc("Reasons why it is blocked; empty if it is not.")]


class Condition(ViewModel):
    """One condition, in the form of Kubernetes."""

    type: Annotated[
        str,
        doc(
            "Type of the condition: `Ready`, `Reconciling`, `Stalled` or another one of fanout.",
            pattern=LABEL_VALUE,
            max_length=63,
        ),
    ]
    status: Annotated[
        ConditionStatuses, doc("Whether the condition holds: `True`, `False` or `Unknown`.")
    ]
    reason: Annotated[
        str, doc("Reason as one CamelCase word; the index of reasons lists all values.")
    ]
    message: Annotated[str, doc("Explanation of the reason as one sentence.")] = ""
    last_transition_time: Annotated[
        Instant | None,
        doc(
            "Time since which the reason is on record, in RFC 3339; null if no record or commit"
            " has it."
        ),
    ] = None
    observed_generation: Annotated[
        int | None,
        doc(
            "Generation of the object that the condition is about; absent for objects that no"
            " API server stored."
        ),
    ] = None


def build_ready(reason: str, message: str, *, is_ready: bool = False) -> Condition:
    """Return the condition Ready."""
    return Condition("Ready", status_of(is_true=is_ready), reason, message)


def build_true(reason: str, message: str) -> Condition:
    """Return a condition that holds for the reason that it is named after."""
    return Condition(reason, ConditionStatus.TRUE, reason, message)


class OtherRevision(ViewModel):
    """Revision that a stage might be expected to take instead of its candidate."""

    revision: Annotated[str, doc("Name of the revision.")]
    newer: Annotated[
        bool, doc("Whether the revision is queued behind the candidate; otherwise it was dropped.")
    ]
    holds: Annotated[tuple[Hold, ...], doc("Reasons why the revision is not the candidate.")]


class StageAggregates(ViewModel):
    """Counts of a stage's variants, as `propagateWhen` sees them."""

    total: Annotated[int, doc("Number of variants that count for the candidate.")]
    updated: Annotated[
        int, doc("Number of variants that are released for the candidate or published at it.")
    ]
    ready: Annotated[int, doc("Number of variants that are ready at the candidate.")]
    in_flight: Annotated[
        int, doc("Number of variants that are released and neither ready nor failed.")
    ]
    failed: Annotated[int, doc("Number of variants that have failed at the candidate.")]


NO_AGGREGATES = StageAggregates(0, 0, 0, 0, 0)


class StageResult(ViewModel, kw_only=True):
    """State of one stage: what the gates find, and then what else a view of it shows."""

    candidate: Candidate
    state: Annotated[
        str,
        doc(
            "State of the stage; the first that applies of `Stopped` with the whole"
            " policy, `Halted` by too many failures, `Failed`, `Suspended`, `Passed` and `Pending`."
            " For a variant written by hand, its own state."
        ),
    ] = ""
    verdict: Annotated[Verdict, doc("Verdict of this stage for its candidate.")]
    gate: Annotated[Verdict, doc("Result of `after` for the candidate, soak time included.")]
    verdicts: VerdictsByRevision = field(default_factory=dict)
    counts: StateCounts = field(default_factory=dict)
    published: Annotated[
        dict[str, int],
        doc("Number of variants that have each revision published, by name of the revision."),
    ] = field(default_factory=dict)
    published_since: Annotated[
        Instant | None,
        doc(
            "Time since which a variant of the stage has the candidate published, the"
            " earliest on record, in RFC 3339; null if none has it."
        ),
    ] = None
    queued: Annotated[
        tuple[str, ...], doc("Names of newer revisions that are queued behind the candidate.")
    ] = ()
    others: Annotated[
        tuple[OtherRevision, ...],
        doc(
            "The newest queued revision and the last one that can no longer pass, with the reasons."
        ),
    ] = ()
    conflicts: Annotated[
        int, doc("Number of undecided merge conflicts in drafts of the stage.")
    ] = 0
    in_flight: Annotated[
        int, doc("Number of variants that are released and neither ready nor failed.")
    ] = 0
    budget: Annotated[
        int | None, doc("Maximum number of variants in flight; null if not limited.")
    ] = None
    halted: Annotated[
        bool, doc("Whether the stage is halted because more variants failed than it tolerates.")
    ] = False
    next: NextChange = None
    requests: Annotated[
        tuple[RequestView, ...], doc("Pull requests with drafts of the stage.")
    ] = ()
    conditions: Annotated[
        tuple[Condition, ...],
        doc(
            "Conditions of the stage: `Passed`, the verdict of the candidate, and"
            " `MergeConflict` if it has undecided conflicts."
        ),
    ] = ()
    holds: Holds = ()
    # The counts when the pass begins.
    aggregates: Annotated[StageAggregates, INTERNAL] = NO_AGGREGATES
    # Revisions that are or can become the candidate.
    eligible: Annotated[tuple[str, ...], INTERNAL] = ()
    # Variants that this pass releases, in their order.
    released: Annotated[tuple[str, ...], INTERNAL] = ()
    name: Annotated[str, INTERNAL]


def _format_counts(counts: Mapping[str, int]) -> str:
    return ",".join(f"{name}={number}" for name, number in counts.items())


STAGE_COLUMNS = (
    TableColumn("POLICY", "spec.policy", priority=0),
    TableColumn("STAGE", "spec.stage", priority=0),
    TableColumn(
        "PUBLISHED",  # the one revision that is, or the number of variants by revision
        lambda item: (
            next(iter(counts))
            if len(counts := item["status"]["published"]) == 1
            else _format_counts(counts)
        ),
        cut_width=12,
    ),
    TableColumn("CANDIDATE", "status.candidate"),
    TableColumn("QUEUED", "status.queued", priority=3),
    TableColumn("GATE", "status.gate", priority=2),
    TableColumn("STATE", "status.state"),
    TableColumn("VARIANTS", lambda item: _format_counts(item["status"]["counts"]), cut_width=12),
    TableColumn("WAITS FOR", "status.holds.reason", cut_width=12),
    TableColumn("CONFLICTS", "status.conflicts", priority=3),
    TableColumn("NEXT", "status.next", priority=3),
    TableColumn("AGE", "status.publishedSince", priority=3),
    TableColumn(
        "IN FLIGHT",  # with the limit if there is one
        lambda item: "/".join(
            str(it)
            for it in (item["status"]["inFlight"], item["status"].get("budget"))
            if it is not None
        ),
        wide=True,
    ),
    TableColumn("VERDICT", "status.verdict", wide=True),
    REQUEST_COLUMN,
    TableColumn("MESSAGE", "status.holds.message", wide=True, cut_width=12),
)


class CheckResult(ViewModel):
    """Result of one check for one variant or stage."""

    name: str
    verdict: Verdict
    message: str
    at: Annotated[Instant | None, INTERNAL] = None  # since when the verdict applies
    reason: Annotated[str, INTERNAL] = ""  # CamelCase; "" when it has passed
    who: Annotated[str, INTERNAL] = ""  # who can report the result
    until: Annotated[Instant | None, INTERNAL] = None  # when it can change without an event
    # Of the last equal report; `at` is of the first.
    latest: Annotated[Instant | None, INTERNAL] = None
    # When it will have passed if nothing more is reported.
    passes_at: Annotated[Instant | None, INTERNAL] = None
    # Whose approvals count, by the names that they gave them under.
    approvers: Annotated[tuple[str, ...], INTERNAL] = ()
    approvals: Annotated[tuple[str, ...], INTERNAL] = ()  # names of the approvals that count


class MachineVerdict(Value):
    """Verdict of a machine check about a draft or a publication."""

    check: str
    digest: str  # of the draft or publication; where a status answers about a draft, its tree
    verdict: Verdict


class CheckAnswer(MachineVerdict, forbid_unknown_fields=True):
    """A recorded answer of a machine check, passed or failed; nothing else remembers it.

    The fields are names of a status line.
    """

    at: Instant  # when it was first recorded
    message: str = field(default="", name="sentence")


class VariantResult(ViewModel, kw_only=True):
    """State of one variant: what the gates find, and then what else a view of it shows."""

    state: VariantStateName
    request: Annotated[
        RequestView | None, doc("Pull request with the draft; null if there is none.")
    ] = None
    conditions: Annotated[
        tuple[Condition, ...], doc("Conditions of the variant; the first one is `Ready`.")
    ] = ()
    holds: Annotated[tuple[Hold, ...], doc("Reasons why it is blocked; empty if it is not.")] = ()
    name: Annotated[str, INTERNAL] = ""  # "" of a target without a variant
    stage: Annotated[str, INTERNAL] = ""
    candidate: Annotated[str, INTERNAL] = ""
    # This pass releases it and records the grant.
    release: Annotated[bool, INTERNAL] = False
    # `Kind/name` of the objects that let it be released.
    released_by: Annotated[tuple[str, ...], INTERNAL] = ()
    # Names of active decisions about newer revisions, which a publication does not use up.
    waiting: Annotated[tuple[str, ...], INTERNAL] = ()
    publish: Annotated[bool, INTERNAL] = False  # its open draft may be merged now
    # The gates let its draft be merged, whether or not the draft itself can be yet.
    let_through: Annotated[bool, INTERNAL] = False
    checks: Annotated[tuple[CheckResult, ...], INTERNAL] = ()
    # Answers of its machine checks to keep on record; what is not listed is dropped from it.
    answers: Annotated[tuple[CheckAnswer, ...], INTERNAL] = ()
    next: Annotated[Instant | None, INTERNAL] = None  # next change without an event


TARGET_COLUMNS = (
    TableColumn("TARGET", "spec.targetName", priority=0),
    TableColumn("POLICY", "spec.policy", priority=2),
    TableColumn("STAGE", "spec.stage"),
    TableColumn("STATE", "status.state", priority=0),
    TableColumn("WAITS FOR", "status.holds.reason", cut_width=12),
    TableColumn("AGE", "status.conditions.lastTransitionTime", priority=3, absent="<unknown>"),
    TableColumn("REPOSITORY", "spec.repository", priority=4),
    TableColumn("PATH", "spec.path", priority=4),
    TableColumn("KEY", "spec.target", wide=True),
    REQUEST_COLUMN,
    TableColumn("MESSAGE", "status.holds.message", wide=True, cut_width=12),
)


class ForecastResult(ViewModel):
    """Earliest times of a revision in a stage."""

    begins: Annotated[
        Instant | None,
        doc(
            "Earliest time when the first variant can be published, in RFC 3339;"
            " null if that needs action."
        ),
    ] = None
    passes: Annotated[
        Instant | None,
        doc(
            "Earliest time when the stage can have passed the revision, in RFC"
            " 3339; null if that needs action."
        ),
    ] = None
    assumptions: Annotated[
        tuple[str, ...],
        doc(
            "Assumptions of the forecast: actions taken to happen at once, and"
            " durations taken from the past."
        ),
    ] = ()
    holds: Holds = ()
