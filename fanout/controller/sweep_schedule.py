"""Schedules of sweeps: pure, from PromotionPolicies, the sweep log and an instant.

With a schedule, automation publishes only in the sweeps that it or a person starts; without one,
whenever a gate opens. A missed sweep is made up once (docs/concepts/schedules.md). With `jitter` a
sweep starts after its scheduled instant, by a time that is spread over all PromotionPolicies but
fixed for each sweep, so that a restart changes nothing.

The log is read at the first schedule and written after each sweep. A sweep during which
the process is killed is due again; a completed one is not repeated.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from zoneinfo import ZoneInfo

import structlog

from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.cron_schedule import CronSchedule, last_fire, next_fire, parse_schedule
from fanout.calendar.time_zone import parse_zone
from fanout.declared.declared_objects import DeclaredObjects, own_kind
from fanout.errors import FanoutError, InvalidInput
from fanout.plan.changes.next_drafts import DraftLimit
from fanout.plan.gates.stage_rules import governing_promotions
from fanout.plan.records.logged_sweep import LoggedSweep
from fanout.ports import SweepLog
from fanout.reconcile.pass_scope import PassMode, PassSubject, list_subjects
from fanout.telemetry.error_isolation import BARRIER, run_isolated
from fanout.values import Value, replace

UTC_NAME = "UTC"
_ONE_SECOND = timedelta(seconds=1)


class ScheduledSweep(Value):
    """A PromotionPolicy with a valid schedule, and the policies and variants it names."""

    promotion: PassSubject
    schedule: CronSchedule
    zone: ZoneInfo
    deadline: timedelta | None
    subjects: frozenset[PassSubject]
    jitter: timedelta = timedelta(0)

    @property
    def key(self) -> str:
        """Name of the PromotionPolicy in the sweep log."""
        return "/".join(self.promotion)

    def log_entry(self, at: datetime) -> LoggedSweep:
        """Build the sweep log entry for sweeps done up to an instant."""
        return LoggedSweep(at, self.schedule.text, self.zone.key)

    def is_logged(self, entry: LoggedSweep | None, now: datetime) -> bool:
        """Return whether the entry is of this schedule. A new or changed one has missed nothing."""
        return entry is not None and entry.applies_to(self.schedule.text, self.zone.key, now)

    def find_missed(self, entry: LoggedSweep, now: datetime) -> datetime | None:
        """Return the latest scheduled instant that is due and not logged; earlier ones are lost."""
        last = last_fire(self.schedule, self.zone, now)
        if last is not None and self.start_of(last) > now:
            last = last_fire(self.schedule, self.zone, last - _ONE_SECOND)
        return last if last is not None and last > entry.at else None

    def is_too_late(self, at: datetime, now: datetime) -> bool:
        """Return whether `startingDeadlineSeconds` has passed, jitter aside, as in a CronJob."""
        return self.deadline is not None and now - self.start_of(at) > self.deadline

    def next_start(self, now: datetime) -> datetime:
        """Return the next instant after `now` at which a sweep starts."""
        last = last_fire(self.schedule, self.zone, now) if self.jitter else None
        if last is not None and self.start_of(last) > now:
            return self.start_of(last)
        return self.start_of(next_fire(self.schedule, self.zone, now))

    def start_of(self, at: datetime) -> datetime:
        """Return when the sweep of a scheduled instant starts: at most `jitter` later.

        The delay is in whole seconds and ends before the next scheduled instant, so that sweeps
        stay in order.
        """
        if not self.jitter:
            return at
        max_delay = min(self.jitter, next_fire(self.schedule, self.zone, at) - at - _ONE_SECOND)
        seconds = int(max_delay.total_seconds())
        # A hash instead of a random number: every restart and every replica computes the same.
        digest = sha256(f"{self.key} {at.isoformat()}".encode()).digest()
        return at + timedelta(seconds=int.from_bytes(digest) % (seconds + 1))


class SweepTimetable(Value):
    """Sweep schedules of all declared PromotionPolicies."""

    all_subjects: frozenset[PassSubject] = frozenset()
    sweep_only: frozenset[PassSubject] = frozenset()  # published by automation only in sweeps
    schedules: tuple[ScheduledSweep, ...] = ()
    # declared PromotionPolicies, usable or not
    promotion_policies: frozenset[str] = frozenset()
    complete: bool = True  # False: an unreadable file may declare more
    failures: tuple[str, ...] = ()  # PromotionPolicies that failed with an internal error

    def without_failing(self, now: datetime) -> "SweepTimetable":
        """Return the timetable without schedules whose instants cannot be computed.

        Fail closed: policies bound by such a schedule are still published in sweeps alone.
        """
        failed: dict[ScheduledSweep, FanoutError] = {}
        for timed in self.schedules:
            try:
                with BARRIER:
                    last_fire(timed.schedule, timed.zone, now)
                    timed.next_start(now)
            except FanoutError as error:
                failed[timed] = error
        if not failed:
            return self
        messages = (f"PromotionPolicy {timed.key}: {error}" for timed, error in failed.items())
        return replace(
            self,
            schedules=tuple(timed for timed in self.schedules if timed not in failed),
            failures=(*self.failures, *messages),
        )


def build_timetable(declared: DeclaredObjects, namespace: str = "") -> SweepTimetable:
    """Build the timetable of one namespace, or of all.

    Fail closed: an unusable PromotionPolicy or an unreadable file may have had a schedule,
    so everything it could have named waits for a sweep.
    """
    promotions = [it for it in declared.promotions if namespace in ("", it.metadata.namespace)]
    results = {_subject(it): run_isolated(partial(_schedule_of, it, declared)) for it in promotions}
    failed = {it: error for it, error in results.items() if isinstance(error, FanoutError)}
    all_subjects = list_subjects(declared, namespace)
    broken = {
        PassSubject(key.namespace, key.name)
        for key in declared.left_out
        if key.may_be(PromotionPolicy)
    }
    # A PromotionPolicy restricts its own namespace; an unreadable file may be in any.
    unsafe_namespaces = {it.namespace for it in failed}
    unsafe_namespaces |= {
        namespace
        for namespace in {it.namespace for it in all_subjects}
        if any(declared.find_unusable_own(PromotionPolicy, namespace))
    }
    possibly_bound = {it for it in all_subjects if it.namespace in unsafe_namespaces}
    incomplete = (*declared.unread, *declared.unusable)
    schedules = tuple(it for it in results.values() if isinstance(it, ScheduledSweep))
    return SweepTimetable(
        all_subjects=all_subjects,
        sweep_only=frozenset(possibly_bound).union(*(it.subjects for it in schedules)),
        schedules=schedules,
        promotion_policies=frozenset(f"{it.namespace}/{it.name}" for it in (*results, *broken)),
        complete=not any(it.kind in (None, own_kind(PromotionPolicy)) for it in incomplete),
        failures=tuple(
            f"PromotionPolicy {it.namespace}/{it.name}: {error}" for it, error in failed.items()
        ),
    )


def build_mode(
    evaluated: frozenset[PassSubject],
    swept: frozenset[PassSubject],
    table: SweepTimetable,
    namespace: str = "",
    *,
    listing_age: float = 0.0,
    draft_limit: DraftLimit | None = None,
) -> PassMode:
    """Build the mode of one pass over `evaluated`, which is a sweep for those in `swept`."""
    return PassMode(
        listing_age=listing_age,
        draft_limit=draft_limit,
        sweep=bool(swept),
        namespace=namespace,
        subjects=None if evaluated == table.all_subjects else evaluated,
        unswept_subjects=evaluated - swept if swept else frozenset(),
    )


def find_obsolete(
    recorded: Mapping[str, LoggedSweep], known_policies: Iterable[str], table: SweepTimetable
) -> set[str]:
    """Return the logged PromotionPolicies that are no longer declared, none if that is unclear."""
    obsolete = set(recorded).intersection(known_policies) - table.promotion_policies
    return obsolete if table.complete else set()


def _schedule_of(promotion: PromotionPolicy, declared: DeclaredObjects) -> ScheduledSweep | None:
    """Return the schedule of a PromotionPolicy; None if it has none."""
    if promotion.spec.schedule is None:
        return None
    deadline, space = promotion.spec.starting_deadline_seconds, promotion.metadata.namespace
    # The policies and variants that it names, in its own namespace.
    names = {it.metadata.name for it in declared.policies if governing_promotions(it, [promotion])}
    names |= {
        it.metadata.name
        for it in declared.variants
        if it.metadata.namespace == space and it.metadata.name in promotion.spec.variants
    }
    return ScheduledSweep(
        _subject(promotion),
        schedule=parse_schedule(promotion.spec.schedule),
        zone=parse_zone(promotion.spec.time_zone or UTC_NAME),
        deadline=None if deadline is None else timedelta(seconds=deadline),
        subjects=frozenset(PassSubject(space, name) for name in names),
        jitter=promotion.spec.jitter or timedelta(0),
    )


def _subject(promotion: PromotionPolicy) -> PassSubject:
    return PassSubject(promotion.metadata.namespace, promotion.metadata.name)


_log = structlog.get_logger()


class SweepState:
    """Instants up to which each schedule is swept. Not thread-safe."""

    def __init__(self, log: SweepLog) -> None:
        self._sweep_log = log
        self._entries: dict[str, LoggedSweep] | None = None
        self._known_policies: set[str] = set()  # PromotionPolicies seen by this process
        self._unwritten: dict[str, LoggedSweep | None] = {}
        self._reported_too_late: dict[str, datetime] = {}  # the last one by schedule
        self._last_problem = ""  # last logged error of a write

    def find_due(self, table: SweepTimetable, now: datetime) -> dict[ScheduledSweep, datetime]:
        """Return the sweeps due now with their instants. Raises Unavailable, Denied."""
        if not table.schedules and self._entries is None:
            return {}
        if self._entries is None:
            try:
                self._entries = dict(self._sweep_log.read())
            except InvalidInput as error:
                _log.warning("The times of earlier sweeps cannot be read", problem=str(error))
                self._entries = {}
        entries = self._entries
        for key in find_obsolete(entries, self._known_policies, table):
            del entries[key]
            self._unwritten[key] = None
        for schedule in table.schedules:
            # Logged as swept now: without a first entry nothing could ever count as missed.
            if not schedule.is_logged(entries.get(schedule.key), now):
                self._put(schedule, now)
        self._known_policies |= table.promotion_policies
        self._write(now)
        sweeps: dict[ScheduledSweep, datetime] = {}
        for schedule in table.schedules:
            if (instant := schedule.find_missed(entries[schedule.key], now)) is None:
                continue
            if not schedule.is_too_late(instant, now):
                sweeps[schedule] = instant
            elif self._reported_too_late.get(schedule.key) != instant:
                self._reported_too_late[schedule.key] = instant
                _log.warning(
                    "A sweep was missed and its starting deadline is over",
                    promotion_policy=schedule.key,
                    scheduled=instant.isoformat(),
                )
        return sweeps

    def mark_done(self, sweeps: Mapping[ScheduledSweep, datetime], now: datetime) -> None:
        """Log sweeps as done. A failure to write is logged; the next write includes them."""
        for schedule, instant in sweeps.items():
            self._put(schedule, instant)
        self._write(now)

    def _put(self, schedule: ScheduledSweep, instant: datetime) -> None:
        assert self._entries is not None, "read before anything is due"
        self._entries[schedule.key] = self._unwritten[schedule.key] = schedule.log_entry(instant)

    def _write(self, now: datetime) -> None:
        if not self._unwritten:
            return
        try:
            self._sweep_log.write(self._unwritten, now)
        except FanoutError as error:
            if self._last_problem != str(error):  # logged once, not in every pass
                _log.warning(
                    "The time of a sweep cannot be recorded",
                    reason=error.reason,
                    problem=str(error),
                )
            self._last_problem = str(error)
            return
        if self._last_problem:
            _log.info("The times of sweeps are recorded again")
        self._last_problem = ""
        self._unwritten.clear()
