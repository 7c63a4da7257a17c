"""Notifier: finds transitions between passes, and has their events delivered.

An event waits until its address accepts it, for a day at most. An address that does not accept it
is paused, first for ten seconds and then for twice as long each time, and the event goes behind the
others: one that an address never accepts must not hold up those that it would.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final

from fanout.api.durations import format_instant
from fanout.api.fanout_configuration import NotificationTarget
from fanout.disk_cache import read_cache_value, write_cache_file
from fanout.message_commands import MessageCommands
from fanout.ports import EventBatch, EventSender
from fanout.present.notifications.notification_conditions import (
    NotificationCondition,
    Transition,
    find_conditions,
    group_transitions,
)
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassSubject
from fanout.telemetry.metrics import EventCounters, EventName
from fanout.values import Value, replace, write_json

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
    `had_failures`: something failed in the last pass. The file of this state may be deleted: then
    nothing is sent of what holds already, and events that were waiting are lost. It is written
    before events are sent and after, so that a process that is killed in between sends them again
    with the same ids.
    """

    conditions: Mapping[str, frozenset[NotificationCondition]]
    waiting: tuple[WaitingEvent, ...]
    pauses: Mapping[str, DeliveryPause]  # by name of the address
    is_complete: bool
    had_failures: bool


NO_STATE: Final = OutboxState({}, (), {}, is_complete=False, had_failures=False)


MAX_AGE: Final = timedelta(days=1)
MAX_WAITING: Final = 1000  # events of all addresses; the oldest are dropped first
FIRST_PAUSE: Final = timedelta(seconds=10)
MAX_PAUSE: Final = timedelta(minutes=10)
MAX_BATCH: Final = 50  # events of one address in one delivery
MAX_NAMES: Final = 20  # variants that one event names; it counts all
TYPE_PREFIX: Final = "dev.fanout."


class Delivery(Value):
    """Result of a delivery: problems by name of the address, and when to deliver again."""

    problems: Mapping[str, str]
    next: datetime | None = None  # None: nothing waits


