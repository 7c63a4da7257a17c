"""Objects, statuses and events that fanout writes in a cluster, as plain data."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from fanout.api.reasons import EventReason
from fanout.values import Value


class ObjectName(NamedTuple):
    """Kind, namespace and name of an object of fanout."""

    kind: str
    namespace: str
    name: str


# Conditions by which kstatus tells whether work goes on, has ended or has failed.
PROGRESS_TYPES = frozenset({"Ready", "Reconciling", "Stalled"})


class ConditionState(NamedTuple):
    """Status and time of a condition of an object as the API server has it."""

    status: str
    since: str


class TransitionTimes(Value):
    """Instants for conditions of an object whose transitions no record and no commit tells."""

    created: str  # instant at which the object was created
    observed: str  # instant of the last pass; "": there was none


class WrittenObject(Value):
    """One object with the status that it is to have.

    `status` has no `observedGeneration`: it is about `generation`, or about the object as it is
    written if that is None. Its conditions lack an instant where none is on record.
    """

    name: ObjectName
    status: Mapping[str, Any]
    generation: int | None = None
    # labels, annotations and spec of an object that fanout makes; None: people declare it
    content: Mapping[str, Any] | None = None
    uid: str = ""  # of the only object of this name that is meant; "": any
    times: TransitionTimes | None = None  # None: all conditions have an instant
    # Fields for an object that lacks them; what it has beside the fields of `status`, and its
    # conditions that are not about progress, stay. None: `status` is complete.
    defaults: Mapping[str, Any] | None = None


def add_transition_times(
    conditions: Iterable[Mapping[str, Any]],
    present: Mapping[str, ConditionState],
    times: TransitionTimes,
) -> list[dict[str, Any]]:
    """Return the conditions with instants; `present` are those of the object by type.

    An instant on record counts, but none is older than the one that people have seen. Without one
    it is that of the present condition if its status is the same, else that of the pass; a new
    object has that of its creation.
    """
    result: list[dict[str, Any]] = []
    for condition in conditions:
        earlier = present.get(condition["type"])
        instant: str | None = condition.get("lastTransitionTime")
        if instant is not None:
            instant = max(instant, earlier.since) if earlier is not None else instant
        elif not present:
            instant = times.created
        elif earlier is None:
            instant = max(times.observed, *(it.since for it in present.values()))
        elif earlier.status == condition["status"]:
            instant = earlier.since
        else:
            instant = max(times.observed, earlier.since)
        result.append({**condition, "lastTransitionTime": instant})
    return result


def merge_present(
    status: Mapping[str, Any], defaults: Mapping[str, Any], present: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the status of an object with the fields of a partial one."""
    types = {it["type"] for it in status["conditions"]} | PROGRESS_TYPES
    others = [it for it in present.get("conditions", ()) if it["type"] not in types]
    return {**defaults, **present, **status, "conditions": [*status["conditions"], *others]}


class PolicyEvent(Value, kw_only=True):
    """Event about a policy, or a variant that is written by hand."""

    subject: ObjectName
    uid: str  # of the subject; "": unknown
    reason: EventReason
    message: str
    at: datetime
