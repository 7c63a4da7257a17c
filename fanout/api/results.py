"""Results of the gates that output shows as they are."""

from typing import Annotated

from fanout.api.text_fields import LABEL_VALUE
from fanout.api.view_base import ConditionStatus, ConditionStatuses, ViewModel
from fanout.values import Instant, doc


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
        ConditionStatuses,
        doc("Whether the condition holds: `True`, `False` or `Unknown`."),
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
    status = ConditionStatus.TRUE if is_ready else ConditionStatus.FALSE
    return Condition("Ready", status, reason, message)


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

    total: Annotated[int, doc("Number of variants that count for the candidate.")] = 0
    updated: Annotated[
        int, doc("Number of variants that are released for the candidate or published at it.")
    ] = 0
    ready: Annotated[int, doc("Number of variants that are ready at the candidate.")] = 0
    in_flight: Annotated[
        int, doc("Number of variants that are released and neither ready nor failed.")
    ] = 0
    failed: Annotated[int, doc("Number of variants that have failed at the candidate.")] = 0
