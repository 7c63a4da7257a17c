"""Soak of a revision that a stage or a join comes back to: the longest stretch counts."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from gates.specification import enough
from gates.worlds import (
    FAILED,
    PASSED,
    after,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    later,
    passed,
    published,
    reasons_of,
    stage,
    variant,
)
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Action, Require
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.revision_history import NO_HISTORY, RevisionHistory, compute_soak
from fanout.values import replace

LAST = 24
SOAK = 60


def stretch(first: float, *, longest: float = 0, since: float | None = None) -> RevisionHistory:
    """A recorded verdict whose present stretch is not the first."""
    begun = at(since) if since is not None else None
    return RevisionHistory(at(first), None, timedelta(minutes=longest), begun)


# ---- one stage ----------------------------------------------------------------------------------

DEV, PROD = stage("dev"), stage("prod", after("dev", soak=SOAK))
P = variant("p", "prod", draft=draft("v1"))


def came_back(now: float, *, answered: float = 32, **fields) -> PolicyFacts:
    """Dev had v1 from minute 1 to 20, and has it again since minute 30."""
    d = variant("d", "dev", published("v1", 30))
    records = (evidence_of("dev", PASSED, when=1), evidence_of("dev", PASSED, when=answered))
    history = fields.pop("history", {("dev", "v1"): passed(1, 20)})
    return facts((DEV, PROD), (d, P), *records, now=now, history=history, **fields)


def test_a_new_stretch_begins_when_the_stage_is_ready_again():
    it = came_back(40)
    assert evaluate_gates(it).history["dev", "v1"] == stretch(1, longest=19, since=32)
    seen = later(it, 91)
    assert evaluate_gates(seen).stages["prod"].next == at(92)
    assert not evaluate_gates(seen).variants["p"].publish
    assert evaluate_gates(later(seen, 92)).variants["p"].publish


def test_a_stage_that_is_not_ready_again_yet_is_waited_for():
    back = decided(Action.ROLLBACK, stage="dev", revision="v1", when=25)
    d = variant("d", "dev", published("v1", 30))
    it = facts(
        (DEV, PROD), (d, P), evidence_of("dev", PASSED), back,
        now=40, history={("dev", "v1"): passed(1, 20)}, revisions="v1 v2",
    )  # fmt: skip
    decision = evaluate_gates(it)
    assert decision.history["dev", "v1"] == passed(1, 20)
    assert decision.stages["prod"].candidate == "v1"
    assert reasons_of(decision, "p") == ["SoakRunning"]
    assert decision.variants["p"].holds[0].who == gate_wording.format_reporter("e2e", "dev")


def test_the_longest_stretch_stands_when_the_stage_moves_on_again():
    it = came_back(40, history={("dev", "v1"): stretch(1, longest=19, since=32)})
    moved = replace(it, variants=(variant("d", "dev", published("v2", 95)), P), now=at(99))
    history = evaluate_gates(moved)
    assert history.history["dev", "v1"] == RevisionHistory(at(1), at(95), timedelta(minutes=63))
    assert history.stages["prod"].gate is PASSED


def test_withdrawn_evidence_takes_all_stretches():
    it = came_back(99, history={("dev", "v1"): stretch(1, longest=80, since=32)})
    failed = later(it, 100, evidence_of("dev", FAILED, when=99))
    assert ("dev", "v1") not in evaluate_gates(failed).history
    again = later(failed, 110, evidence_of("dev", PASSED, when=109))
    assert evaluate_gates(again).history["dev", "v1"] == passed(109)


def test_a_retry_after_a_soak_keeps_it():
    it = came_back(99, history={("dev", "v1"): stretch(1, longest=80, since=32)})
    retry = decided(Action.RETRY, stage="dev", revision="v1", variants=("d",), when=98)
    tried = replace(it, records=replace(it.records, decisions=(retry,)))
    assert evaluate_gates(tried).history == it.history


def test_a_clock_that_goes_back_makes_no_stretch_longer():
    it = came_back(40, history={("dev", "v1"): stretch(1, longest=19, since=95)})
    assert compute_soak(evaluate_gates(it).history["dev", "v1"], it.now) == timedelta(minutes=19)


def test_a_variant_resumed_at_another_revision_ends_the_stretch():
    other = variant("e", "dev", published("v2", 20), suspended=True)
    it = came_back(40)
    apart = replace(it, variants=(*it.variants, other))
    assert evaluate_gates(apart).history["dev", "v1"].since == at(40), (
        "it does not count while it is"
    )
    seen = later(apart, 50)
    resumed = replace(seen, variants=(*it.variants, replace(other, suspended=False)))
    history = evaluate_gates(resumed).history["dev", "v1"]
    assert history == RevisionHistory(at(1), at(50), timedelta(minutes=19))


def test_a_variant_that_goes_back_alone_brings_its_stage_back():
    a, b = variant("a", "dev", published("v1", 30)), variant("b", "dev", published("v1"))
    policy_facts = (evidence_of("dev", PASSED, when=1), evidence_of("dev", PASSED, when=32))
    it = facts(
        (DEV, PROD), (a, b, P), *policy_facts, now=40, history={("dev", "v1"): passed(1, 20)}
    )
    assert evaluate_gates(it).history["dev", "v1"] == stretch(1, longest=19, since=32)


def test_a_way_back_that_has_begun_ends_after_the_window_where_a_rollout_may():
    """`atClose: Finish`: it is not over because the stage had passed the revision once."""
    hours = PublicationCalendar(
        "office", allow=(build_window("0 1 * * *", "UTC", duration=timedelta(hours=1)),)
    )
    back = decided(Action.ROLLBACK, stage="dev", revision="v1", when=25)
    here = variant("d", "dev", published("v1", 30))
    behind = variant("e", "dev", published("v2", 20), draft=draft("v1"))
    it = facts(
        (DEV,), (here, behind), evidence_of("dev", PASSED, when=32), back,
        now=40, history={("dev", "v1"): passed(1, 20)}, revisions="v1 v2",
        calendars=(replace(hours, lets_finish=True),),
    )  # fmt: skip
    assert evaluate_gates(it).variants["e"].publish
    assert not evaluate_gates(replace(it, calendars=(hours,))).variants["e"].publish


# ---- joins: against a count, minute by minute ----------------------------------------------------

VISITS = st.lists(st.integers(0, LAST), unique=True, max_size=5).map(sorted)


def is_there(changes: Sequence[int], minute: int) -> bool:
    """A stage takes v1 at the first of these minutes, v2 at the second, v1 at the third."""
    return sum(change <= minute for change in changes) % 2 == 1


def longest(ready: Sequence[bool]) -> int:
    """How long the longest stretch is: from when it begins up to the minute at which it is over."""
    best, begun = 0, None
    for minute, now in enumerate(ready):
        if now and begun is None:
            begun = minute
        if begun is not None:
            best = max(best, minute - begun)
        if not now:
            begun = None
    return best


@given(
    visits=st.lists(VISITS, min_size=1, max_size=3),
    require=st.sampled_from(Require),
    soak=st.integers(0, 4),
)
def test_a_join_is_ready_while_enough_before_it_are(visits, require, soak):
    names = [f"s{number}" for number in range(len(visits))]
    rules = [stage(name, verification=()) for name in names]
    join = stage(
        "join", after(*names, require=require, soak=soak), verification=(), control_flow=True
    )
    wanted = enough(require, len(names))
    presence: list[list[bool]] = [[] for _ in names]
    ready: list[bool] = []
    policy_facts = facts((*rules, join), (), now=0, revisions="v1 v2")
    for minute in range(LAST + 1):
        for changes, seen in zip(visits, presence, strict=True):
            seen.append(is_there(changes, minute))
        through = [seen[-1] and longest(seen) >= soak for seen in presence]
        ready.append(sum(through) >= wanted)
        variants = [
            variant(f"v-{name}", name, held(changes, minute))
            for name, changes in zip(names, visits, strict=True)
        ]
        policy_facts = replace(policy_facts, variants=tuple(variants), now=at(minute))
        decision = evaluate_gates(policy_facts)
        policy_facts = replace(policy_facts, history=decision.history)
        assert evaluate_gates(policy_facts).history == decision.history, minute
        past = decision.history.get(("join", "v1"), NO_HISTORY)
        assert compute_soak(past, at(minute)) == timedelta(minutes=longest(ready)), minute
        assert (past.stretch_start is not None and past.left is None) is ready[-1], minute


def held(changes: Sequence[int], minute: int):
    """What the variant of a stage has published then."""
    done = [change for change in changes if change <= minute]
    if not done:
        return None
    return published("v1" if len(done) % 2 else "v2", done[-1])


@pytest.mark.parametrize("require", [Require.ANY, Require.ALL])
def test_joins_of_joins_pass_a_new_stretch_on(require):
    east, west = stage("east", verification=()), stage("west", verification=())
    first = stage(
        "first", after("east", "west", require=require), verification=(), control_flow=True
    )
    second = stage("second", after("first", soak=5), verification=(), control_flow=True)
    last = stage("last", after("second", soak=5))
    p = variant("p", "last", draft=draft("v1"))
    history = {
        ("east", "v1"): stretch(1, longest=2, since=20),
        ("west", "v1"): stretch(1, longest=2, since=20),
        ("first", "v1"): passed(1, 3),
    }
    e, w = (variant(name, name, published("v1", 20)) for name in ("east", "west"))
    it = facts((east, west, first, second, last), (e, w, p), now=20, history=history)
    assert evaluate_gates(it).history["first", "v1"] == stretch(1, longest=2, since=20)
    seen = later(it, 21)
    assert evaluate_gates(seen).stages["last"].next == at(30)
    assert evaluate_gates(later(later(seen, 25), 30)).variants["p"].publish
