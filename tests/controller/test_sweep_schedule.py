"""Who is swept when: what is due, what was missed, who is bound to a schedule."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.calendar.cron_schedule import parse_schedule
from fanout.calendar.time_zone import parse_zone
from fanout.controller.sweep_schedule import (
    ScheduledSweep,
    SweepTimetable,
    build_mode,
    build_timetable,
    find_obsolete,
)
from fanout.plan.records.logged_sweep import LoggedSweep
from fanout.reconcile.pass_scope import PassMode, PassSubject
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy

HOUR = timedelta(hours=1)
A, B = PassSubject("platform", "a"), PassSubject("platform", "b")
ELSEWHERE = PassSubject("other", "a")


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def timed(schedule, zone="UTC", deadline=None, jitter=0, name="production"):
    return ScheduledSweep(
        PassSubject("platform", name),
        parse_schedule(schedule),
        parse_zone(zone),
        None if deadline is None else timedelta(seconds=deadline),
        frozenset({A}),
        jitter=timedelta(seconds=jitter),
    )


MISSED = [
    (
        "nothing was missed since the last one",
        timed("0 * * * *"),
        "2026-03-02 09:00",
        "2026-03-02 09:59:59",
        None,
    ),
    (
        "at the very instant it is due",
        timed("0 * * * *"),
        "2026-03-02 09:00",
        "2026-03-02 10:00",
        "2026-03-02 10:00",
    ),
    (
        "of many that were missed the latest is made up",
        timed("0 * * * *"),
        "2026-02-01 09:00",
        "2026-03-02 10:30",
        "2026-03-02 10:00",
    ),
    (
        "what was on record between two instants counts from there",
        timed("0 * * * *"),
        "2026-03-02 09:30",
        "2026-03-02 09:45",
        None,
    ),
    (
        "a weekday's sweep is not missed on Saturday",
        timed("0 9 * * 1-5"),
        "2026-03-06 09:00",
        "2026-03-07 12:00",
        None,
    ),
    (
        "in Oslo's winter nine is eight in UTC",
        timed("0 9 * * *", "Europe/Oslo"),
        "2026-03-01 08:00",
        "2026-03-02 08:00",
        "2026-03-02 08:00",
    ),
    (
        "a time that the spring gap skips is due at the gap's end",
        timed("30 2 * * *", "Europe/Oslo"),
        "2026-03-28 01:30",
        "2026-03-29 01:00",
        "2026-03-29 01:00",
    ),
    (
        "before the gap's end it is not",
        timed("30 2 * * *", "Europe/Oslo"),
        "2026-03-28 01:30",
        "2026-03-29 00:59:59",
        None,
    ),
    (
        "a time that comes twice is due the first time",
        timed("30 2 * * *", "Europe/Oslo"),
        "2026-10-24 00:30",
        "2026-10-25 00:30",
        "2026-10-25 00:30",
    ),
    (
        "and not once more the second time",
        timed("30 2 * * *", "Europe/Oslo"),
        "2026-10-25 00:30",
        "2026-10-25 01:30",
        None,
    ),
]


@pytest.mark.parametrize(
    ("sentence", "one", "swept", "now", "expected"), MISSED, ids=[row[0] for row in MISSED]
)
def test_missed(sentence, one, swept, now, expected):
    assert one.find_missed(one.log_entry(at(swept)), at(now)) == (
        at(expected) if expected else None
    )


DEADLINES = [
    ("without a deadline it is never too late", None, "2027-01-01 00:00", False),
    ("within the deadline it is made up", 3600, "2026-03-02 10:00", False),
    ("a second later it is not", 3600, "2026-03-02 10:00:01", True),
]


@pytest.mark.parametrize(
    ("sentence", "deadline", "now", "late"), DEADLINES, ids=[row[0] for row in DEADLINES]
)
def test_starting_deadline(sentence, deadline, now, late):
    one = timed("0 9 * * *", deadline=deadline)
    assert one.is_too_late(at("2026-03-02 09:00"), at(now)) is late


KNOWN = [
    ("its own last sweep", LoggedSweep(at("2026-03-02 09:00"), "@hourly", "UTC"), True),
    ("nothing", None, False),
    ("a sweep of another schedule", LoggedSweep(at("2026-03-02 09:00"), "@daily", "UTC"), False),
    (
        "a sweep in another zone",
        LoggedSweep(at("2026-03-02 09:00"), "@hourly", "Europe/Oslo"),
        False,
    ),
    (
        "one by a clock four minutes ahead",
        LoggedSweep(at("2026-03-02 10:04"), "@hourly", "UTC"),
        True,
    ),
    ("one from the future", LoggedSweep(at("2026-03-02 10:06"), "@hourly", "UTC"), False),
]


@pytest.mark.parametrize(("sentence", "swept", "is_logged"), KNOWN, ids=[row[0] for row in KNOWN])
def test_a_logged_sweep_counts_for_its_own_schedule(sentence, swept, is_logged):
    assert timed("@hourly").is_logged(swept, at("2026-03-02 10:00")) is is_logged


@given(
    minute=st.integers(0, 59),
    last=st.integers(0, 60 * 24 * 60),
    later=st.integers(0, 60 * 24 * 400),
)
def test_made_up_once_and_then_on_time(minute, last, later):
    """However long the process was down: one sweep is due, and none once that is on record."""
    one = timed(f"{minute} 2 * * *", "Europe/Oslo")
    swept = at("2026-01-01 00:00") + timedelta(minutes=last)
    now = swept + timedelta(minutes=later)
    due = one.find_missed(one.log_entry(swept), now)
    if due is not None:
        assert swept < due <= now
        assert one.find_missed(one.log_entry(due), now) is None
    following = one.next_start(now)
    assert one.find_missed(one.log_entry(due or swept), following) == following


# ---- jitter ------------------------------------------------------------------------------------


def test_jitter_spreads_sweeps_over_the_promotion_policies():
    ten = at("2026-03-02 10:00")
    starts = [timed("0 * * * *", jitter=600, name=f"p{n}").start_of(ten) for n in range(200)]
    assert min(starts) < ten + timedelta(minutes=1)
    assert max(starts) > ten + timedelta(minutes=9)
    assert ten + timedelta(minutes=10) >= max(starts)
    assert len(set(starts)) > 100


def test_jitter_is_the_same_whenever_it_is_asked_for():
    """Written down once: another process, or another version, must come to the same."""
    assert [
        f"{timed('0 * * * *', jitter=600).start_of(at(f'2026-03-02 {hour}:00')):%H:%M:%S}"
        for hour in (10, 11, 12)
    ] == ["10:00:47", "11:05:04", "12:09:18"]


@given(
    line=st.sampled_from(["* * * * *", "*/15 8-16 * * 1-5", "0 * * * *", "30 2 * * *"]),
    jitter=st.integers(0, 86400),
    now=st.integers(0, 365 * 86400),
)
def test_a_sweep_starts_late_by_no_more_than_jitter_and_before_the_next_one(line, jitter, now):
    one = timed(line, "Europe/Oslo", jitter=jitter)
    moment = at("2026-01-01 00:00") + timedelta(seconds=now)
    first, second = one.next_start(moment), one.next_start(one.next_start(moment))
    assert moment < first < second
    due = one.find_missed(one.log_entry(moment - timedelta(days=400)), first)
    assert due is not None
    assert one.start_of(due) == first
    assert timedelta(0) <= first - due <= timedelta(seconds=jitter)
    just_before = first - timedelta(seconds=1)
    assert one.find_missed(one.log_entry(moment - timedelta(days=400)), just_before) != due
    assert one.find_missed(one.log_entry(due), first) is None, "made once"
    assert one.find_missed(one.log_entry(due), second - timedelta(seconds=1)) is None


def test_a_process_that_starts_between_the_scheduled_instant_and_the_start_waits_for_it():
    one = timed("0 * * * *", jitter=600)
    nine, start = at("2026-03-02 09:00"), one.start_of(at("2026-03-02 10:00"))
    assert at("2026-03-02 10:00") < start
    assert one.find_missed(one.log_entry(nine), start - timedelta(seconds=1)) is None
    assert one.next_start(start - timedelta(seconds=1)) == start
    assert one.find_missed(one.log_entry(nine), start) == at("2026-03-02 10:00")


def test_jitter_does_not_use_up_the_deadline():
    one = timed("0 * * * *", deadline=5, jitter=600)
    ten = at("2026-03-02 10:00")
    start = one.start_of(ten)
    assert start - ten > timedelta(seconds=5)
    assert not one.is_too_late(ten, start + timedelta(seconds=5))
    assert one.is_too_late(ten, start + timedelta(seconds=6))


def test_jitter_is_the_promotion_policy_s(files):
    files.promotion("timed", "policies: [a], schedule: '@daily', jitter: 10m")
    (one,) = build_timetable(files.read()).schedules
    assert one.jitter == timedelta(minutes=10)


# ---- who is bound ------------------------------------------------------------------------------


def bound(table):
    return sorted(who.name for who in table.sweep_only)


def test_without_a_schedule_nobody_waits_for_a_sweep(files):
    files.policy("a").promotion("open", 'policies: ["*"], autoPromotion: {stages: ["*"]}')
    table = build_timetable(files.read())
    assert (table.all_subjects, bound(table), table.schedules) == ({A}, [], ())


def test_subjects_of_a_scheduled_promotion_policy_wait_for_its_sweeps(files):
    files.policy("a").policy("b").variant("c").variant("d")
    files.promotion("timed", 'policies: [a], variants: [d], schedule: "@daily"')
    files.promotion("open", 'policies: ["*"], variants: [c]')
    table = build_timetable(files.read())
    assert bound(table) == ["a", "d"]
    assert [one.subjects for one in table.schedules] == [{A, PassSubject("platform", "d")}]


def test_a_promotion_policy_of_another_namespace_binds_no_subject_here(files):
    files.policy("a").policy("a", "other")
    files.promotion("timed", 'policies: ["*"], schedule: "@daily"', "other")
    assert build_timetable(files.read()).sweep_only == {ELSEWHERE}
    assert build_timetable(files.read(), "platform").schedules == ()
    assert build_timetable(files.read(), "platform").all_subjects == {A}


def test_zone_and_deadline_are_the_promotion_policy_s(files):
    spec = 'policies: [a], schedule: "0 9 * * *", timeZone: Europe/Oslo'
    files.promotion("timed", f"{spec}, startingDeadlineSeconds: 60")
    (one,) = build_timetable(files.read()).schedules
    assert one.next_start(at("2026-07-01 00:00")) == at("2026-07-01 07:00")
    assert one.is_too_late(at("2026-07-01 07:00"), at("2026-07-01 07:02"))


def test_a_promotion_policy_that_cannot_be_used_binds_its_whole_namespace(files):
    files.policy("a").policy("a", "other")
    files.promotion("broken", 'policies: [x], schedule: "@daily", colour: red')
    table = build_timetable(files.read())
    assert table.sweep_only == {A}
    assert "platform/broken" in table.promotion_policies


def test_a_file_that_cannot_be_read_binds_everybody(files):
    files.policy("a").policy("a", "other").write("{ no manifest")
    table = build_timetable(files.read())
    assert (table.sweep_only, table.complete) == ({A, ELSEWHERE}, False)


@pytest.mark.parametrize(
    "spec", ['schedule: "0 0 30 2 *"', 'schedule: "@daily", timeZone: Europe/Olso'], ids=str
)
def test_a_schedule_that_is_not_understood_binds_and_never_sweeps(files, spec):
    files.policy("a").promotion("timed", f"policies: [a], {spec}")
    table = build_timetable(files.read())
    assert (table.sweep_only, table.schedules) == ({A}, ())


# ---- passes ------------------------------------------------------------------------------------

MODES = [
    ("everybody is swept in one pass over all", [A, B], [A, B], PassMode()),
    ("some are named", [A], [A], PassMode(subjects=frozenset([A]))),
    ("nobody is swept", [A, B], [], PassMode(sweep=False)),
    ("one pass for those who are swept and those who are not", [A, B], [A],
     PassMode(unswept_subjects=frozenset([B]))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "evaluated", "swept", "expected"), MODES, ids=[row[0] for row in MODES]
)
def test_modes(sentence, evaluated, swept, expected):
    table = SweepTimetable(all_subjects=frozenset([A, B]))
    assert build_mode(frozenset(evaluated), frozenset(swept), table) == expected


SUBJECTS = st.frozensets(st.builds(PassSubject, st.sampled_from("xyz"), st.sampled_from("abc")))


@given(everyone=SUBJECTS, evaluated=SUBJECTS, swept=SUBJECTS)
def test_a_mode_covers_the_evaluated_subjects_and_sweeps_the_due_subjects(
    everyone, evaluated, swept
):
    evaluated &= everyone
    swept &= evaluated
    mode = build_mode(evaluated, swept, SweepTimetable(all_subjects=everyone))
    named = {
        who: ResolvedPolicy(
            namespace=who.namespace,
            name=who.name,
            upstream_policy=None,
            upstream=None,
            package_variant=None,
        )
        for who in everyone
    }
    assert {who for who in everyone if mode.covers(named[who])} == evaluated
    assert {who for who in evaluated if mode.is_sweep_for(named[who])} == swept


# ---- forgetting --------------------------------------------------------------------------------


def test_a_promotion_policy_that_was_seen_and_is_gone_is_forgotten(files):
    files.promotion("here", "policies: [a]")
    recorded = dict.fromkeys(["platform/here", "platform/gone", "other/foreign"])
    seen = ["platform/here", "platform/gone"]
    assert find_obsolete(recorded, seen, build_timetable(files.read())) == {"platform/gone"}


def test_an_unreadable_file_keeps_every_logged_sweep(files):
    table = build_timetable(files.write("{ no manifest").read())
    assert find_obsolete({"platform/gone": None}, ["platform/gone"], table) == set()
