"""May anything be published at this time? The windows of all PromotionPolicies say so together.

Releases and publications wait for the edge alike, those of people too. Where every calendar that is
closed says `atClose: Finish`, a rollout that has begun goes on to its end. (Design §7.)
"""

from datetime import datetime

from fanout.api.reasons import Reason
from fanout.calendar.windows import opening
from fanout.gates.facts import Hold, PolicyFacts
from fanout.gates.instants import written


class Windows:
    """The windows of one policy at the instant of the pass."""

    def __init__(self, facts: PolicyFacts) -> None:
        self.opens: datetime | None = None  # when more may go
        self.closes: datetime | None = None  # when less may
        self._closed = self._for_all = None
        if facts.unread:
            self._closed = self._for_all = _UNREAD
            return
        if not facts.calendars:
            return
        found = opening(facts.calendars, facts.now)
        if found.open:
            self.closes = found.until
            return
        self.opens = found.until
        self._closed = _hold(found.sentence, found.until)
        strict = tuple(it for it in facts.calendars if it.name not in facts.finishing)
        if not strict or opening(strict, facts.now).open:
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
