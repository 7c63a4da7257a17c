"""File of the outbox: what was notified of, and events that wait for delivery.

The file may be deleted: then nothing is sent of what holds already, and events that were waiting
are lost. It is written before events are sent and after, so that a process that is killed in
between sends them again with the same ids.
"""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.present.notifications.notification_conditions import NotificationCondition
from fanout.values import Value, write_json

# Of the format, not of the program: an update of fanout must not lose what waits.
_VERSION: Final = "1"


class WaitingEvent(Value, array_like=True):
    """Event that an address has not accepted so far."""

    target: str  # name of the address
    at: datetime  # of its pass
    body: str


class DeliveryPause(Value, array_like=True):
    """Failures of an address in a row, and when it is tried again."""

    failures: int
    until: datetime


class OutboxState(Value, rename={"is_complete": "complete", "had_failures": "failures"}):
    """Conditions that held in the last pass over each policy, and what waits for delivery.

    `is_complete`: a pass covered all policies, so that a policy without an entry is a new one.
    `had_failures`: something failed in the last pass.
    """

    conditions: Mapping[str, frozenset[NotificationCondition]]
    waiting: tuple[WaitingEvent, ...]
    pauses: Mapping[str, DeliveryPause]  # by name of the address
    is_complete: bool
    had_failures: bool


NO_STATE: Final = OutboxState({}, (), {}, is_complete=False, had_failures=False)


class OutboxFile:
    """File of the outbox of one installation."""

    def __init__(self, path: Path, install: str) -> None:
        """Create the object; nothing is read or written yet."""
        self._path = path
        self._version = f"{_VERSION}\0{install}"

    def read(self) -> OutboxState:
        """Return the state; an empty one if there is none that can be used."""
        # Another version of fanout has other events.
        return read_cache_value(self._path, self._version, OutboxState) or NO_STATE

    def write(self, state: OutboxState) -> None:
        """Replace the state. Where nothing can be written, the next process knows none."""
        write_cache_file(self._path, write_json(state, order="deterministic"), self._version)
