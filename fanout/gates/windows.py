"""May anything be published at this time? The windows of all PromotionPolicies say so together.

Releases and publications wait for the edge alike, those of people too. Where every calendar that is
closed says `atClose: Finish`, a rollout that has begun goes on to its end. (Design §7.)
"""

from datetime import datetime

from fanout.api.reasons import Reason
from fanout.calendar.windows import Calendar, is_open, opening
from fanout.gates.facts import Hold
from fanout.gates.instants import written


class Windows:
    """The windows of one policy at the instant of the pass."""

    def __init__(
        self,
        calendars: tuple[Calendar, ...],
        now: datetime,
        *,
        finishing: frozenset[str] = frozenset(),
        unread: bool = False,
    ) -> None:
        """`finishing` are names of calendars; `unread`: there may be one that could not be read."""
        self.edge: datetime | None = None  # when they open or close
        self._closed = self._for_all = None
        if unread:
            self._closed = self._for_all = _UNREAD
            return
        if not calendars:
            return
        found = opening(calendars, now)
        self.edge = found.until
        if found.open:
            return
        self._closed = _hold(found.sentence, found.until)
        strict = tuple(it for it in calendars if it.name not in finishing)
        if not strict or is_open(strict, now):
            return
        self._for_all = self._closed

    def closed(self, *, begun: bool) -> Hold | None:
        """Why nothing may be published now; `begun`: of a rollout that is under way already."""
        return self._for_all if begun else self._closed


_UNREAD = Hold(
    Reason.WINDOW_CLOSED,
    "a PromotionPolicy of its namespace cannot be read, and it may deny publication now",
    "whoever maintains it (`fanout validate`); whoever may decide: --override window",
)


def _hold(sentence: str, until: datetime | None) -> Hold:
    ends = f"; it opens at {written(until)}" if until is not None else "; it does not open again"
    return Hold(
        Reason.WINDOW_CLOSED,
        f"{sentence}{ends}",
        "time alone; whoever may decide: --override window",
        until=until,
    )
