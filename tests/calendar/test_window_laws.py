"""What is true of all windows, near the changes of clocks: as if one had searched every instant."""

from datetime import timedelta
from zoneinfo import ZoneInfo

from hypothesis import assume, given
from hypothesis import strategies as st
from timing import utc

from fanout.calendar.fires import last_fire, next_fire
from fanout.calendar.instants import Instants
from fanout.calendar.periods import Period, period
from fanout.calendar.schedule import parse_schedule
from fanout.calendar.windows import Calendar, is_open, opening
from fanout.errors import InvalidInput

SECOND, MINUTE, WEEK = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=7)

RANGES = ((0, 59), (0, 23), (1, 28), (1, 12), (0, 7))
CHANGES = [  # a zone, and an instant near which its clocks jump
    ("Europe/Oslo", "2025-03-30T01:00"),
    ("Europe/Oslo", "2025-10-26T01:00"),
    ("America/New_York", "2025-03-09T07:00"),
    ("America/New_York", "2025-11-02T06:00"),
    ("Australia/Lord_Howe", "2025-10-04T15:30"),
    ("Australia/Lord_Howe", "2025-04-05T15:00"),
    ("America/Sao_Paulo", "2018-11-04T03:00"),
    ("America/Sao_Paulo", "2018-02-18T02:00"),
    ("America/Goose_Bay", "2010-11-07T03:01"),
    ("Pacific/Apia", "2011-12-30T10:00"),
    ("UTC", "2024-02-29T00:00"),
]


@st.composite
def fields(draw, low, high, stars):
    if draw(st.integers(0, 9)) < stars:
        return draw(st.sampled_from(["*", "*/2", "*/7"]))
    numbers = draw(st.lists(st.integers(low, high), min_size=1, max_size=3))
    return ",".join(map(str, numbers))


@st.composite
def lines(draw):
    stars = (2, 4, 8, 9, 8)
    parts = [draw(fields(*span, often)) for span, often in zip(RANGES, stars, strict=True)]
    return " ".join(parts)


durations = st.integers(1, 3 * 24 * 60).map(lambda minutes: minutes * MINUTE)


@st.composite
def moments(draw):
    """A zone, and an instant within a few days of a change of its clocks."""
    zone, near = draw(st.sampled_from(CHANGES))
    off = draw(st.integers(-3 * 24 * 3600, 3 * 24 * 3600) | st.integers(-7200, 7200))
    return zone, utc(near) + off * SECOND


@given(moments(), lines())
def test_looking_instants_up_is_searching_for_them(moment, line):
    (name, now), schedule = moment, parse_schedule(line)
    zone, at = ZoneInfo(name), int(now.timestamp())
    found = Instants(schedule, zone)
    assert found.after(at) == next_fire(schedule, zone, now).timestamp()
    last = last_fire(schedule, zone, now)
    assert last is not None
    assert found.last(at, at - 400 * 24 * 3600) == (
        last.timestamp() if now - last <= timedelta(days=400) else None
    )


@given(moments(), lines(), durations)
def test_a_duration_is_elapsed_time_since_a_beginning(moment, line, duration):
    name, now = moment
    last = last_fire(parse_schedule(line), ZoneInfo(name), now)
    assert period(line, name, duration=duration).covers(now) == (
        last is not None and now < last + duration
    )


@given(moments(), lines(), lines())
def test_until_is_the_next_end_after_a_beginning(moment, line, until):
    (name, now), zone = moment, ZoneInfo(moment[0])
    try:
        found = period(line, name, until=until)
    except InvalidInput:
        assume(False)
    last = last_fire(parse_schedule(line), zone, now)
    assert last is not None
    assume(
        next_fire(parse_schedule(until), zone, last - SECOND) != last
    )  # rows above say what then
    assert found.covers(now) == (now < next_fire(parse_schedule(until), zone, last))


@st.composite
def periods(draw, zone):
    if draw(st.booleans()):
        return period(draw(lines()), zone, duration=draw(durations))
    try:
        return period(draw(lines()), zone, until=draw(lines()))
    except InvalidInput:
        assume(False)


@st.composite
def worlds(draw):
    zone, now = draw(moments())
    some = st.lists(periods(zone), max_size=3).map(tuple)
    calendars = st.builds(Calendar, st.sampled_from("ab"), some, some)
    return draw(st.lists(calendars, max_size=2)), now


def covered(windows, at):
    return any(window.covers(at) for window in windows)


@given(worlds(), st.lists(st.integers(0, 999), max_size=8))
def test_it_is_open_as_the_windows_say_and_changes_at_until_and_not_before(world, parts):
    calendars, now = world
    found = opening(calendars, now)

    def stated(at):
        return all(
            (not one.allow or covered(one.allow, at)) and not covered(one.deny, at)
            for one in calendars
        )

    assert found.open == stated(now) == is_open(calendars, now)
    stop = found.until or now + WEEK
    for part in parts:
        assert stated(now + (stop - now) * part / 1000) == found.open
    if found.until is not None:
        assert now < found.until
        assert stated(found.until - SECOND) == found.open
        assert stated(found.until) != found.open
        assert opening(calendars, found.until).open != found.open


@given(moments(), st.data())
def test_allowing_a_time_is_the_complement_of_denying_it(moment, data):
    name, now = moment
    one = data.draw(periods(name))
    allowed, denied = (
        opening([Calendar("p", (one,))], now),
        opening([Calendar("p", (), (one,))], now),
    )
    assert (allowed.open, allowed.until) == (not denied.open, denied.until)


@given(worlds(), st.lists(st.integers(-7200, 7200), max_size=5))
def test_what_was_asked_before_changes_no_answer(world, offs):
    calendars, now = world
    answers = [opening(calendars, now + off * SECOND) for off in offs]
    fresh = [
        Calendar(one.name, tuple(map(again, one.allow)), tuple(map(again, one.deny)))
        for one in calendars
    ]
    assert answers == [opening(fresh, now + off * SECOND) for off in reversed(offs)][::-1]


def again(one):
    """The same period as a new object, which has been asked nothing."""
    return Period(one.schedule, one.zone, one.lasts)
