"""Times that a PromotionPolicy states in a language of its own: its cron line and its time zone.

One that is not understood makes the object unusable like any other fault: who cannot say when an
administrator wanted sweeps must not sweep. (Design §7.)
"""

from collections.abc import Iterator

from fanout.api.faults import Fault
from fanout.api.meta import KRMObject
from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.zone import parse_zone
from fanout.errors import InvalidInput


def time_faults(item: KRMObject | None) -> Iterator[Fault]:
    """A fault for each time that cannot be read; of other objects there is none."""
    if not isinstance(item, PromotionPolicy):
        return
    spec = item.spec
    for name, text, parse in (
        ("schedule", spec.schedule, parse_schedule),
        ("timeZone", spec.time_zone, parse_zone),
    ):
        try:
            if text:
                parse(text)
        except InvalidInput as error:
            yield Fault(("spec", name), error.problem, error.remedy)
