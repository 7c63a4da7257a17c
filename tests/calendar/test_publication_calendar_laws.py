"""What is true of all windows, near the changes of clocks: as if one had searched every instant."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim
from hypothesis import assume, given
from hypothesis import strategies as st
from timing import covers, utc

from fanout.calendar.cron_schedule import FireTimes, last_fire, next_fire, parse_schedule
from fanout.calendar.publication_calendar import (
    PublicationCalendar,
    RecurringWindow,
    WindowState,
    build_window,
    compute_window_state,
    is_open,
)
from fanout.calendar.time_zone import first_change, instant_of, offset_at, wall_time
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
    ("Asia/Beirut", "2025-03-29T22:00"),
    ("Africa/Casablanca", "2025-02-23T02:00"),
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


ANY_JUMP = timedelta(hours=26)  # zones lie between UTC-12 and UTC+14


def search_next(schedule, zone, after):
    """Search from one change of clocks to the next, without days."""
    after = after.astimezone(UTC)
    if schedule.by_wall_clock:
        for wall in CronSim(schedule.line, wall_time(zone, after)):
            instant = instant_of(zone, wall)
            if instant > after:  # otherwise `after` is the second of two equal wall times
                return instant
        raise AssertionError(schedule)  # parse_schedule refuses schedules that never fire
    # From one change of the clock to the next, between which a wall time is unique. Changes farther
    # than ANY_JUMP from both ends cannot matter: clocks there show times that lie between the one
    # at `after` and the one searched for, and none of those matches.
    while True:
        offset = offset_at(zone, after)
        wall = next(CronSim(schedule.line, after.replace(tzinfo=None) + offset))
        instant = (wall - offset).replace(tzinfo=UTC)
        search_end = min(instant, after + ANY_JUMP)
        # Each change of clocks in between makes cronsim's wall times ambiguous, so the search stops
        # there and goes on with the new offset.
        change = first_change(zone, after, search_end)
        if change is None:
            if search_end == instant:
                return instant
            after = max(search_end, instant - ANY_JUMP)
            continue
        wall = wall_time(zone, change)
        if next(CronSim(schedule.line, wall - SECOND)) == wall:
            return change
        after = change


def search_last(schedule, zone, before):
    """Double the distance until a fire time lies in between, then bisect."""
    span = timedelta(minutes=2)
    while (latest := search_next(schedule, zone, before - span)) > before:
        span *= 2
    upper = before
    while upper - latest > SECOND:
        middle = latest + (upper - latest) / 2
        candidate = search_next(schedule, zone, middle)
        latest, upper = (candidate, upper) if candidate <= before else (latest, middle)
    return latest


@given(moments(), lines())
def test_looking_instants_up_is_searching_for_them(moment, line):
    (name, now), schedule = moment, parse_schedule(line)
    zone, at = ZoneInfo(name), int(now.timestamp())
    fire_times = FireTimes(schedule, zone)
    following = search_next(schedule, zone, now)
    assert fire_times.next_after(at) == following.timestamp()
    assert next_fire(schedule, zone, now) == following
    last = search_last(schedule, zone, now)
    assert last_fire(schedule, zone, now) == last
    assert fire_times.last_before(at, at - 400 * 24 * 3600) == (
        last.timestamp() if now - last <= timedelta(days=400) else None
    )


@given(moments(), lines(), durations)
def test_a_duration_is_elapsed_time_since_a_beginning(moment, line, duration):
    name, now = moment
    last = last_fire(parse_schedule(line), ZoneInfo(name), now)
    assert covers(build_window(line, name, duration=duration), now) == (
        last is not None and now < last + duration
    )


@given(moments(), lines(), lines())
def test_until_is_the_next_end_after_a_beginning(moment, line, until):
    (name, now), zone = moment, ZoneInfo(moment[0])
    try:
        window = build_window(line, name, until=until)
    except InvalidInput:
        assume(False)
    last = last_fire(parse_schedule(line), zone, now)
    assert last is not None
    assume(
        next_fire(parse_schedule(until), zone, last - SECOND) != last
    )  # rows above say what then
    assert covers(window, now) == (now < next_fire(parse_schedule(until), zone, last))


@st.composite
def periods(draw, zone):
    if draw(st.booleans()):
        return build_window(draw(lines()), zone, duration=draw(durations))
    try:
        return build_window(draw(lines()), zone, until=draw(lines()))
    except InvalidInput:
        assume(False)


@st.composite
def worlds(draw):
    zone, now = draw(moments())
    some = st.lists(periods(zone), max_size=3).map(tuple)
    calendars = st.builds(PublicationCalendar, st.sampled_from("ab"), some, some)
    return draw(st.lists(calendars, max_size=2)), now


def covered(windows, at):
    return any(covers(window, at) for window in windows)


@given(worlds(), st.lists(st.integers(0, 999), max_size=8))
def test_publication_is_open_as_the_windows_state_and_changes_first_at_until(
    calendars_and_now, parts
):
    calendars, now = calendars_and_now
    state = compute_window_state(calendars, now)

    def stated(at):
        return all(
            (not one.allow or covered(one.allow, at)) and not covered(one.deny, at)
            for one in calendars
        )

    assert state.open == stated(now) == is_open(calendars, now)
    stop = state.until or now + WEEK
    for part in parts:
        assert stated(now + (stop - now) * part / 1000) == state.open
    if state.until is not None:
        assert now < state.until
        assert stated(state.until - SECOND) == state.open
        assert stated(state.until) != state.open
        assert compute_window_state(calendars, state.until).open != state.open


@st.composite
def evenings(draw):
    """A line of fixed times near a change of clocks."""
    zone, near = draw(st.sampled_from(CHANGES))
    hour = wall_time(ZoneInfo(zone), utc(near)).hour
    minutes = draw(st.lists(st.sampled_from([0, 1, 15, 30, 59]), min_size=1, max_size=2))
    lines = []
    for _ in range(2):
        hours = draw(st.lists(st.integers(hour - 3, hour + 3), min_size=1, max_size=2))
        days = draw(st.sampled_from(["*", "*", "0,6"]))
        asked = ",".join(str(one % 24) for one in hours)
        lines.append(f"{','.join(map(str, minutes))} {asked} * * {days}")
    return zone, utc(near), *lines


@given(evenings(), st.lists(st.integers(-12000, 12000) | st.integers(-1, 1), max_size=6))
def test_fixed_times_are_those_of_the_wall_clock_and_each_becomes_an_instant(evening, offs):
    """By the wall clock a window is as if clocks never changed; then each edge is an instant."""
    name, near, line, until = evening
    assume(line != until)
    zone, window = ZoneInfo(name), build_window(line, name, until=until)
    first = wall_time(zone, near) - timedelta(days=9)
    spans = []
    for wall in CronSim(line, first):
        if wall > first + timedelta(days=11):
            break
        spans.append((instant_of(zone, wall), instant_of(zone, next(CronSim(until, wall)))))
    for off in offs:
        at = near + off * SECOND
        assert covers(window, at) == any(start <= at < end for start, end in spans)


@given(moments(), st.data())
def test_an_edge_is_the_same_from_far_away_and_from_the_second_before(moment, data):
    name, now = moment
    one = data.draw(periods(name))
    span = one.find_span(int(now.timestamp()))
    if span.end is not None:
        assert again(one).find_span(span.end - 1).end == span.end
        assert not covers(again(one), datetime.fromtimestamp(span.end, UTC))
    assert covers(again(one), datetime.fromtimestamp(max(span.start, now.timestamp()), UTC))


@given(moments(), st.data())
def test_allowing_a_time_is_the_complement_of_denying_it(moment, data):
    name, now = moment
    one = data.draw(periods(name))
    allowed, denied = (
        compute_window_state([PublicationCalendar("p", (one,))], now),
        compute_window_state([PublicationCalendar("p", (), (one,))], now),
    )
    assert (allowed.open, allowed.until) == (not denied.open, denied.until)


def parts(state: WindowState) -> tuple[object, ...]:
    """What the state says; windows that were built anew equal no others."""
    cause = state.cause
    closed_by = (cause.calendar, cause.denies, cause.window_names) if cause is not None else ()
    return state.open, state.until, state.message, closed_by


@given(worlds(), st.lists(st.integers(-7200, 7200), max_size=5))
def test_earlier_queries_change_no_window_state(calendars_and_now, offs):
    calendars, now = calendars_and_now
    answers = [parts(compute_window_state(calendars, now + off * SECOND)) for off in offs]
    fresh = [
        PublicationCalendar(one.name, tuple(map(again, one.allow)), tuple(map(again, one.deny)))
        for one in calendars
    ]
    fresh_answers = [
        parts(compute_window_state(fresh, now + off * SECOND)) for off in reversed(offs)
    ]
    assert answers == fresh_answers[::-1]


def again(one):
    """The same period as a new object, which has been asked nothing."""
    return RecurringWindow(one.schedule, one.zone, one.length)
