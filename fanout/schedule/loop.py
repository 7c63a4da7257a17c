"""The loop of `fanout run`: waits for a key, looks at what is there, lets passes do what is due.

Everything is judged by the world as it is: keys only wake. One round serves all keys that wait, so
there are never two passes at once, and one pass for all. No error of a pass ends the loop.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

import structlog

from fanout.cluster.declared import Declared
from fanout.cluster.sweep_log import SweepLog
from fanout.errors import FanoutError
from fanout.reconcile.dependencies import followers
from fanout.reconcile.passes import Mode, Subject
from fanout.reconcile.report import Report
from fanout.schedule.alarm import Alarm
from fanout.schedule.journal import Journal
from fanout.schedule.keys import Key, Trigger
from fanout.schedule.ledger import Ledger
from fanout.schedule.queue import KeyQueue
from fanout.schedule.sweeps import Timetable, mode_of, timetable
from fanout.telemetry.barrier import BARRIER, run_contained
from fanout.values import frozen

LOOK = 2.0  # seconds between looks at the files
FIRST_PAUSE, LONGEST_PAUSE = 2.0, 300.0  # seconds, after a pass that failed
FOLLOW_UPS = 32  # rounds in a row that only follow what the one before did

_log = structlog.get_logger()


@frozen
class Plant:
    """What the loop works with."""

    files: Callable[[], Declared]  # the same object as before when nothing changed
    run: Callable[[Declared, datetime, Mode], Report]  # one pass
    sweeps: SweepLog
    clock: Callable[[], datetime]


class Loop:
    """One worker. `run` returns after `stop`."""

    def __init__(self, plant: Plant, interval: timedelta, namespace: str = "") -> None:
        """`interval`: how long after one look at all repositories the next one comes."""
        self._plant = plant
        self._interval = interval.total_seconds()
        self._namespace = namespace
        self._queue: KeyQueue[Key] = KeyQueue()
        self._ledger = Ledger(plant.sweeps)
        self._journal = Journal()
        self._declared = Declared(unread=("what is declared",))
        self._declared = self._files()
        self._arriving = self._declared  # changed files, until they are seen unchanged once more
        self._waiting = {Key(Trigger.START): None}
        self._alarms: frozenset[Key] = frozenset()
        self._poll_at = self._look_at = self._resume_at = 0.0  # by the monotonic clock
        self._failures = self._follow_ups = 0

    def stop(self) -> None:
        """End after the pass that runs. May be called in a signal handler."""
        self._queue.close()

    def run(self) -> None:
        """Work until `stop`."""
        alarm = Alarm(self._queue.put)
        self._poll_at = monotonic() + self._interval
        patience = 0.0
        try:
            while (keys := self._queue.take(patience)) is not None:
                self._waiting |= dict.fromkeys((*keys, *self._noticed()))
                if self._waiting and monotonic() >= self._resume_at:
                    self._round(alarm)
                patience = LOOK
        finally:
            alarm.shutdown()

    def _noticed(self) -> Iterable[Key]:
        """What nobody puts into the queue: changed files, and the interval's end.

        Files count as changed when they have stopped changing: half of a directory that is being
        written may lack the very policy that restricts the others.
        """
        if monotonic() >= self._look_at:
            self._look_at = monotonic() + LOOK
            before, self._arriving = self._arriving, self._files()
            if self._arriving is before and self._declared is not before:
                self._declared = before
                self._resume_at = 0.0  # perhaps that was the remedy
                yield Key(Trigger.FILES)
        if monotonic() >= self._poll_at:
            yield Key(Trigger.POLL)

    def _files(self) -> Declared:
        """What is declared now; what was before, where an internal error keeps it from view."""
        found = run_contained(self._plant.files)
        failed = isinstance(found, FanoutError)
        self._journal.own("files of fanout", [str(found)] if failed else [])
        return self._declared if isinstance(found, FanoutError) else found

    # ---- one round -----------------------------------------------------------------------------

    def _round(self, alarm: Alarm) -> None:
        """Serve all keys that wait. After an error they go on waiting, longer each time."""
        keys = list(self._waiting)
        try:
            with BARRIER:  # others rely on this process, whatever a pass comes to
                self._serve(keys, alarm)
        except FanoutError as error:
            self._journal.failed(error, self._pause())
        else:
            self._failures = 0
            self._journal.worked()
            for key in keys:
                del self._waiting[key]

    def _pause(self) -> float:
        """Keep still for a while; answers for how many seconds."""
        pause = pause_after(self._failures)
        self._failures += 1
        self._resume_at = monotonic() + pause
        return pause

    def _serve(self, keys: Iterable[Key], alarm: Alarm) -> None:
        now = self._plant.clock()
        table = timetable(self._declared, self._namespace).usable(now)
        self._journal.files(self._declared)
        self._journal.own("schedules", table.failures)
        due = self._ledger.due(table, now)
        wanted = _wanted(keys, table)
        swept = frozenset[Subject]().union(*(timed.names for timed in due))
        free = swept | (wanted - table.bound)
        triggers = {key.trigger for key in keys}
        only_follows = triggers == {Trigger.FOLLOW_UP}
        self._follow_ups = self._follow_ups + 1 if only_follows else 0
        instants = {Key(Trigger.SWEEP, it.namespace, it.name): it.next(now) for it in table.timed}
        judged = free | wanted
        if judged:
            mode = mode_of(judged, free, table, self._namespace)
            instants |= self._pass(mode, triggers)
        self._ledger.done(due, now)
        self._set(alarm, instants, judged, table)
        if wanted >= table.everyone:
            self._poll_at = monotonic() + self._interval

    def _pass(self, mode: Mode, triggers: set[Trigger]) -> dict[Key, datetime]:
        """Run it; answers when a gate of those it judged can open by itself."""
        report = self._plant.run(self._declared, self._plant.clock(), mode)
        told = run_contained(partial(self._journal.report, report, mode, triggers))
        # What cannot be logged was done all the same: the pass is not repeated for it.
        self._journal.own("log", [str(told)] if isinstance(told, FanoutError) else [])
        self._follow(report)
        instants: dict[Key, datetime] = {}
        for item in report.observed.policies:
            at = item.decision.next if item.decision else None
            key = Key(Trigger.INSTANT, item.named.namespace, item.named.name)
            if at is not None:
                instants[key] = min(at, instants.get(key, at))
        return instants

    def _follow(self, report: Report) -> None:
        """Look again at whoever took a step: drafts are written in one pass, published in another.

        And at those who wait for it: what it did may be what they wait for. Bounded, so that a
        world which answers differently each time costs no more than the poll.
        """
        if self._follow_ups >= FOLLOW_UPS:
            return
        done = {outcome.action for outcome in report.outcomes if outcome.done}
        for plan in report.observed.plans:
            if not done.isdisjoint(plan.actions):
                waiting = followers(self._declared, plan.namespace, plan.name)
                for name in (plan.name, *waiting):
                    self._queue.put(Key(Trigger.FOLLOW_UP, plan.namespace, name))

    def _set(
        self,
        alarm: Alarm,
        instants: Mapping[Key, datetime],
        judged: frozenset[Subject],
        table: Timetable,
    ) -> None:
        """Set the alarms; those stay that are about somebody whom no pass judged anew."""
        staying = {
            key
            for key in self._alarms
            if key.trigger is Trigger.INSTANT
            and Subject(key.namespace, key.name) in table.everyone - judged
        }
        for key in self._alarms - instants.keys() - staying:
            alarm.cancel(key)
        for key, at in instants.items():
            alarm.set(key, at)
        self._alarms = frozenset(instants.keys() | staying)


def pause_after(failures: int) -> float:
    """Seconds until the next attempt, after so many failures in a row before this one."""
    return min(FIRST_PAUSE * 2.0 ** min(failures, 30), LONGEST_PAUSE)


def _wanted(keys: Iterable[Key], table: Timetable) -> frozenset[Subject]:
    """Whom the keys are about; for a key of a schedule the ledger says it."""
    if any(key.everything for key in keys):
        return table.everyone
    named = {Subject(key.namespace, key.name) for key in keys if key.trigger is not Trigger.SWEEP}
    return table.everyone & named
