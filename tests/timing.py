"""Instants and windows as tests write them."""

from datetime import UTC, datetime

from fanout.api.durations import parse_duration
from fanout.calendar.publication_calendar import PublicationCalendar, RecurringWindow, build_window


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def window(text: str) -> RecurringWindow:
    """`0 8 * * 1-5 for 8h Europe/Oslo`, or `until 0 16 * * 1-5`."""
    line, zone = text.rsplit(" ", 1)
    schedule, word, lasts = (
        line.partition(" for ") if " for " in line else line.partition(" until ")
    )
    if word == " for ":
        return build_window(schedule, zone, duration=parse_duration(lasts))
    return build_window(schedule, zone, until=lasts)


def calendar(*windows: str, name: str = "production") -> PublicationCalendar:
    """`allow 0 8 * * * for 8h UTC` and `deny ...`, in one PromotionPolicy."""
    allow = tuple(window(text[6:]) for text in windows if text.startswith("allow "))
    deny = tuple(window(text[5:]) for text in windows if text.startswith("deny "))
    assert len(allow) + len(deny) == len(windows)
    return PublicationCalendar(name, allow, deny)


def covers(period: RecurringWindow, at: datetime) -> bool:
    """Return whether the instant is in the window."""
    span = period.find_span(int(at.timestamp()))
    return span is not None and span.start <= at.timestamp()
