"""Schedules of sweeps: pure, from PromotionPolicies, the sweep log and an instant.

With a schedule, automation publishes only in the sweeps that it or a person starts;
without one, whenever a gate opens. A missed sweep is made up once (design §7). With
`jitter` a sweep starts after its scheduled instant, by a time that is spread over all
PromotionPolicies but fixed for each sweep, so that a restart changes nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from zoneinfo import ZoneInfo

from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.cron_schedule import CronSchedule, parse_schedule
from fanout.calendar.cron_times import last_fire, next_fire
from fanout.calendar.time_zone import parse_zone
from fanout.cluster.declared_objects import DeclaredObjects
from fanout.cluster.sweep_log import LoggedSweep
from fanout.errors import FanoutError
from fanout.plan.gate_inputs.stage_rule_builder import governing_promotions
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import frozen, replace

UTC_NAME = "UTC"
_ONE_SECOND = timedelta(seconds=1)


@frozen
class ScheduledSweep:
    """A PromotionPolicy with a valid schedule, and the policies and variants it names."""

    namespace: str
    name: str
    schedule: CronSchedule
    zone: ZoneInfo
    deadline: timedelta | None
    subjects: frozenset[PassSubject]
    jitter: timedelta = timedelta(0)

    @property
    def key(self) -> str:
        """Name of the PromotionPolicy in the sweep log."""
        return f"{self.namespace}/{self.name}"

    def log_entry(self, at: datetime) -> LoggedSweep:
        """Build the sweep log entry for sweeps done up to an instant."""
        return LoggedSweep(at, self.schedule.text, self.zone.key)

    def is_logged(self, entry: LoggedSweep | None, now: datetime) -> bool:
        """Return whether the entry is of this schedule.

        A new or changed one has missed nothing.
        """
        return entry is not None and entry.applies_to(self.schedule.text, self.zone.key, now)

    def find_missed(self, entry: LoggedSweep, now: datetime) -> datetime | None:
        """Return the latest scheduled instant whose sweep is due and not logged, or None.

        Earlier missed instants are not made up.
        """
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


@frozen
class SweepTimetable:
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
        results = {
            timed: run_isolated(partial(_surrounding_instants, timed, now))
            for timed in self.schedules
        }
        failed = {timed: it for timed, it in results.items() if isinstance(it, FanoutError)}
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
    all_subjects = frozenset(
        PassSubject(item.metadata.namespace, item.metadata.name)
        for item in (*declared.policies, *declared.variants)
        if namespace in ("", item.metadata.namespace)
    )
    broken = {key for key in declared.left_out if key.kind == "PromotionPolicy"}
    unsafe_namespaces = {key.namespace for key in broken} | {
        promotion_policy.namespace for promotion_policy in failed
    }
    # A PromotionPolicy restricts its own namespace; an unreadable file may be in any.
    possibly_bound = {
        subject
        for subject in all_subjects
        if declared.unread or subject.namespace in unsafe_namespaces
    }
    schedules = tuple(it for it in results.values() if isinstance(it, ScheduledSweep))
    return SweepTimetable(
        all_subjects=all_subjects,
        sweep_only=frozenset(possibly_bound).union(*(it.subjects for it in schedules)),
        schedules=schedules,
        promotion_policies=frozenset(
            f"{namespace}/{name}"
            for namespace, name in (*results, *((key.namespace, key.name) for key in broken))
        ),
        complete=not declared.unread,
        failures=tuple(
            f"PromotionPolicy {promotion_policy.namespace}/{promotion_policy.name}: {error}"
            for promotion_policy, error in failed.items()
        ),
    )


def build_mode(
    evaluated: frozenset[PassSubject],
    swept: frozenset[PassSubject],
    table: SweepTimetable,
    namespace: str = "",
) -> PassMode:
    """Build the mode of one pass over `evaluated`, which is a sweep for those in `swept`."""
    return PassMode(
        sweep=bool(swept),
        namespace=namespace,
        subjects=None if evaluated == table.all_subjects else evaluated,
        unswept_subjects=evaluated - swept if swept else frozenset(),
    )


def find_obsolete(
    recorded: Mapping[str, LoggedSweep], known_policies: Iterable[str], table: SweepTimetable
) -> set[str]:
    """Return the logged PromotionPolicies that existed and are no longer declared.

    None if the timetable is incomplete: an unreadable file may declare them.
    """
    return (
        set(recorded).intersection(known_policies) - table.promotion_policies
        if table.complete
        else set()
    )


def _schedule_of(promotion: PromotionPolicy, declared: DeclaredObjects) -> ScheduledSweep | None:
    """Return the schedule of a PromotionPolicy; None if it has none."""
    if promotion.spec.schedule is None:
        return None
    return _build_schedule(promotion, promotion.spec.schedule, _named_subjects(promotion, declared))


def _surrounding_instants(timed: ScheduledSweep, now: datetime) -> tuple[datetime | None, datetime]:
    """Compute the instants around `now` that a round needs."""
    return last_fire(timed.schedule, timed.zone, now), timed.next_start(now)


def _build_schedule(
    promotion: PromotionPolicy, schedule: str, names: frozenset[PassSubject]
) -> ScheduledSweep:
    deadline = promotion.spec.starting_deadline_seconds
    return ScheduledSweep(
        *_subject(promotion),
        schedule=parse_schedule(schedule),
        zone=parse_zone(promotion.spec.time_zone or UTC_NAME),
        deadline=None if deadline is None else timedelta(seconds=deadline),
        subjects=names,
        jitter=promotion.spec.jitter or timedelta(0),
    )


def _named_subjects(
    promotion: PromotionPolicy, declared: DeclaredObjects
) -> frozenset[PassSubject]:
    """Return the policies and variants that a PromotionPolicy names, in its own namespace."""
    space = promotion.metadata.namespace
    policies = {
        policy.metadata.name
        for policy in declared.policies
        if governing_promotions(policy, [promotion])
    }
    variant_names = {
        variant.metadata.name
        for variant in declared.variants
        if variant.metadata.namespace == space and variant.metadata.name in promotion.spec.variants
    }
    return frozenset(PassSubject(space, name) for name in policies | variant_names)


def _subject(promotion: PromotionPolicy) -> PassSubject:
    return PassSubject(promotion.metadata.namespace, promotion.metadata.name)
