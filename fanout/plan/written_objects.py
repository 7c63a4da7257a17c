"""Objects, statuses and events that fanout writes in a cluster, as plain data."""

from collections.abc import Mapping
from dataclasses import KW_ONLY
from datetime import datetime
from typing import Any, NamedTuple

from fanout.api.event_reasons import EventReason
from fanout.values import frozen


class ObjectName(NamedTuple):
    """Kind, namespace and name of an object of fanout."""

    kind: str
    namespace: str
    name: str


@frozen
class WrittenObject:
    """One object with the status that it is to have.

    `status` has no `observedGeneration`: it is about `generation`, or about the object as it is
    written if that is None.
    """

    name: ObjectName
    status: Mapping[str, Any]
    _: KW_ONLY
    generation: int | None = None
    # labels, annotations and spec of an object that fanout makes; None: people declare it
    content: Mapping[str, Any] | None = None
    uid: str = ""  # of the only object of this name that is meant; "": any


@frozen
class PolicyEvent:
    """Event about a policy, or a variant that is written by hand."""

    _: KW_ONLY
    subject: ObjectName
    uid: str  # of the subject; "": unknown
    reason: EventReason
    message: str
    at: datetime
