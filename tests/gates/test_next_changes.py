"""Instants that are told are honest: nothing changes before them, and something does at them."""

from datetime import timedelta

import pytest
from gates.rolling import ok, rolling, rollout_facts, under_way, waiting
from gates.worlds import (
    OK,
    PASSED,
    SIGNED,
    after,
    approved,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    grant,
    passed,
    prod,
    published,
    stage,
    variant,
    with_spec,
)

from fanout.api.gate_vocabulary import Action, OverridableGate
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

HOUR = PublicationCalendar(
    "office", allow=(build_window("0 1 * * *", "UTC", duration=timedelta(hours=1)),)
)
SLOW = check_rule("e2e", timeout=timedelta(minutes=100))
SLOWER = with_spec(SLOW, timeout=timedelta(minutes=300))
ONE = {"max_in_flight": 1}


def rolled(*variants, check="e2e", records=(), now=10, **rollout):
    """A rollout of v2 that began at minute 5."""
    return rollout_facts(
        rolling(**rollout), variants, *records, now=now, rule={"verification": (check,)}
    )


def office(*records, soak=0.0, history=None, **fields):
    """A variant behind dev, while the window that opens at minute 60 is closed."""
    rule = stage("prod", after("dev", soak=soak), **fields)
    beside = {"calendars": (HOUR,), "history": history or {}}
    return prod(OK, *records, rule=rule, policy_fields=beside)


SOAKS = {("dev", "v1"): passed(5)}
LIFTED = decided(Action.PUBLISH, OverridableGate.WINDOW, stage="prod", revision="v1")
BOTH = (approved("ann"), approved("bob"))
A, B, C = under_way("a"), waiting("b"), waiting("c")
GROUPED = (under_way("a"), waiting("b", group=1), waiting("c", group=2))
MIN_READY = {"min_ready": 60, "now": 62}  # what is at v1 is ready since minute 61

NEXT = [
    ("its deadline comes before its check times out",
     rolled(A, check=SLOW, progress_deadline=40), {"a": 45}),
    ("its check times out before its deadline",
     rolled(A, check=SLOW, progress_deadline=200), {"a": 105}),
    ("nothing is timed", rolled(A), {"a": None}),
    ("the window is all that holds it", office(), {"p": 60}),
    ("the window opens before the soak is over", office(soak=120, history=SOAKS), {"p": 125}),
    ("the soak is over before the window opens", office(soak=30, history=SOAKS), {"p": 60}),
    ("a person has to sign as well", office(requires=(SIGNED,)), {"p": None}),
    ("people have signed", office(*BOTH, requires=(SIGNED,)), {"p": 60}),
    ("a person has to promote as well", office(automatic=False), {"p": None}),
    ("a person has lifted the window, and another has to sign",
     office(LIFTED, requires=(SIGNED,)), {"p": None}),
    ("who is in flight fails at its deadline, which frees its slot for the first that waits",
     rolled(A, B, C, **ONE, max_failures=1, progress_deadline=40), {"b": 45, "c": None}),
    ("who is in flight is verified, so that time alone frees the slot",
     rolled(A, B, C, records=(ok("a"),), **ONE, **MIN_READY), {"a": 66, "b": 66, "c": None}),
    ("the next group begins when time is over, and one after it when somebody answers",
     rolled(*GROUPED, records=(ok("a"),), **MIN_READY), {"b": 66, "c": None}),
    ("the group before is at another revision still",
     rolled(replace(A, published=published("v1")), waiting("b", group=1), **MIN_READY),
     {"b": None}),
]  # fmt: skip


def decided_for(it, name, when):
    """What is decided for a variant then, when a pass has been and nothing else has happened."""
    facts_then = replace(it, history=evaluate_gates(it).history, now=when)
    evaluations = evaluate_gates(facts_then).variants[name]
    return (
        evaluations.state,
        evaluations.release,
        evaluations.publish,
        [hold.reason for hold in evaluations.holds],
    )


@pytest.mark.parametrize(("_", "it", "wanted"), NEXT, ids=[row[0] for row in NEXT])
def test_the_decision_changes_at_the_next_instant_and_not_before(_, it, wanted):
    evaluations = evaluate_gates(it).variants
    assert {name: evaluations[name].next for name in wanted} == {
        name: at(minute) if minute is not None else None for name, minute in wanted.items()
    }
    for name, minute in wanted.items():
        if minute is not None:
            now = decided_for(it, name, it.now)
            before = decided_for(it, name, at(minute) - timedelta(seconds=1))
            assert before[:3] == now[:3]
            assert decided_for(it, name, at(minute)) != before


