"""When schedules fire: at the edges of daylight saving, and as if one looked every minute."""

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.calendar.cron_schedule import last_fire, list_fires, next_fire, parse_schedule
from fanout.errors import InvalidInput

MINUTE = timedelta(minutes=1)

EDGES = [
    # sentence, zone, schedule, after (UTC), fires (UTC)
    (
        "Oslo: a skipped 02:30 fires at 03:00 summer time",
        "Europe/Oslo", "30 2 * * *", "2025-03-29T12:00", "2025-03-30T01:00 2025-03-31T00:30",
    ),
    (
        "Oslo: several skipped times make one fire",
        "Europe/Oslo", "10,20,30 2 * * *", "2025-03-29T12:00", "2025-03-30T01:00 2025-03-31T00:10",
    ),
    (
        "Oslo: a skipped time and the gap's end itself make one fire",
        "Europe/Oslo", "0 2,3 * * *", "2025-03-29T12:00", "2025-03-30T01:00 2025-03-31T00:00",
    ),
    (
        "Oslo: a 02:30 that comes twice fires the first time",
        "Europe/Oslo", "30 2 * * *", "2025-10-25T12:00", "2025-10-26T00:30 2025-10-27T01:30",
    ),
    (
        "Oslo: between the two 02:30 the next one is tomorrow's",
        "Europe/Oslo", "30 2 * * *", "2025-10-26T01:10", "2025-10-27T01:30",
    ),
    (
        "Oslo: in the second pass 02:50 has been already",
        "Europe/Oslo", "50 2 * * *", "2025-10-26T01:10", "2025-10-27T01:50",
    ),
    (
        "Oslo: with a star in the minute the hour that comes twice counts twice",
        "Europe/Oslo", "*/30 2 * * *", "2025-10-25T12:00",
        "2025-10-26T00:00 2025-10-26T00:30 2025-10-26T01:00 2025-10-26T01:30 2025-10-27T01:00",
    ),
    (
        "Oslo: with a star in the minute a skipped hour is skipped",
        "Europe/Oslo", "*/30 2 * * *", "2025-03-29T12:00", "2025-03-31T00:00 2025-03-31T00:30",
    ),
    (
        "Oslo: hourly goes on every 60 minutes through the gap",
        "Europe/Oslo", "0 * * * *", "2025-03-29T23:30",
        "2025-03-30T00:00 2025-03-30T01:00 2025-03-30T02:00",
    ),
    (
        "Berlin: hourly goes on every 60 minutes through the overlap",
        "Europe/Berlin", "0 * * * *", "2025-10-25T23:30",
        "2025-10-26T00:00 2025-10-26T01:00 2025-10-26T02:00",
    ),
    (
        "New York: nine o'clock is nine o'clock on either side",
        "America/New_York", "0 9 * * *", "2025-03-08T12:00", "2025-03-08T14:00 2025-03-09T13:00",
    ),
    (
        "New York: a skipped 02:05 fires at 03:00",
        "America/New_York", "5 2 9 3 *", "2025-03-01T00:00", "2025-03-09T07:00",
    ),
    (
        "Lord Howe: half an hour is skipped, 02:15 fires at 02:30",
        "Australia/Lord_Howe", "15 2 * * *", "2025-10-04T00:00",
        "2025-10-04T15:30 2025-10-05T15:15",
    ),
    (
        "Lord Howe: a quarter past by elapsed time, where the clock goes back half an hour",
        "Australia/Lord_Howe", "15 * * * *", "2025-04-05T13:30",
        "2025-04-05T14:15 2025-04-05T15:45 2025-04-05T16:45",
    ),
    (
        "Lord Howe: a quarter to comes twice within the hour and counts twice",
        "Australia/Lord_Howe", "45 * * * *", "2025-04-05T13:50",
        "2025-04-05T14:45 2025-04-05T15:15 2025-04-05T16:15",
    ),
    (
        "Sao Paulo: a midnight that is skipped fires at one o'clock",
        "America/Sao_Paulo", "0 0 * * *", "2018-11-03T12:00", "2018-11-04T03:00 2018-11-05T02:00",
    ),
    (
        "Sao Paulo: the 23:30 that comes twice fires the first time",
        "America/Sao_Paulo", "30 23 * * *", "2018-02-17T12:00", "2018-02-18T01:30 2018-02-19T02:30",
    ),
    (
        "Sao Paulo: by elapsed time the first minute of the skipped midnight's day is 01:00",
        "America/Sao_Paulo", "* * 4 11 *", "2018-11-03T12:00", "2018-11-04T03:00 2018-11-04T03:01",
    ),
    (
        "Kathmandu: the offset of a quarter of an hour",
        "Asia/Kathmandu", "0 9 * * *", "2025-01-01T00:00", "2025-01-01T03:15 2025-01-02T03:15",
    ),
    (
        "Apia: a day that was skipped fires once, at its end",
        "Pacific/Apia", "0 8,9 30 12 *", "2011-12-01T00:00", "2011-12-30T10:00 2012-12-29T18:00",
    ),
    (
        "seconds before the minute do not lose it",
        "Europe/Oslo", "*/5 * * * *", "2025-06-01T11:59:59.500000",
        "2025-06-01T12:00 2025-06-01T12:05",
    ),
    (
        "strictly after: the instant itself does not count",
        "Europe/Oslo", "0 14 * * *", "2025-06-01T12:00", "2025-06-02T12:00",
    ),
]  # fmt: skip


