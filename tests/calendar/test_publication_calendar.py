"""Is publication open, until when, and by which window?"""

from datetime import timedelta

import pytest
from timing import calendar, utc

from fanout.calendar.publication_calendar import (
    PublicationCalendar,
    build_window,
    compute_window_state,
    is_open,
)

MINUTE = timedelta(minutes=1)

OFFICE = "allow 0 8 * * 1-5 until 0 16 * * 1-5 Europe/Oslo"
CHRISTMAS = "deny 0 0 20 12 * for 336h Europe/Oslo"
OPENINGS = [
    # sentence, windows, now (UTC), open?, until (UTC)
    ("without windows it is always open", (), "2026-11-21T09:00", True, None),
    (
        "before the allowed time it is closed",
        (OFFICE,), "2026-11-23T06:59:59", False, "2026-11-23T07:00",
    ),
    ("it opens with the first second", (OFFICE,), "2026-11-23T07:00", True, "2026-11-23T15:00"),
    ("it is open in the last second", (OFFICE,), "2026-11-23T14:59:59", True, "2026-11-23T15:00"),
    (
        "at its end it is closed: half-open",
        (OFFICE,), "2026-11-23T15:00", False, "2026-11-24T07:00",
    ),
    ("after Friday comes Monday", (OFFICE,), "2026-11-20T15:00", False, "2026-11-23T07:00"),
    (
        "with a deny window alone it is open outside of it",
        (CHRISTMAS,), "2026-12-19T22:59:59", True, "2026-12-19T23:00",
    ),
    ("and closed in it", (CHRISTMAS,), "2026-12-19T23:00", False, "2027-01-02T23:00"),
    (
        "deny beats allow: in both it is closed",
        (OFFICE, CHRISTMAS), "2026-12-21T09:00", False, "2027-01-04T07:00",
    ),
    (
        "deny that begins within allow closes there",
        (OFFICE, "deny 0 12 * * * for 1h Europe/Oslo"), "2026-11-23T10:00", True,
        "2026-11-23T11:00",
    ),
    (
        "and opens again when it ends within allow",
        (OFFICE, "deny 0 12 * * * for 1h Europe/Oslo"), "2026-11-23T11:00", False,
        "2026-11-23T12:00",
    ),
    (
        "deny that ends with allow opens at the next allow",
        (OFFICE, "deny 0 12 * * * for 4h Europe/Oslo"), "2026-11-23T11:00", False,
        "2026-11-24T07:00",
    ),
    (
        "of two allow windows one is enough",
        ("allow 0 8 * * * for 2h UTC", "allow 0 9 * * * for 4h UTC"), "2026-11-21T08:30", True,
        "2026-11-21T13:00",
    ),
    (
        "allow windows that touch have no edge between",
        ("allow 0 8 * * * for 1h UTC", "allow 0 9 * * * for 1h UTC"), "2026-11-21T08:30", True,
        "2026-11-21T10:00",
    ),
    (
        "between two allow windows it is closed",
        ("allow 0 8 * * * for 1h UTC", "allow 0 10 * * * for 1h UTC"), "2026-11-21T09:30", False,
        "2026-11-21T10:00",
    ),
    (
        "deny windows that touch have no edge between",
        ("deny 0 8 * * * for 1h UTC", "deny 0 9 * * * for 1h UTC"), "2026-11-21T08:30", False,
        "2026-11-21T10:00",
    ),
    (
        "a deny window within another makes no edge",
        ("deny 0 8 * * * for 8h UTC", "deny 0 9 * * * for 1h UTC"), "2026-11-21T08:30", False,
        "2026-11-21T16:00",
    ),
    (
        "a window goes over midnight",
        ("allow 0 22 * * * for 4h UTC",), "2026-11-22T01:59:59", True, "2026-11-22T02:00",
    ),
    (
        "and so does one with until",
        ("allow 0 22 * * 5 until 0 6 * * 6 UTC",), "2026-11-21T03:00", True, "2026-11-21T06:00",
    ),
    (
        "one window is longer than its interval: it never closes",
        ("allow 0 0 * * * for 25h UTC",), "2026-11-21T03:00", True, None,
    ),
    (
        "days that touch are one week",
        ("deny 0 0 * * 1-5 for 24h UTC",), "2026-11-23T03:00", False, "2026-11-28T00:00",
    ),
    (
        "every minute for a minute is always",
        ("deny * * * * * for 1m UTC",), "2026-11-23T03:00", False, None,
    ),
    (
        "every minute of office hours is the office hours",
        ("allow * 8-15 * * 1-5 for 1m UTC",), "2026-11-23T09:00", True, "2026-11-23T16:00",
    ),
    (
        "two windows that leave no time are for ever",
        ("deny 0 0 * * 1-5 for 24h UTC", "deny 0 0 * * 6,0 for 24h UTC"), "2026-11-21T09:00", False,
        None,
    ),
    (
        "a year that begins anew is for ever",
        ("deny 0 0 1 1 * for 8784h UTC",), "2026-11-21T09:00", False, None,
    ),
    (
        "a year less a day opens once a year",
        ("deny 0 0 1 1 * until 0 0 31 12 * UTC",), "2026-11-21T09:00", False, "2026-12-31T00:00",
    ),
    (
        "a leap day's is open in three years of four",
        ("allow 0 0 29 2 * for 24h UTC",), "2026-11-21T09:00", False, "2028-02-29T00:00",
    ),
    (
        "allowed only in what is denied: never",
        ("allow 0 8 * * * for 8h UTC", "deny 0 8 * * * for 8h UTC"), "2026-11-21T09:00", False,
        None,
    ),
    (
        "the first end counts when several ends follow",
        ("allow 0 8 * * * until 0 12,18 * * * UTC",), "2026-11-21T09:00", True, "2026-11-21T12:00",
    ),
    (
        "a begin at the end goes on",
        ("allow 0 8,12 * * * until 0 12,18 * * * UTC",), "2026-11-21T09:00", True,
        "2026-11-21T18:00",
    ),
    (
        "fractions of a second are within it",
        ("allow 0 8 * * * for 1h UTC",), "2026-11-21T08:59:59.900000", True, "2026-11-21T09:00",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "windows", "now", "is_it", "until"), OPENINGS, ids=[row[0] for row in OPENINGS]
)
def test_opening(_, windows, now, is_it, until):
    state = compute_window_state([calendar(*windows)], utc(now))
    assert (state.open, state.until) == (is_it, until and utc(until))
    assert is_open([calendar(*windows)], utc(now)) is is_it


