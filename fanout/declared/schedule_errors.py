"""Errors in the times of PromotionPolicies and scenarios: cron lines, zones, windows.

An object with an invalid time is unusable like after any other error, because without knowing when
an administrator allows sweeps or publications none must happen.
"""

from collections.abc import Callable, Iterator

from fanout.api.field_errors import FieldError, FieldPath
from fanout.api.object_meta import KRMObject
from fanout.api.promotion_policy import PromotionPolicy, PromotionPolicySpec
from fanout.api.scenario import Scenario
from fanout.calendar.cron_schedule import parse_schedule
from fanout.calendar.publication_calendar import check_duration, check_until
from fanout.calendar.time_zone import parse_zone
from fanout.errors import InvalidInput


def find_schedule_errors(item: KRMObject | None) -> Iterator[FieldError]:
    """Yield an error for each invalid cron line, zone or duration of an object."""
    if isinstance(item, PromotionPolicy):
        spec: PromotionPolicySpec = item.spec
        path: FieldPath = ("spec",)
    elif isinstance(item, Scenario) and item.spec.promotion is not None:
        spec, path = item.spec.promotion, ("spec", "promotion")
    else:
        return
    yield from _parse_errors(spec.schedule, (*path, "schedule"), parse_schedule)
    yield from _parse_errors(spec.time_zone, (*path, "timeZone"), parse_zone)
    for index, window in enumerate(spec.windows):
        for name, period in (("allow", window.allow), ("deny", window.deny)):
            if period is None:
                continue
            period_path: FieldPath = (*path, "windows", index, name)
            errors = [
                *_parse_errors(period.schedule, (*period_path, "schedule"), parse_schedule),
                *_parse_errors(period.until, (*period_path, "until"), parse_schedule),
                *_parse_errors(period.time_zone, (*period_path, "timeZone"), parse_zone),
            ]
            yield from errors
            try:
                if period.until is None:
                    check_duration(period.duration)
                elif not errors:
                    check_until(parse_schedule(period.schedule), parse_schedule(period.until))
            except InvalidInput as error:
                field = "duration" if period.until is None else "until"
                yield FieldError((*period_path, field), error.problem, error.remedy)


def _parse_errors(
    text: str | None, path: FieldPath, parse: Callable[[str], object]
) -> Iterator[FieldError]:
    try:
        if text:
            parse(text)
    except InvalidInput as error:
        yield FieldError(path, error.problem, error.remedy)