def utc(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("sentence", "zone", "line", "after", "expected"), EDGES, ids=[row[0] for row in EDGES]
)
def test_edges(sentence, zone, line, after, expected):
    instants = [utc(text) for text in expected.split()]
    assert list_fires(parse_schedule(line), ZoneInfo(zone), utc(after), len(instants)) == instants


def test_the_last_fire_may_be_the_instant_itself():
    daily = parse_schedule("0 2 * * *")
    assert last_fire(daily, ZoneInfo("UTC"), utc("2025-01-02T02:00")) == utc("2025-01-02T02:00")
    assert last_fire(daily, ZoneInfo("UTC"), utc("2025-01-02T01:59")) == utc("2025-01-01T02:00")


def test_the_last_fire_of_a_rare_schedule_is_years_ago():
    leap_sunday = parse_schedule("0 0 29 2 */100")  # a star: both fields must fit
    assert last_fire(leap_sunday, ZoneInfo("UTC"), utc("2025-01-01T00:00")) == utc(
        "2004-02-29T00:00"
    )


# ---- the law: it agrees with looking at the clock every minute ---------------------------------

RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
CHANGES = [  # a zone, and an instant near which its clocks jump
    ("Europe/Oslo", "2025-03-30T01:00"),
    ("Europe/Oslo", "2025-10-26T01:00"),
    ("America/New_York", "2025-03-09T07:00"),
    ("America/New_York", "2025-11-02T06:00"),
    ("Australia/Lord_Howe", "2025-10-04T15:30"),
    ("Australia/Lord_Howe", "2025-04-05T15:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("Asia/Kathmandu", "2025-12-31T18:15"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("UTC", "2024-02-29T00:00"),
]


@cache
def numbers(field, low, high):
    """What a field of the subset generated below stands for."""
    values = set()
    for element in field.split(","):
        span, _, step = element.partition("/")
        first, _, last = (f"{low}-{high}" if span == "*" else span).partition("-")
        values |= set(range(int(first), int(last or first) + 1, int(step or 1)))
    return values


def fits(line, wall):
    minute, hour, day, month, weekday = (
        numbers(field, *span) for field, span in zip(line.split(), RANGES, strict=True)
    )
    in_month = wall.day in day
    in_week = wall.isoweekday() in weekday or wall.isoweekday() % 7 in weekday
    fields = line.split()
    starred = fields[2][0] == "*" or fields[4][0] == "*"
    on_day = in_month and in_week if starred else in_month or in_week
    return on_day and wall.month in month and wall.hour in hour and wall.minute in minute


def step_through(line, zone, start, end):
    """All fires in [start, end) by the rules as they are written, one minute after the other."""
    by_wall_clock = not any(field.startswith("*") for field in line.split()[:2])
    days = {}  # most days are ruled out by their date
    instant = start
    before = (start - MINUTE).astimezone(zone)
    while instant < end:
        now = instant.astimezone(zone)
        wall, last = now.replace(tzinfo=None, fold=0), before.replace(tzinfo=None, fold=0)
        shown = [wall] if not (by_wall_clock and now.fold) else []
        if by_wall_clock and wall - last > MINUTE:
            shown += [last + MINUTE * n for n in range(1, (wall - last) // MINUTE)]
        for each in shown:
            date = each.date()
            if date not in days:
                days[date] = fits_date(line, date)
            if days[date] and fits(line, each):
                yield instant
                break
        before, instant = now, instant + MINUTE


def fits_date(line, date):
    """Whether any minute of the day can fit: only to keep the stepping fast."""
    _, _, day, month, weekday = (
        numbers(field, *span) for field, span in zip(line.split(), RANGES, strict=True)
    )
    return date.month in month and (
        date.day in day or date.isoweekday() in weekday or date.isoweekday() % 7 in weekday
    )


@st.composite
def fields(draw, low, high, stars):
    if draw(st.integers(0, 9)) < stars:
        return draw(st.sampled_from(["*", "*", "*/2", "*/5", "*/7"]))
    elements = []
    for _ in range(draw(st.integers(1, 3))):
        first = draw(st.integers(low, high))
        last = draw(st.integers(first, high))
        step = draw(st.integers(1, 9))
        elements.append(
            draw(st.sampled_from([f"{first}", f"{first}-{last}", f"{first}-{last}/{step}"]))
        )
    return ",".join(elements)


@st.composite
def lines(draw):
    stars = (3, 3, 7, 9, 7)
    return " ".join(
        draw(fields(low, high, star)) for (low, high), star in zip(RANGES, stars, strict=True)
    )


@given(lines(), st.sampled_from(CHANGES), st.integers(-2400, 300), st.integers(0, 59))
def test_agrees_with_looking_at_the_clock_every_minute(line, change, minutes, seconds):
    try:
        schedule = parse_schedule(line)
    except InvalidInput as refusal:
        assert "never fires" in str(refusal)
        return
    zone = ZoneInfo(change[0])
    start = utc(change[1]) + MINUTE * minutes
    end = start + timedelta(hours=50)
    stepped = list(step_through(line, zone, start + MINUTE, end))
    after = start + timedelta(seconds=seconds)
    fires = list_fires(schedule, zone, after, len(stepped) + 1)
    assert fires[:-1] == stepped
    assert fires[-1] >= end
    assert all(early < late for early, late in pairwise(fires))
    if stepped:
        assert last_fire(schedule, zone, end - timedelta(seconds=1)) == stepped[-1]
    assert next_fire(schedule, zone, after) == fires[0]