class Notifier:
    """Notifier of one process. Thread-safe: passes and deliveries are on different threads."""

    def __init__(
        self,
        targets: Sequence[NotificationTarget],
        install: str,
        path: Path,
        sender: EventSender,
        redact: Callable[[Any], Any],
        events: EventCounters,
        *,
        in_cluster: bool = False,
    ) -> None:
        """Create a notifier with its state in the file at `path`.

        `redact` takes secrets out of data, `events` counts deliveries.

        `in_cluster`: whoever gets the events has the objects in a cluster.
        """
        self._in_cluster = in_cluster
        self._targets = {it.name: it for it in targets}
        self._install = install
        self._path, self._version = path, f"{_VERSION}\0{install}"
        self._sender = sender
        self._redact = redact
        self._events = events
        self._lock = Lock()
        # Another version of fanout has other events.
        state = read_cache_value(path, self._version, OutboxState) or NO_STATE
        # What waits for an address that is not listed any more is nobody's.
        waiting = tuple(it for it in state.waiting if it.target in self._targets)
        self._state = replace(state, waiting=waiting)

    @property
    def needs_pass(self) -> bool:
        """True if the answer of an earlier pass without work would hide transitions.

        So it is before all policies were observed, and after a pass in which something failed:
        when that is over, the world may look as before it.
        """
        return not self._state.is_complete or self._state.had_failures

    def observe(self, report: PassReport, declared: frozenset[PassSubject]) -> None:
        """Queue the events of the transitions since the pass before.

        `declared`: all policies and variants that are declared. Of a policy whose earlier state is
        not known nothing is sent, as all of it may be old, unless the policy is a new one.
        """
        with self._lock:
            state, waiting = self._state, list(self._state.waiting)
            conditions = dict(state.conditions)
            covered = set()
            for item in report.pass_plan.policies:
                covered.add(PassSubject(item.resolved_policy.namespace, item.resolved_policy.name))
                # A variant that is written by hand may have had the same name.
                is_policy = item.resolved_policy.upstream_policy is not None
                key = f"{'policy' if is_policy else 'variant'} {item.title}"
                current = find_conditions(item)
                earlier = conditions.get(key, frozenset())
                if state.is_complete or key in conditions:
                    began = {it: text for it, text in current.items() if it not in earlier}
                    waiting += self._build_waiting(item, began, report.pass_plan.now)
                # A policy that is stopped has all that it had before: nothing else is known.
                carried = earlier if item.error is not None else frozenset()
                conditions[key] = frozenset(current) | carried
            self._drop(waiting[:-MAX_WAITING])
            titles = {f"{namespace}/{name}" for namespace, name in declared | covered}
            self._state = replace(
                state,
                conditions={
                    key: it for key, it in conditions.items() if key.partition(" ")[2] in titles
                },
                waiting=tuple(waiting[-MAX_WAITING:]),
                is_complete=state.is_complete or declared <= covered,
                had_failures=any(it.failed for it in report.pass_plan.problems),
            )
            self._write_state()

    def deliver(self, now: datetime) -> Delivery:
        """Send what waits to addresses that are not paused. Takes seconds at most."""
        with self._lock:
            waiting = self._state.waiting
            self._drop(it for it in waiting if now - it.at > MAX_AGE)
            kept = tuple(it for it in waiting if now - it.at <= MAX_AGE)
            state = self._state = replace(self._state, waiting=kept)
        due_by_name: dict[str, list[WaitingEvent]] = {}
        for event in state.waiting:
            if (pause := state.pauses.get(event.target)) is None or pause.until <= now:
                due_by_name.setdefault(event.target, []).append(event)
        batches = {name: events[:MAX_BATCH] for name, events in due_by_name.items()}
        results = self._sender.send(
            [
                EventBatch(
                    target.url, target.secret_ref.name, tuple(it.body.encode() for it in due)
                )
                for name, due in batches.items()
                for target in (self._targets[name],)
            ]
        )
        outcomes = dict(zip(batches, results, strict=True))
        with self._lock:
            for name, result in outcomes.items():
                due, number = batches[name], result.delivered
                if number:
                    self._events.add(EventName.NOTIFICATION, name, "delivered", number=number)
                state, done = self._state, set(map(id, due[:number]))
                pauses = {key: it for key, it in state.pauses.items() if key != name}
                rest = [it for it in state.waiting if id(it) not in done]
                if result.problem:
                    self._events.add(EventName.NOTIFICATION, name, "failed")
                    earlier, refused = state.pauses.get(name), due[number]
                    failures = 0 if earlier is None or number else earlier.failures
                    seconds = min(FIRST_PAUSE * 2 ** min(failures, 16), MAX_PAUSE)
                    pauses[name] = DeliveryPause(failures + 1, now + seconds)
                    rest = [it for it in rest if it is not refused] + [refused]
                self._state = replace(state, waiting=tuple(rest), pauses=pauses)
            if batches:
                self._write_state()
            problems = {name: it.problem for name, it in outcomes.items() if it.problem}
            state = self._state
            instants = (
                state.pauses[it.target].until if it.target in state.pauses else now
                for it in state.waiting
            )
            return Delivery(problems, min(instants, default=None))

    def count_waiting(self) -> Mapping[str, int]:
        """Return the number of waiting events by name of the address."""
        with self._lock:
            counts = Counter(it.target for it in self._state.waiting)
        return {name: counts[name] for name in self._targets}

    def _build_waiting(
        self, item: PolicyResult, began: Mapping[NotificationCondition, str], now: datetime
    ) -> Iterable[WaitingEvent]:
        namespace, name = item.resolved_policy.namespace, item.resolved_policy.name
        for transition in group_transitions(began):
            event = build_event(
                transition, self._install, namespace, name, now, in_cluster=self._in_cluster
            )
            body = json.dumps(self._redact(event))
            for target in self._targets.values():
                if target.covers(transition.event, namespace, name):
                    yield WaitingEvent(target.name, now, body)

    def _write_state(self) -> None:
        """Write the file. Where nothing can be written, the next process knows no state."""
        write_cache_file(self._path, write_json(self._state, order="deterministic"), self._version)

    def _drop(self, waiting: Iterable[WaitingEvent]) -> None:
        for event in waiting:
            self._events.add(EventName.NOTIFICATION, event.target, "dropped")


def build_event(
    transition: Transition,
    install: str,
    namespace: str,
    policy: str,
    now: datetime,
    *,
    in_cluster: bool = False,
) -> dict[str, Any]:
    """Return a CloudEvent (specification 1.0, JSON format) about a policy."""
    title, stage = f"{namespace}/{policy}", transition.stage
    at = format_instant(now)
    commands = MessageCommands((("namespace", namespace),), in_cluster)
    facts = {
        "namespace": namespace,
        "policy": policy,
        "stage": stage,
        "revision": transition.revision,
        "event": transition.event.value,
        "variants": list(transition.variants[:MAX_NAMES]),
        "variantCount": len(transition.variants),
        "message": commands.complete_text(transition.message),
        "command": f"fanout explain {policy} --namespace {namespace}",
    }
    # The same transition in the same pass has the same id, however often it is delivered.
    identity = json.dumps([install, at, facts])
    return {
        "specversion": "1.0",
        "id": hashlib.sha256(identity.encode()).hexdigest()[:32],
        "source": f"/fanout/{install}",
        "type": f"{TYPE_PREFIX}{transition.event.value}",
        "subject": f"{title}/{stage}" if stage else title,
        "time": at,
        "datacontenttype": "application/json",
        "data": {name: value for name, value in facts.items() if value},
    }
