"""State of notifications on disk: what was notified of, and events that wait for delivery.

The file may be deleted: then nothing is sent of what holds already, and events that were waiting
are lost. It is written before events are sent and after, so that a process that is killed in
between sends them again with the same ids.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from fanout.api.notifications import NotificationEvent
from fanout.disk_cache import read_cache_file, write_cache_file
from fanout.reconcile.notifications.notification_conditions import NotificationCondition
from fanout.values import Value, field

# Of the format, not of the program: an update of fanout must not lose what waits.
_VERSION: Final = "1"
_EVENTS: Final = {it.value: it for it in NotificationEvent}


class WaitingEvent(Value):
    """Event that an address has not accepted so far."""

    target: str  # name of the address
    at: datetime  # of its pass
    body: str


class DeliveryPause(Value):
    """Failures of an address in a row, and when it is tried again."""

    failures: int
    until: datetime


class OutboxState(Value):
    """Conditions that held in the last pass over each policy, and what waits for delivery.

    `is_complete`: a pass covered all policies, so that a policy without an entry is a new one.
    `had_failures`: something failed in the last pass.
    """

    conditions: Mapping[str, frozenset[NotificationCondition]] = field(default_factory=dict)
    waiting: tuple[WaitingEvent, ...] = ()
    pauses: Mapping[str, DeliveryPause] = field(default_factory=dict)  # by name of the address
    is_complete: bool = False
    had_failures: bool = False


class NotificationOutbox:
    """File of one installation."""

    def __init__(self, path: Path, install: str) -> None:
        """Create the outbox; nothing is read or written yet."""
        self._path = path
        self._version = f"{_VERSION}\0{install}"

    def read(self) -> OutboxState:
        """Return the state; an empty one if there is none that can be used."""
        content = read_cache_file(self._path, self._version)
        try:
            return _parse(json.loads(content)) if content is not None else OutboxState()
        except (KeyError, TypeError, ValueError):  # another version of fanout has other events
            return OutboxState()

    def write(self, state: OutboxState) -> None:
        """Replace the state. Where nothing can be written, the next process knows none."""
        write_cache_file(self._path, json.dumps(_format(state)).encode(), self._version)


def _format(state: OutboxState) -> dict[str, Any]:
    return {
        "complete": state.is_complete,
        "failures": state.had_failures,
        "conditions": {
            policy: sorted(conditions) for policy, conditions in state.conditions.items()
        },
        "waiting": [[it.target, it.at.isoformat(), it.body] for it in state.waiting],
        "pauses": {name: [it.failures, it.until.isoformat()] for name, it in state.pauses.items()},
    }


def _parse(content: Mapping[str, Any]) -> OutboxState:
    return OutboxState(
        {
            policy: frozenset(
                NotificationCondition(_EVENTS[event], *names) for event, *names in rows
            )
            for policy, rows in content["conditions"].items()
        },
        tuple(
            WaitingEvent(target, datetime.fromisoformat(at), body)
            for target, at, body in content["waiting"]
        ),
        {
            name: DeliveryPause(failures, datetime.fromisoformat(until))
            for name, (failures, until) in content["pauses"].items()
        },
        content["complete"],
        content["failures"],
    )
