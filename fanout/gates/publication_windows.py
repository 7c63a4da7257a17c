"""Publication windows of a policy, by all PromotionPolicies that name it.

Releases and publications wait for the window to open, those of people too. Where every closed
calendar says `atClose: Finish`, a rollout that has begun goes on to its end
(docs/concepts/windows.md).
"""

from datetime import datetime

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.calendar.publication_calendar import PublicationCalendar, compute_window_state, is_open
from fanout.gates import gate_wording


class PublicationWindows:
    """State of the windows of one policy at the instant of the pass. `edge` is when it changes."""

    def __init__(
        self,
        calendars: tuple[PublicationCalendar, ...],
        now: datetime,
        *,
        finishing_calendars: frozenset[str] = frozenset(),
        has_unreadable_calendar: bool = False,
    ) -> None:
        """Evaluate the calendars at `now`; an unreadable one counts as closed.

        `finishing_calendars` are names of calendars that let a begun rollout finish.
        """
        self.edge: datetime | None = None  # when they open or close
        # Why nothing may be published now, by a rollout that has not begun or has.
        self.closed: Hold | None = None
        self.closed_for_begun: Hold | None = None
        if has_unreadable_calendar:
            self.closed = self.closed_for_begun = _UNREADABLE_HOLD
            return
        if not calendars:
            return
        window_state = compute_window_state(calendars, now)
        self.edge = window_state.until
        if window_state.open:
            return
        until, sentence = window_state.until, window_state.message
        if until is None:
            sentence = f"{sentence}; it does not open again"
        self.closed = Hold(Reason.WINDOW_CLOSED, sentence, gate_wording.WINDOW_ACTOR, until=until)
        # Calendars with `atClose: Finish` do not bind a rollout that has begun; all others still
        # do.
        strict = tuple(it for it in calendars if it.name not in finishing_calendars)
        if not strict or is_open(strict, now):
            return
        self.closed_for_begun = self.closed


_UNREADABLE_HOLD = Hold(
    Reason.WINDOW_CLOSED,
    "a PromotionPolicy of its namespace cannot be read and may deny publication now",
    gate_wording.UNREADABLE_WINDOW_ACTOR,
)
