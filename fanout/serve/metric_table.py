"""Table of all metrics of a continuous process: names, types, labels, meanings and buckets.

Names are those that dashboards of controllers know (controller-runtime) where a metric is the
same. No label has values without a bound: they are words of closed lists, names of policies and
stages, or names that the FanoutConfiguration has. Variants and targets are counted, never named.
"""

from enum import StrEnum
from typing import Final

from fanout.values import Value


class MetricType(StrEnum):
    """Type of a metric, as Prometheus names it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"


class Metric(Value):
    """One metric; the name of a counter ends in `_total`."""

    name: str
    type: MetricType
    meaning: str
    labels: tuple[str, ...] = ()


# Upper bounds of the buckets of all histograms, in seconds.
BUCKETS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0)
_COUNTER, _GAUGE = MetricType.COUNTER, MetricType.GAUGE
_POLICY = ("namespace", "policy")
_STAGE = (*_POLICY, "stage")

BUILD: Final = Metric("fanout_build_info", _GAUGE, "1, with the version of fanout.", ("version",))
RECONCILES: Final = Metric(
    "fanout_reconcile_total",
    _COUNTER,
    "Passes by result: `success`, `failed` (made, and something in it failed or must be fixed), or"
    " `error` (stopped by an error, and tried again).",
    ("result",),
)
RECONCILE_ERRORS: Final = Metric(
    "fanout_reconcile_errors_total",
    _COUNTER,
    "Passes that an error stopped, and actions that failed, by reason.",
    ("reason",),
)
RECONCILE_SECONDS: Final = Metric(
    "fanout_reconcile_duration_seconds", MetricType.HISTOGRAM, "Duration of passes."
)
PHASE_SECONDS: Final = Metric(
    "fanout_reconcile_phase_seconds_total", _COUNTER, "Time of passes by phase.", ("phase",)
)
LAST_SUCCESS: Final = Metric(
    "fanout_sweep_last_success_timestamp_seconds",
    _GAUGE,
    "When the last pass ended that no error stopped; 0 before the first.",
)
ACTIONS: Final = Metric(
    "fanout_actions_total",
    _COUNTER,
    "Actions of passes by kind and result: `done`, `failed`, or `deferred` (a later pass does it).",
    ("kind", "result"),
)
POLICIES: Final = Metric(
    "fanout_policies",
    _GAUGE,
    "1 for the state of each policy: `Stopped` by an error; else `Failed`, if a target or a variant"
    " failed; else `Suspended` by its spec (a decision that suspends it is in `fanout_holds`); else"
    " `Ready`, if all variants are, or `Progressing`. Policies with errors that make them unusable"
    " have no series. Variants that are written by hand are counted per namespace, with an empty"
    " name.",
    (*_POLICY, "state"),
)
STAGES: Final = Metric(
    "fanout_stages",
    _GAUGE,
    "1 for the state of each stage, as `fanout get stages` has it: `Halted`, `Failed`,"
    " `Suspended`, `Passed` or `Pending`.",
    (*_STAGE, "state"),
)
VARIANTS: Final = Metric("fanout_variants", _GAUGE, "Variants by state.", (*_STAGE, "state"))
HOLDS: Final = Metric(
    "fanout_holds",
    _GAUGE,
    "Variants that are held, by reason; 1 for a hold of a stage or of a policy as a whole."
    " `ApprovalMissing` and `ChangesRequested` count once `after` and soak have passed and the pull"
    " request is not closed: approvers are not asked before.",
    (*_STAGE, "reason"),
)
PROBLEMS: Final = Metric(
    "fanout_problems",
    _GAUGE,
    "What failed or must be fixed by a person, by reason: policies, repositories, targets and"
    " variants.",
    (*_POLICY, "reason"),
)
GATE_DECISIONS: Final = Metric(
    "fanout_gate_decisions_total",
    _COUNTER,
    "What gates decided in each pass: `Release` or `Publish` of a variant, without a reason, or"
    " `Hold` of a variant, a stage or a policy, by reason.",
    ("decision", "reason"),
)
QUEUE_DEPTH: Final = Metric("workqueue_depth", _GAUGE, "Triggers that wait for a round.", ("name",))
QUEUE_ADDS: Final = Metric(
    "workqueue_adds_total", _COUNTER, "Triggers that rounds have served.", ("name",)
)
QUEUE_RETRIES: Final = Metric(
    "workqueue_retries_total", _COUNTER, "Rounds that are repeated after an error.", ("name",)
)
QUEUE_SECONDS: Final = Metric(
    "workqueue_queue_duration_seconds",
    MetricType.HISTOGRAM,
    "How long triggers waited for their first round.",
    ("name",),
)
WORK_SECONDS: Final = Metric(
    "workqueue_work_duration_seconds",
    MetricType.HISTOGRAM,
    "Duration of rounds, with or without a pass.",
    ("name",),
)
UNFINISHED_SECONDS: Final = Metric(
    "workqueue_unfinished_work_seconds",
    _GAUGE,
    "While triggers wait: since the first of them came or a round ended, whichever was later.",
    ("name",),
)
GIT_OPERATIONS: Final = Metric(
    "fanout_git_operations_total",
    _COUNTER,
    "Runs of git by command and result: `success`, or the reason of the error. `ls-remote` counts"
    " listings of repositories on the same machine, too, for which files are read.",
    ("operation", "result"),
)
GIT_SECONDS: Final = Metric(
    "fanout_git_operation_duration_seconds",
    MetricType.SUMMARY,
    "Duration of runs of git by command.",
    ("operation",),
)
FORGE_CALLS: Final = Metric(
    "fanout_forge_calls_total",
    _COUNTER,
    "Calls to forges by HTTP method and status; `none` is a call without an answer.",
    ("host", "method", "code"),
)
FORGE_SECONDS: Final = Metric(
    "fanout_forge_call_duration_seconds", MetricType.SUMMARY, "Duration of calls.", ("host",)
)
FORGE_REMAINING: Final = Metric(
    "fanout_forge_rate_limit_remaining",
    _GAUGE,
    "How many more calls each host takes: `calls` in this minute, `creations` of pull requests in"
    " this hour.",
    ("host", "limit"),
)
HOOKS: Final = Metric(
    "fanout_hooks_total", _COUNTER, "Webhooks that arrived, by outcome.", ("outcome",)
)
SANDBOX_KILLED: Final = Metric(
    "fanout_sandbox_killed_total",
    _COUNTER,
    "Workers and programs that were ended, by cause: the limit that an expression, a template, a"
    " script or a function exceeded, or `unknown` (a crash, or a signal from outside).",
    ("cause",),
)
NOTIFICATIONS: Final = Metric(
    "fanout_notifications_total",
    _COUNTER,
    "Notifications by address and result: `delivered`, `failed` (an attempt; it is repeated), or"
    " `dropped` (not accepted for a day, or too many).",
    ("name", "result"),
)
NOTIFICATIONS_WAITING: Final = Metric(
    "fanout_notifications_waiting", _GAUGE, "Notifications that wait for delivery.", ("name",)
)
METRICS: Final = tuple(it for it in vars().values() if isinstance(it, Metric))  # all of these
