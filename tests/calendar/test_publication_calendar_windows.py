"""What is in a window: its edges where clocks change, and what is no window."""

from datetime import timedelta

import pytest
from timing import covers, utc, window

from fanout.api.durations import format_duration
from fanout.calendar.publication_calendar import PublicationCalendar, compute_window_state
from fanout.errors import InvalidInput

SECOND = timedelta(seconds=1)

EDGES = [
    # sentence, window, in it at, its end (UTC)
    (
        "Oslo, spring: eight hours are eight hours",
        "0 0 * * 0 for 8h Europe/Oslo", "2025-03-30T03:00", "2025-03-30T07:00",
    ),
    (
        "Oslo, spring: until eight is seven hours",
        "0 0 * * 0 until 0 8 * * 0 Europe/Oslo", "2025-03-30T03:00", "2025-03-30T06:00",
    ),
    (
        "Oslo, autumn: eight hours are eight hours",
        "0 0 * * 0 for 8h Europe/Oslo", "2025-10-26T03:00", "2025-10-26T06:00",
    ),
    (
        "Oslo, autumn: until eight is nine hours",
        "0 0 * * 0 until 0 8 * * 0 Europe/Oslo", "2025-10-26T03:00", "2025-10-26T07:00",
    ),
    (
        "Oslo, spring: a beginning that is skipped is the gap's end",
        "30 2 * * * for 1h Europe/Oslo", "2025-03-30T01:00", "2025-03-30T02:00",
    ),
    (
        "Oslo, spring: an end that is skipped is the gap's end",
        "30 1 * * * until 30 2 * * * Europe/Oslo", "2025-03-30T00:30", "2025-03-30T01:00",
    ),
    (
        "Oslo, spring: from within the gap to after it",
        "15 2 * * * until 15 3 * * * Europe/Oslo", "2025-03-30T01:00", "2025-03-30T01:15",
    ),
    (
        "Oslo, autumn: it ends the first time that clocks show the end",
        "0 1 * * * until 30 2 * * * Europe/Oslo", "2025-10-25T23:30", "2025-10-26T00:30",
    ),
    (
        "Oslo, autumn: it begins the first time, and goes through both hours",
        "30 2 * * * until 30 3 * * * Europe/Oslo", "2025-10-26T01:45", "2025-10-26T02:30",
    ),
    (
        "Oslo, autumn: days of 24 hours leave an hour out",
        "0 0 * * * for 24h Europe/Oslo", "2025-10-26T21:30", "2025-10-26T22:00",
    ),
    (
        "New York, spring: eight hours",
        "0 22 * * 6 for 8h America/New_York", "2025-03-09T06:00", "2025-03-09T11:00",
    ),
    (
        "New York, spring: until six",
        "0 22 * * 6 until 0 6 * * 0 America/New_York", "2025-03-09T06:00", "2025-03-09T10:00",
    ),
    (
        "New York, autumn: eight hours",
        "0 22 * * 6 for 8h America/New_York", "2025-11-02T06:00", "2025-11-02T10:00",
    ),
    (
        "New York, autumn: until six",
        "0 22 * * 6 until 0 6 * * 0 America/New_York", "2025-11-02T06:00", "2025-11-02T11:00",
    ),
    (
        "Lord Howe, spring: half an hour is skipped",
        "0 1 * * * until 0 3 * * * Australia/Lord_Howe", "2025-10-04T15:00", "2025-10-04T16:00",
    ),
    (
        "Lord Howe, spring: two hours",
        "0 1 * * * for 2h Australia/Lord_Howe", "2025-10-04T15:00", "2025-10-04T16:30",
    ),
    (
        "Lord Howe, autumn: half an hour comes twice",
        "0 1 * * * until 0 3 * * * Australia/Lord_Howe", "2025-04-05T15:00", "2025-04-05T16:30",
    ),
    (
        "Lord Howe, autumn: two hours",
        "0 1 * * * for 2h Australia/Lord_Howe", "2025-04-05T15:00", "2025-04-05T16:00",
    ),
    (
        "Sao Paulo: a midnight that is skipped, the day begins at one",
        "0 0 * * * until 0 8 * * * America/Sao_Paulo", "2018-11-04T03:00", "2018-11-04T10:00",
    ),
    (
        "Sao Paulo: a midnight that is skipped ends the evening at one",
        "0 18 * * * until 0 0 * * * America/Sao_Paulo", "2018-11-04T02:59", "2018-11-04T03:00",
    ),
    (
        "Sao Paulo: the hour before midnight comes twice",
        "0 23 * * 6 until 0 0 * * 0 America/Sao_Paulo", "2018-02-18T02:30", "2018-02-18T03:00",
    ),
    (
        "Sao Paulo: an evening hour",
        "0 23 * * 6 for 1h America/Sao_Paulo", "2018-02-18T01:30", "2018-02-18T02:00",
    ),
    (
        "Apia: what began before a day that was skipped lasts its hours",
        "0 12 29 12 * for 24h Pacific/Apia", "2011-12-30T10:00", "2011-12-30T22:00",
    ),
    (
        "Apia: it ends when the skipped day would have",
        "0 12 29 12 * until 0 8 30 12 * Pacific/Apia", "2011-12-30T09:00", "2011-12-30T10:00",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("_", "text", "inside", "end"), EDGES, ids=[row[0] for row in EDGES])
def test_a_window_ends_when_clocks_change(_, text, inside, end):
    period = window(text)
    assert covers(period, utc(inside))
    assert covers(period, utc(end) - SECOND)
    assert not covers(period, utc(end))
    span = period.find_span(int(utc(inside).timestamp()))
    assert span
    assert span.end == utc(end).timestamp()


@pytest.mark.parametrize("zone", ["UTC", "Asia/Beirut"])
def test_the_last_second_before_midnight_knows_its_end(zone):
    """In Beirut clocks skip the midnight that began 30 March 2025."""
    evening = window(f"59 18 * * * until 0 0 * * * {zone}")
    end = {"UTC": utc("2025-03-30T00:00"), "Asia/Beirut": utc("2025-03-29T22:00")}[zone]
    span = evening.find_span(int(end.timestamp()) - 1)
    assert span
    assert span.end == end.timestamp()


def test_a_window_inside_skipped_hours_does_not_open_that_day():
    skipped = window("15 2 * * * until 45 2 * * * Europe/Oslo")
    assert not covers(skipped, utc("2025-03-30T01:00"))
    assert not covers(skipped, utc("2025-03-30T12:00")), "nor does it wait for the end of tomorrow"
    state = compute_window_state(
        [PublicationCalendar("p", deny=(skipped,))], utc("2025-03-29T01:45")
    )
    assert (state.open, state.until) == (True, utc("2025-03-31T00:15"))


def test_a_window_that_begins_again_within_the_gap_lasts_to_the_next_end():
    twice = window("15,50 2 * * * until 45 2 * * * Europe/Oslo")
    assert covers(twice, utc("2025-03-30T12:00")), "as it does from 2:50 on all other days"


# ---- what is one, and what is none --------------------------------------------------------------


def test_equal_windows_are_one():
    assert window("0 8 * * * for 8h UTC") is window("0 8 * * * for 8h UTC")
    assert window("0 8 * * * for 8h UTC") is not window("0 8 * * * for 9h UTC")


NEVER = "schedule '0 0 31 2 *': it never fires: none of its months has that day; "
BAD = [
    ("no time", "0 8 * * * for 0s UTC", "the duration is zero; write one like 8h"),
    (
        "over a year", "0 8 * * * for 8784h1s UTC",
        "8784h1s is longer than 366 days; write at most 8784h",
    ),
    (
        "ends when it begins", "0 8 * * mon until 0 8 * * 1 UTC",
        "its start and its end have the same schedule; write another end",
    ),
    (
        "no end in most years", "0 0 1 3 * until 0 0 29 2 * UTC",
        "the window that starts on 2000-03-01 lasts longer than 366 days; let it end within a year",
    ),
    ("31 February", "0 0 31 2 * for 1h UTC", f"{NEVER}change day-of-month or month"),
    (
        "until 31 February", "0 0 1 2 * until 0 0 31 2 * UTC",
        f"{NEVER}change day-of-month or month",
    ),
    (
        "no such zone", "0 8 * * * for 8h Europe/Olso",
        "there is no time zone 'Europe/Olso'; did you mean 'Europe/Oslo'?",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("_", "text", "message"), BAD, ids=[row[0] for row in BAD])
def test_a_malformed_window_is_refused(_, text, message):
    with pytest.raises(InvalidInput) as refused:
        window(text)
    assert str(refused.value) == message


def test_a_leap_day_may_begin_and_end_a_window_that_is_short():
    assert covers(window("0 0 29 2 * until 0 0 1 3 * UTC"), utc("2028-02-29T12:00"))


def test_the_longest_window_is_366_days():
    year = window(f"0 0 1 1 * for {format_duration(timedelta(days=366))} UTC")
    assert covers(year, utc("2028-12-31T23:59"))
