"""Times in a language of their own: cron lines, zones and windows of a PromotionPolicy.

A scenario may state the same. One that is not understood makes the object unusable like any other
fault: who cannot say when an administrator wanted sweeps or publications must not sweep or publish.
(Design §7.)
"""

from collections.abc import Callable, Iterator

from fanout.api.faults import Fault, Path
from fanout.api.meta import KRMObject
from fanout.api.promotion_policy import Period, PromotionPolicy, PromotionPolicySpec
from fanout.api.scenario import Scenario
from fanout.calendar.periods import check_duration, check_until
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.errors import InvalidInput


def time_faults(item: KRMObject | None) -> Iterator[Fault]:
    """A fault for each time that cannot be read; of other objects there is none."""
    if isinstance(item, PromotionPolicy):
        yield from _promotion_faults(item.spec, ("spec",))
    if isinstance(item, Scenario) and item.spec.promotion is not None:
        yield from _promotion_faults(item.spec.promotion, ("spec", "promotion"))


def _promotion_faults(spec: PromotionPolicySpec, at: Path) -> Iterator[Fault]:
    yield from _unread(spec.schedule, (*at, "schedule"), parse_schedule)
    yield from _unread(spec.time_zone, (*at, "timeZone"), parse_zone)
    for index, window in enumerate(spec.windows):
        for name, period in (("allow", window.allow), ("deny", window.deny)):
            if period is not None:
                yield from _period_faults(period, (*at, "windows", index, name))


def _period_faults(period: Period, path: Path) -> Iterator[Fault]:
    faults = [
        *_unread(period.schedule, (*path, "schedule"), parse_schedule),
        *_unread(period.until, (*path, "until"), parse_schedule),
        *_unread(period.time_zone, (*path, "timeZone"), parse_zone),
    ]
    yield from faults
    try:
        if period.until is None:
            check_duration(period.duration)
        elif not faults:
            check_until(parse_schedule(period.schedule), parse_schedule(period.until))
    except InvalidInput as error:
        field = "duration" if period.until is None else "until"
        yield Fault((*path, field), error.problem, error.remedy)


def _unread(text: str | None, path: Path, parse: Callable[[str], object]) -> Iterator[Fault]:
    try:
        if text:
            parse(text)
    except InvalidInput as error:
        yield Fault(path, error.problem, error.remedy)
