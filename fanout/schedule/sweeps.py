"""Who is swept when: pure, from the PromotionPolicies, what is on record, and an instant.

With a schedule, automation publishes only in the sweeps that it or a person starts; without one,
whenever a gate opens. A sweep that was missed is made up once. (Design §7.) With `jitter` a sweep
starts later than its schedule says, by a time that is spread over all PromotionPolicies but always
the same for one sweep, so that a restart changes nothing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from zoneinfo import ZoneInfo

from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.fires import last_fire, next_fire
from fanout.calendar.schedule import Schedule, parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.cluster.declared import Declared
from fanout.cluster.sweep_log import Swept
from fanout.errors import FanoutError
from fanout.plan.rules import administrators
from fanout.reconcile.passes import Mode, Subject
from fanout.telemetry.barrier import run_contained
from fanout.values import frozen, replace

UTC_NAME = "UTC"
_MOMENT = timedelta(seconds=1)


@frozen
class Timed:
    """A PromotionPolicy with a schedule that is understood, and whom it names."""

    namespace: str
    name: str
    schedule: Schedule
    zone: ZoneInfo
    deadline: timedelta | None
    names: frozenset[Subject]
    jitter: timedelta = timedelta(0)

    @property
    def key(self) -> str:
        """Its name in the log of sweeps."""
        return f"{self.namespace}/{self.name}"

    def swept(self, at: datetime) -> Swept:
        """What is to be on record once the sweeps up to an instant are done."""
        return Swept(at, self.schedule.text, self.zone.key)

    def knows(self, swept: Swept | None, now: datetime) -> bool:
        """Is what is on record about this schedule? A new or changed one has missed nothing."""
        return swept is not None and swept.tells_of(self.schedule.text, self.zone.key, now)

    def missed(self, swept: Swept, now: datetime) -> datetime | None:
        """The latest scheduled instant whose sweep was to start up to now and is not on record; the
        others before it are not made up."""
        last = last_fire(self.schedule, self.zone, now)
        if last is not None and self.start(last) > now:
            last = last_fire(self.schedule, self.zone, last - _MOMENT)
        return last if last is not None and last > swept.at else None

    def too_late(self, at: datetime, now: datetime) -> bool:
        """Is it later than `startingDeadlineSeconds` allows, jitter aside, as in a CronJob?"""
        return self.deadline is not None and now - self.start(at) > self.deadline

    def next(self, now: datetime) -> datetime:
        """The next instant after now at which a sweep is to start."""
        last = last_fire(self.schedule, self.zone, now) if self.jitter else None
        if last is not None and self.start(last) > now:
            return self.start(last)
        return self.start(next_fire(self.schedule, self.zone, now))

    def start(self, at: datetime) -> datetime:
        """When the sweep of a scheduled instant starts: up to `jitter` later, on a whole second,
        but before the next scheduled instant, so that sweeps stay in their order.
        """
        if not self.jitter:
            return at
        room = min(self.jitter, next_fire(self.schedule, self.zone, at) - at - _MOMENT)
        seconds = int(room.total_seconds())
        told = sha256(f"{self.key} {at.isoformat()}".encode()).digest()
        return at + timedelta(seconds=int.from_bytes(told) % (seconds + 1))


@frozen
class Timetable:
    """What the declared objects say about sweeps."""

    everyone: frozenset[Subject] = frozenset()
    bound: frozenset[Subject] = frozenset()  # automation publishes these in sweeps alone
    timed: tuple[Timed, ...] = ()
    kept: frozenset[str] = frozenset()  # PromotionPolicies that are there, usable or not
    complete: bool = True  # False: a file is unreadable, so there may be more of everything
    failures: tuple[str, ...] = ()  # PromotionPolicies of which fanout itself made nothing

    def usable(self, now: datetime) -> "Timetable":
        """The timetable without the schedules whose instants cannot be worked out.

        Fail closed: whoever such a schedule binds is still published in sweeps alone.
        """
        found = {timed: run_contained(partial(_instants, timed, now)) for timed in self.timed}
        failed = {timed: it for timed, it in found.items() if isinstance(it, FanoutError)}
        if not failed:
            return self
        told = (f"PromotionPolicy {timed.key}: {error}" for timed, error in failed.items())
        return replace(
            self,
            timed=tuple(timed for timed in self.timed if timed not in failed),
            failures=(*self.failures, *told),
        )


def timetable(declared: Declared, namespace: str = "") -> Timetable:
    """The timetable of one namespace, or of all.

    Fail closed: where a PromotionPolicy is declared that cannot be used, or a file cannot be read,
    there may have been a schedule; so whoever it could have named waits for a sweep.
    """
    promotions = [it for it in declared.promotions if namespace in ("", it.metadata.namespace)]
    made = {_subject(it): run_contained(partial(_made, it, declared)) for it in promotions}
    failed = {it: error for it, error in made.items() if isinstance(error, FanoutError)}
    everyone = frozenset(
        Subject(item.metadata.namespace, item.metadata.name)
        for item in (*declared.policies, *declared.variants)
        if namespace in ("", item.metadata.namespace)
    )
    broken = {key for key in declared.left_out if key.kind == "PromotionPolicy"}
    closed = {key.namespace for key in broken} | {one.namespace for one in failed}
    unknown = {who for who in everyone if declared.unread or who.namespace in closed}
    timed = tuple(it for it in made.values() if isinstance(it, Timed))
    return Timetable(
        everyone=everyone,
        bound=frozenset(unknown).union(*(one.names for one in timed)),
        timed=timed,
        kept=frozenset(
            f"{namespace}/{name}"
            for namespace, name in (*made, *((key.namespace, key.name) for key in broken))
        ),
        complete=not declared.unread,
        failures=tuple(
            f"PromotionPolicy {one.namespace}/{one.name}: {error}" for one, error in failed.items()
        ),
    )


def mode_of(
    judged: frozenset[Subject], swept: frozenset[Subject], table: Timetable, namespace: str = ""
) -> Mode:
    """The one pass over all who are to be judged; it is a sweep for those who are swept."""
    return Mode(
        sweep=bool(swept),
        namespace=namespace,
        whom=None if judged == table.everyone else judged,
        unswept=judged - swept if swept else frozenset(),
    )


def forgotten(recorded: Mapping[str, Swept], seen: Iterable[str], table: Timetable) -> set[str]:
    """PromotionPolicies that were seen and are there no more; what they swept is of no use."""
    return set(recorded).intersection(seen) - table.kept if table.complete else set()


def _made(promotion: PromotionPolicy, declared: Declared) -> Timed | None:
    """What becomes of a PromotionPolicy; None where it has no schedule."""
    if promotion.spec.schedule is None:
        return None
    return _timed(promotion, promotion.spec.schedule, _named(promotion, declared))


def _instants(timed: Timed, now: datetime) -> tuple[datetime | None, datetime]:
    """The instants around now that a round asks for."""
    return last_fire(timed.schedule, timed.zone, now), timed.next(now)


def _timed(promotion: PromotionPolicy, schedule: str, names: frozenset[Subject]) -> Timed:
    deadline = promotion.spec.starting_deadline_seconds
    return Timed(
        *_subject(promotion),
        schedule=parse_schedule(schedule),
        zone=parse_zone(promotion.spec.time_zone or UTC_NAME),
        deadline=None if deadline is None else timedelta(seconds=deadline),
        names=names,
        jitter=promotion.spec.jitter or timedelta(0),
    )


def _named(promotion: PromotionPolicy, declared: Declared) -> frozenset[Subject]:
    """Whom a PromotionPolicy names, in its own namespace."""
    space = promotion.metadata.namespace
    policies = {
        policy.metadata.name for policy in declared.policies if administrators(policy, [promotion])
    }
    written = {
        variant.metadata.name
        for variant in declared.variants
        if variant.metadata.namespace == space and variant.metadata.name in promotion.spec.variants
    }
    return frozenset(Subject(space, name) for name in policies | written)


def _subject(promotion: PromotionPolicy) -> Subject:
    return Subject(promotion.metadata.namespace, promotion.metadata.name)
