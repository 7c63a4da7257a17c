"""The governor's decisions, with time as an argument: limits, turns, deferral and shares."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.forge.governor import CircuitBreaker, Governor, QueuedCall, RefusalBackoff, share_fairly
from fanout.plan.pull_requests.call_limits import HOUR, MINUTE, CallKind, CallLimits, least_seconds

READ, WRITE, CONTENT, CREATION = CallKind


def play(limits: CallLimits, calls, *, seconds: float = 0.0, until: float = 10 * HOUR):
    """Let calls arrive at instants; return the starts, and the deferrals with their instants.

    `calls`: (instant, kind, policy). Each call takes `seconds`.
    """
    governor = Governor(limits)
    arrivals = sorted(calls, key=lambda call: call[0])
    running: list[tuple[float, QueuedCall]] = []
    starts, deferred = [], []
    now = 0.0
    while now < until:
        for entry in [it for it in running if it[0] <= now]:
            running.remove(entry)
            governor.remove(entry[1])
        while arrivals and arrivals[0][0] <= now:
            _, kind, policy = arrivals.pop(0)
            governor.enqueue(kind, policy)
        deferred += [(it.call, it.instant) for it in governor.defer(now)]
        for call in governor.admit(now):
            starts.append((now, call))
            running.append((now + seconds, call))
        instants = [end for end, _ in running if end > now]
        instants += [arrivals[0][0]] if arrivals else []
        change = governor.next_change(now)
        instants += [] if change is None else [change]
        if not instants and not any(end <= now for end, _ in running):
            break
        now = min(instants, default=now)
    return starts, deferred


SPACING = CallLimits(write_spacing=1.0)
FEW = CallLimits(calls_per_minute=2)
POINTS = CallLimits(points_per_minute=7)
MAKING = CallLimits(content_per_minute=2, content_per_hour=100)
STARTS = [
    ("reads start at once", CallLimits(), [(0, READ), (0, READ), (0, READ)], [0, 0, 0]),
    ("writes start a second apart", SPACING, [(0, WRITE), (0, WRITE), (0.5, WRITE)], [0, 1, 2]),
    ("a creation is a write", SPACING, [(0, WRITE), (0, CREATION)], [0, 1]),
    ("a read does not wait for writes", SPACING, [(0, WRITE), (0, WRITE), (0, READ)], [0, 1, 0]),
    ("spacing is over after a pause", SPACING, [(0, WRITE), (5, WRITE)], [0, 5]),
    ("the third of two a minute waits", FEW, [(0, READ), (10, READ), (20, READ)], [0, 10, 60]),
    ("a write costs five points", POINTS, [(0, WRITE), (0, READ), (5, CONTENT)], [0, 0, 60]),
    ("a read of one point fits", POINTS, [(0, CREATION), (1, WRITE), (2, READ)], [0, 60, 2]),
    ("content of a minute", MAKING, [(0, CONTENT), (1, CREATION), (2, CONTENT)], [0, 1, 60]),
    ("a deletion makes no content", MAKING, [(0, CONTENT), (1, CREATION), (2, WRITE)], [0, 1, 2]),
    ("a window slides", FEW, [(0, READ), (50, READ), (60, READ), (61, READ)], [0, 50, 60, 110]),
]


@pytest.mark.parametrize(
    ("description", "limits", "calls", "expected"), STARTS, ids=[row[0] for row in STARTS]
)
def test_starts(description, limits, calls, expected):
    starts, deferred = play(limits, [(at, kind, "p") for at, kind in calls])
    assert [at for at, _ in sorted(starts, key=lambda it: it[1].ticket)] == expected
    assert deferred == []


def test_a_call_that_would_wait_beyond_patience_is_deferred_to_its_instant():
    limits = CallLimits(creations_per_hour=2, patience=30)
    starts, deferred = play(limits, [(at, CREATION, "p") for at in (0, 10, 20)])
    assert [at for at, _ in starts] == [0, 10]
    assert [instant for _, instant in deferred] == [HOUR]


def test_no_call_starts_before_retry_after():
    governor = Governor(CallLimits(patience=10))
    governor.hold_until(100.0)
    call = governor.enqueue(READ, "p")
    assert governor.admit(0.0) == []
    assert [(it.call, it.instant) for it in governor.defer(0.0)] == [(call, 100.0)]
    call = governor.enqueue(READ, "p")
    assert governor.defer(95.0) == []
    assert governor.next_change(95.0) == 100.0
    assert governor.admit(100.0) == [call]


def test_a_shorter_retry_after_does_not_end_a_longer_one():
    governor = Governor(CallLimits())
    governor.hold_until(50.0)
    governor.hold_until(20.0)
    governor.enqueue(READ, "p")
    assert governor.next_change(0.0) == 50.0


def test_no_more_calls_start_than_a_host_says_are_left_in_its_pool():
    governor = Governor(CallLimits())
    first = governor.enqueue(READ, "p", "core")
    assert governor.admit(0.0) == [first]
    governor.observe_quota("core", 2, 1e9, 600.0)
    governor.remove(first)
    calls = [governor.enqueue(READ, "p", "core") for _ in range(3)]
    other = governor.enqueue(READ, "p", "search")
    assert governor.admit(1.0) == [*calls[:2], other]
    # Answers that come late, and in another order than the calls were counted in.
    governor.observe_quota("core", 0, 1e9 + 1, 609.0)
    governor.observe_quota("core", 1, 1e9, 600.1)
    for call in (*calls[:2], other):
        governor.remove(call)
    assert governor.admit(2.0) == []
    assert [it.instant for it in governor.defer(2.0)] == [600.0]
    late = governor.enqueue(READ, "p", "core")
    assert governor.admit(600.0) == [late]


def test_an_answer_that_cost_nothing_leaves_the_quota_as_it_was():
    governor = Governor(CallLimits())
    for instant in range(5):
        call = governor.enqueue(READ, "p", "core")
        assert governor.admit(float(instant)) == [call]
        governor.observe_quota("core", 1, 1e9, 600.0)
        governor.remove(call)


def test_a_new_period_has_calls_again_and_an_answer_of_the_old_one_ends_none():
    governor = Governor(CallLimits())
    governor.observe_quota("core", 0, 1e9, 100.0)
    governor.observe_quota("core", 50, 1e9 + 3600, 3700.0)
    governor.observe_quota("core", 0, 1e9, 100.0)
    call = governor.enqueue(READ, "p", "core")
    assert governor.admit(50.0) == [call]


def test_refusals_without_an_end_double_until_such_a_call_succeeds():
    backoff = RefusalBackoff()
    assert [backoff.record_refusal(CONTENT) for _ in range(8)] == [
        *(MINUTE * it for it in (1, 2, 4, 8, 16, 32)),
        HOUR,
        HOUR,
    ]
    backoff.record_success(READ)
    assert backoff.record_refusal(CONTENT) == HOUR
    backoff.record_success(WRITE)
    assert backoff.record_refusal(READ) == MINUTE
    backoff.record_success(READ)
    assert backoff.record_refusal(READ) == MINUTE


def test_no_more_calls_are_in_flight_than_allowed():
    governor = Governor(CallLimits(in_flight=2))
    calls = [governor.enqueue(READ, "p") for _ in range(3)]
    assert governor.admit(0.0) == calls[:2]
    assert governor.admit(0.0) == []
    governor.remove(calls[0])
    assert governor.admit(1.0) == calls[2:]


def test_a_small_policy_does_not_wait_behind_a_large_one():
    governor = Governor(CallLimits(in_flight=1))
    large = [governor.enqueue(READ, "large") for _ in range(100)]
    assert governor.admit(0.0) == large[:1]
    small = governor.enqueue(READ, "small")
    governor.remove(large[0])
    assert governor.admit(0.0) == [small]


def test_a_call_that_nobody_waits_for_takes_no_turn():
    governor = Governor(CallLimits(in_flight=1))
    first, second = governor.enqueue(READ, "p"), governor.enqueue(READ, "p")
    governor.remove(first)
    assert governor.admit(0.0) == [second]


def test_creations_of_an_hour_are_shared_among_policies():
    governor = Governor(CallLimits(creations_per_hour=10))
    governor.share_creations({"large": 1000, "small": 2}, 0.0)
    for _ in range(20):
        governor.enqueue(CREATION, "large")
    starts, deferred = [], []
    while calls := governor.admit(0.0):
        starts += calls
        for call in calls:
            governor.remove(call)
        deferred += governor.defer(0.0)
    assert len(starts) == 8
    # The instant at which one more fits, after the two that are kept for the other policy.
    assert {it.instant for it in deferred} == {HOUR}
    small = [governor.enqueue(CREATION, "small") for _ in range(2)]
    assert governor.admit(0.0) == small


SHARES = [
    ("enough for all", 10, {"a": 3, "b": 4}, {}, {"a": 3, "b": 4}),
    ("nothing", 0, {"a": 3, "b": 4}, {}, {"a": 0, "b": 0}),
    ("what one does not want goes to others", 10, {"a": 1, "b": 9, "c": 9}, {}, "a1 b5 c4"),
    ("the rest goes to who had least", 3, {"a": 9, "b": 9}, {"a": 5}, "a1 b2"),
    ("fewer than policies: by calls, then name", 1, {"b": 9, "a": 9}, {}, "a1 b0"),
    ("nobody wants any", 5, {}, {}, {}),
]


@pytest.mark.parametrize(
    ("description", "budget", "demand", "calls", "expected"), SHARES, ids=[row[0] for row in SHARES]
)
def test_shares(description, budget, demand, calls, expected):
    if isinstance(expected, str):
        expected = {word[0]: int(word[1:]) for word in expected.split()}
    assert share_fairly(budget, demand, calls) == expected


DURATIONS = [
    ("no call", CallLimits(), [], 0),
    ("as many as in a minute", CallLimits(calls_per_minute=300), [READ] * 300, 0),
    ("one more", CallLimits(calls_per_minute=300), [READ] * 301, MINUTE),
    ("eleven hundred at a hundred", CallLimits(calls_per_minute=100), [READ] * 1100, 10 * MINUTE),
    ("creations of three hours", CallLimits(creations_per_hour=100), [CREATION] * 250, 2 * HOUR),
    ("points of a minute", CallLimits(points_per_minute=900), [WRITE] * 181, MINUTE),
    ("content of an hour", CallLimits(content_per_hour=500), [CONTENT, CREATION] * 251, HOUR),
    ("calls of two hours", CallLimits(10**6, calls_per_hour=5000), [READ] * 9000, HOUR),
    ("writes a second apart", SPACING, [WRITE] * 100 + [READ] * 50, 99),
]


@pytest.mark.parametrize(
    ("description", "limits", "kinds", "expected"), DURATIONS, ids=[row[0] for row in DURATIONS]
)
def test_least_duration(description, limits, kinds, expected):
    assert least_seconds(limits, kinds) == expected


def test_a_circuit_opens_after_failures_in_a_row_and_tries_again():
    breaker = CircuitBreaker(failures=3, seconds=30)
    for _ in range(2):
        breaker.record_failure(0.0)
    breaker.record_success()
    for instant in (1.0, 2.0):
        breaker.record_failure(instant)
    assert not breaker.is_open(2.0)
    breaker.record_failure(3.0)
    assert [breaker.is_open(at) for at in (3.0, 32.9, 33.0)] == [True, True, False]
    breaker.record_failure(33.0)
    assert breaker.is_open(34.0), "one failure is enough until a call has succeeded"
    breaker.record_success()
    assert not breaker.is_open(34.0)


def test_a_circuit_opens_at_once_for_a_host_that_is_silent_and_for_longer_each_time():
    breaker = CircuitBreaker(seconds=30, longest_seconds=100)
    instant, pauses = 0.0, []
    for _ in range(4):
        breaker.record_silence(instant)
        pause = next(it for it in range(1000) if not breaker.is_open(instant + it))
        pauses.append(pause)
        instant += pause
    assert pauses == [30, 60, 100, 100]
    breaker.record_success()
    breaker.record_silence(instant)
    assert not breaker.is_open(instant + 30)


# ---- laws --------------------------------------------------------------------------------------

some_limits = st.builds(
    CallLimits,
    calls_per_minute=st.integers(1, 12),
    creations_per_hour=st.integers(1, 6),
    write_spacing=st.sampled_from([0.0, 0.5, 1.0, 7.25]),
    in_flight=st.integers(1, 3),
    patience=st.sampled_from([0.0, 5.0, MINUTE, 2 * HOUR]),
    points_per_minute=st.none() | st.integers(5, 30),
    content_per_minute=st.none() | st.integers(1, 5),
    content_per_hour=st.none() | st.integers(1, 9),
)
some_calls = st.lists(
    st.tuples(
        st.floats(0, 7200, allow_nan=False), st.sampled_from(CallKind), st.sampled_from("abc")
    ),
    max_size=40,
)


@given(some_limits, some_calls, st.sampled_from([0.0, 0.3, 20.0]))
def test_no_limit_is_ever_exceeded(limits, calls, seconds):
    starts, deferred = play(limits, calls, seconds=seconds)
    assert len(starts) + len(deferred) == len(calls), "every call has an outcome"
    everything = [at for at, _ in starts]
    writes = [at for at, call in starts if call.kind is not READ]
    creations = [at for at, call in starts if call.kind is CREATION]
    content = [at for at, call in starts if call.kind in (CONTENT, CREATION)]
    points = [at for at, call in starts for _ in range(1 if call.kind is READ else 5)]
    for instants, limit, period in (
        (everything, limits.calls_per_minute, MINUTE),
        (creations, limits.creations_per_hour, HOUR),
        (content, limits.content_per_minute or 100, MINUTE),
        (content, limits.content_per_hour or 100, HOUR),
        (points, limits.points_per_minute or 1000, MINUTE),
    ):
        for first, last in zip(instants, instants[limit:], strict=False):
            assert last >= first + period
    for first, second in pairwise(writes):
        assert second >= first + limits.write_spacing
    for at in everything:
        assert sum(start <= at < start + seconds for start in everything) <= limits.in_flight


@given(some_limits, some_calls)
def test_a_deferred_call_would_have_waited_for_longer_than_allowed(limits, calls):
    _, deferred = play(limits, calls)
    arrival = dict(enumerate(sorted(at for at, _, _ in calls)))
    for call, instant in deferred:
        assert instant > arrival[call.ticket] + limits.patience


demands = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 30))
counts = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9))


@given(st.integers(0, 60), demands, counts)
def test_shares_are_max_min_fair(budget, demand, calls):
    shares = share_fairly(budget, demand, calls)
    assert shares.keys() == demand.keys()
    assert sum(shares.values()) == min(budget, sum(demand.values())), "nothing is left unused"
    for policy, share in shares.items():
        assert 0 <= share <= demand[policy]
        if share < demand[policy]:
            assert all(other <= share + 1 for other in shares.values())


@given(some_limits, st.lists(st.sampled_from(CallKind), max_size=40))
def test_the_least_duration_is_what_the_governor_takes(limits, kinds):
    """For calls of one kind exactly; for a mixture it is a lower bound."""
    patient = CallLimits(
        calls_per_minute=limits.calls_per_minute,
        creations_per_hour=limits.creations_per_hour,
        write_spacing=limits.write_spacing,
        in_flight=1000,
        patience=1000 * HOUR,
        points_per_minute=limits.points_per_minute,
        content_per_minute=limits.content_per_minute,
        content_per_hour=limits.content_per_hour,
    )
    starts, _ = play(patient, [(0.0, kind, "p") for kind in kinds], until=1000 * HOUR)
    last = max((at for at, _ in starts), default=0.0)
    assert last >= least_seconds(patient, kinds)
    if Counter(kinds).keys() <= {READ} and patient.points_per_minute is None:
        assert last == least_seconds(patient, kinds)