def test_a_variant_that_waits_for_min_ready_alone_waits_for_no_person():
    it = rolled(A, B, records=(ok("a"),), **ONE, **MIN_READY)
    [hold] = evaluate_gates(it).variants["b"].holds
    assert (hold.reason, hold.until) == ("BudgetExhausted", at(66))
    assert hold.who == gate_wording.format_budget_actor(gate_wording.TIME_ALONE)
    [group] = (
        evaluate_gates(rolled(*GROUPED[:2], records=(ok("a"),), **MIN_READY)).variants["b"].holds
    )
    expected = ("GroupAwaits", gate_wording.TIME_ALONE, at(66))
    assert (group.reason, group.who, group.until) == expected
    asked = evaluate_gates(rolled(A, B, **ONE, **MIN_READY)).variants["b"].holds[0]
    assert asked.who == gate_wording.format_budget_actor(gate_wording.REPORTER)
    assert asked.until is None


def test_a_window_is_no_instant_of_a_stage_that_waits_for_a_person():
    shut = office(automatic=False)
    assert evaluate_gates(shut).stages["prod"].next is None
    opens = office()
    assert evaluate_gates(opens).stages["prod"].next == at(60)


def test_a_variant_waits_for_no_window_that_was_overridden():
    it = office(LIFTED, requires=(SIGNED,))
    other = variant("q", "prod", draft=draft("v1"))
    one = with_spec(it.records.decisions[0], variants=("p",))
    both = replace(
        it, variants=(*it.variants, other), records=replace(it.records, decisions=(one,))
    )
    decision = evaluate_gates(both)
    assert decision.variants["p"].next is None


JOINED = (
    stage("dev"),
    stage("both", after("dev", soak=30), verification=(), control_flow=True),
)


def joined(soak, history):
    d, p = variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))
    stages = (*JOINED, stage("prod", after("both", soak=soak)))
    return facts(stages, (d, p), evidence_of("dev", PASSED), history=history)


JOINS = [
    ("the soak before the join is on record", 0, {("dev", "v1"): passed(5)}, 35),
    ("the soak behind it is added", 20, {("dev", "v1"): passed(5)}, 55),
    ("the clock is not on record yet", 20, {}, 51),
]


@pytest.mark.parametrize(("_", "soak", "history", "opens"), JOINS, ids=[row[0] for row in JOINS])
def test_a_stage_behind_a_join_knows_when_the_join_opens(_, soak, history, opens):
    it = joined(soak, history)
    decision = evaluate_gates(it)
    wanted = at(opens) if opens else None
    assert decision.stages["prod"].next == wanted
    [hold] = decision.variants["p"].holds
    assert (hold.reason, hold.until) == ("AfterPending", wanted)
    assert decision.variants["p"].next == wanted
    if wanted is not None:
        assert decision.stages["prod"].holds[0].who == gate_wording.TIME_ALONE


def test_the_actor_before_a_join_is_the_actor_for_the_next_revision():
    """The join itself is through with the one before it."""
    d = variant("d", "dev", published("v2", 5))
    p = variant("p", "prod", published("v1"))
    stages = (*JOINED, stage("prod", after("both")))
    history = {("dev", "v2"): passed(5), ("dev", "v1"): passed(-90, 5), ("both", "v1"): passed(-60)}
    good = (evidence_of("prod", PASSED), evidence_of("dev", PASSED, "v2", when=5))
    view = evaluate_gates(facts(stages, (d, p), *good, history=history, revisions="v1 v2")).stages[
        "prod"
    ]
    [other] = view.others
    [hold] = other.holds
    assert (other.revision, hold.reason) == ("v2", "AfterPending")
    assert (hold.who, hold.until) == (gate_wording.TIME_ALONE, at(35))


def test_a_release_on_record_that_waits_for_a_window_says_when_it_opens():
    it = office()
    granted = replace(it.variants[1], grant=grant("v1"))
    evaluations = evaluate_gates(replace(it, variants=(it.variants[0], granted))).variants["p"]
    assert (evaluations.state, evaluations.next) == ("Released", at(60))