# ---- several PromotionPolicies -----------------------------------------------------------------


def test_several_calendars_are_open_when_each_of_them_is():
    morning = calendar("allow 0 8 * * * for 4h UTC", name="morning")
    late = calendar("allow 0 10 * * * for 4h UTC", name="late")
    always = calendar(name="always")
    answers = [
        (state.open, state.until and state.until.hour, state.cause and state.cause.calendar)
        for hour in (7, 9, 10, 12, 14)
        for state in [
            compute_window_state([morning, late, always], utc(f"2026-11-21T{hour:02}:30"))
        ]
    ]
    assert answers == [
        (False, 10, "morning"),
        (False, 10, "late"),
        (True, 12, "morning"),
        (False, 10, "morning"),
        (False, 10, "morning"),
    ]


IN_OFFICE = "'0 8 * * 1-5' until '0 16 * * 1-5' in Europe/Oslo"
AT_CHRISTMAS = "'0 0 20 12 *' for 336h in Europe/Oslo"
OUTSIDE = "publication is closed outside of the allowed"
SENTENCES = [
    ("nothing closes it", (), "2026-11-21T09:00", "publication is open"),
    (
        "the allowed time ends", (OFFICE,), "2026-11-23T09:00",
        ("publication is open until an allowed time of PromotionPolicy production ends: "
        f"{IN_OFFICE}"),
    ),
    (
        "a denied time begins", (CHRISTMAS,), "2026-11-23T09:00",
        ("publication is open until a denied time of PromotionPolicy production begins: "
        f"{AT_CHRISTMAS}"),
    ),
    (
        "a denied time", (OFFICE, CHRISTMAS), "2026-12-23T09:00",
        f"publication is closed by a denied time of PromotionPolicy production: {AT_CHRISTMAS}",
    ),
    (
        "outside of the only allowed time", (OFFICE,), "2026-11-21T09:00",
        f"{OUTSIDE} time of PromotionPolicy production: {IN_OFFICE}",
    ),
    (
        "outside of several", (OFFICE, "allow 0 0 * * 0 for 1h30m UTC"), "2026-11-21T09:00",
        f"{OUTSIDE} times of PromotionPolicy production: {IN_OFFICE}, '0 0 * * 0' for 1h30m in UTC",
    ),
    (
        "outside of many", tuple(f"allow 0 {hour} * * 0 for 1h UTC" for hour in range(9)),
        "2026-11-21T09:00",
        (f"{OUTSIDE} times of PromotionPolicy production: "
        "'0 0 * * 0' for 1h in UTC, '0 1 * * 0' for 1h in UTC and 7 more"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "windows", "now", "sentence"), SENTENCES, ids=[row[0] for row in SENTENCES]
)
def test_sentences_say_which_window_it_is(_, windows, now, sentence):
    assert compute_window_state([calendar(*windows)], utc(now)).message == sentence


# ---- many of them ----------------------------------------------------------------------------


def test_ten_thousand_windows():
    """A minute of each month for each: the search for an edge goes through those that touch."""
    minutes = [(n % 60, n // 60 % 24, n // 1440 + 1) for n in range(10_000)]
    many = tuple(
        build_window(f"{m} {h} {day} * *", "UTC", duration=MINUTE) for m, h, day in minutes
    )
    now = utc("2026-11-04T08:50")
    denied, allowed = (
        compute_window_state([PublicationCalendar("p", (), many)], now),
        compute_window_state([PublicationCalendar("p", many)], now),
    )
    assert (denied.open, denied.until) == (False, utc("2026-11-07T22:40"))
    assert (allowed.open, allowed.until) == (True, utc("2026-11-07T22:40"))
