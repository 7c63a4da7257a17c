"""Queue of notifications: which waiting events are sent, and when an address is tried again.

An event waits until its address accepts it, for a day at most. An address that does not accept it
is paused, first for ten seconds and then for twice as long each time, and the event goes behind the
others: one that an address never accepts must not hold up those that it would.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from fanout.ports import BatchResult
from fanout.present.notifications.outbox_file import DeliveryPause, OutboxState, WaitingEvent
from fanout.values import replace

MAX_AGE: Final = timedelta(days=1)
MAX_WAITING: Final = 1000  # events of all addresses; the oldest are dropped first
FIRST_PAUSE: Final = timedelta(seconds=10)
MAX_PAUSE: Final = timedelta(minutes=10)
MAX_BATCH: Final = 50  # events of one address in one delivery

_Events = tuple[WaitingEvent, ...]


def limit_waiting(waiting: Sequence[WaitingEvent]) -> tuple[_Events, _Events]:
    """Return the newest events, at most `MAX_WAITING`, and those that are dropped."""
    return tuple(waiting[-MAX_WAITING:]), tuple(waiting[:-MAX_WAITING])


def split_expired(waiting: Sequence[WaitingEvent], now: datetime) -> tuple[_Events, _Events]:
    """Return the events that go on waiting, and those that have waited for too long."""
    kept = tuple(it for it in waiting if now - it.at <= MAX_AGE)
    return kept, tuple(it for it in waiting if now - it.at > MAX_AGE)


def select_due(state: OutboxState, now: datetime) -> dict[str, list[WaitingEvent]]:
    """Return what may be sent now, by name of the address."""
    due: dict[str, list[WaitingEvent]] = {}
    for event in state.waiting:
        pause = state.pauses.get(event.target)
        if pause is None or pause.until <= now:
            due.setdefault(event.target, []).append(event)
    return {name: events[:MAX_BATCH] for name, events in due.items()}


def apply_result(
    state: OutboxState, name: str, due: Sequence[WaitingEvent], result: BatchResult, now: datetime
) -> OutboxState:
    """Return the state after the delivery of events that were due to one address."""
    done = set(map(id, due[: result.delivered]))
    pauses = {key: it for key, it in state.pauses.items() if key != name}
    waiting = [it for it in state.waiting if id(it) not in done]
    if result.problem:
        earlier = state.pauses.get(name)
        failures = 0 if earlier is None or result.delivered else earlier.failures
        pause = min(FIRST_PAUSE * 2 ** min(failures, 16), MAX_PAUSE)
        pauses[name] = DeliveryPause(failures + 1, now + pause)
        refused = due[result.delivered]
        waiting = [it for it in waiting if it is not refused] + [refused]
    return replace(state, waiting=tuple(waiting), pauses=pauses)


def find_next_delivery(state: OutboxState, now: datetime) -> datetime | None:
    """Return when something is to be delivered next; None if nothing waits."""
    instants = (
        state.pauses[it.target].until if it.target in state.pauses else now for it in state.waiting
    )
    return min(instants, default=None)
