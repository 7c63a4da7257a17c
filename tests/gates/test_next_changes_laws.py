"""Law of the next instant: a gate opens by time alone exactly when the stage says so."""

from datetime import timedelta

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    after,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    later,
    passed,
    published,
    stage,
    variant,
)
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import Action, Require
from fanout.api.stages import Rollout
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import PolicyFacts
from fanout.values import replace

NOW = 10
LAST = 70


def minutes(number: int) -> timedelta:
    """So many minutes."""
    return timedelta(minutes=number)


def opens(policy_facts: PolicyFacts, name: str) -> float | None:
    """When the gate of a stage first holds, minute by minute, if nobody does anything."""
    for minute in range(NOW, LAST):
        policy_facts = later(policy_facts, minute)
        if evaluate_gates(policy_facts).stages[name].gate is PASSED:
            return minute
    return None


EVIDENCE = st.lists(
    st.builds(
        evidence_of,
        st.just("dev"),
        st.sampled_from([PASSED, PASSED, FAILED, PENDING]),
        when=st.integers(4, 20),
        by=st.sampled_from(["ci", "ann"]),
        variants=st.sampled_from([(), ("a",), ("b",)]),
    ),
    max_size=4,
).map(lambda said_all: [it for it in said_all if it.spec.status is PASSED or it.at <= at(NOW)])
"""What is dated ahead and takes something back is no clock: the engine wakes at it all the same."""
ROLLOUTS = st.builds(
    Rollout,
    min_ready=st.sampled_from([0, 0, 7, 12]).map(minutes),
    max_failures=st.sampled_from([0, 0, 1]),
    progress_deadline=st.sampled_from([None, minutes(8), minutes(15)]),
)


@given(
    evidence=EVIDENCE,
    rollout=ROLLOUTS,
    timeout=st.sampled_from([None, minutes(9)]),
    soak=st.sampled_from([0, 5]),
    join=st.sampled_from([None, 0, 3]),
    left_at=st.booleans(),
)
def test_a_gate_opens_by_time_when_the_stage_says_so_and_not_before(
    evidence, rollout, timeout, soak, join, left_at
):
    dev = stage("dev", verification=(check_rule("e2e", timeout=timeout),), rollout=rollout)
    before = "dev" if join is None else "join"
    joins = stage("join", after("dev", soak=join or 0), verification=(), control_flow=True)
    prod = stage("prod", after(before, soak=soak))
    policy_facts = facts(
        (dev, joins, prod),
        (
            variant("a", "dev", published("v1", 2)),
            variant("b", "dev", published("v1", 3)),
            variant("p", "prod", draft=draft("v1")),
        ),
        *sorted(evidence, key=lambda it: it.at),
        now=NOW,
        history={("dev", "v1"): passed(-30, -29)} if left_at else {},
    )
    settled = later(policy_facts, NOW)
    evaluation = evaluate_gates(settled).stages["prod"]
    instant = opens(settled, "prod")
    if instant == NOW:
        assert evaluation.gate is PASSED
        return
    assert evaluation.next == (at(instant) if instant is not None else None), evaluation.holds
    seen = evaluate_gates(settled)
    assert seen.next is None or evaluation.next is None or seen.next <= evaluation.next


BY_TIME = stage("dev", rollout=Rollout(min_ready=minutes(45)))
D, P = variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))


def ready(*records, rules=(), variants=(D, P), now=16.0, **fields):
    """Dev is verified since minute 1, and has to stay so for 45 minutes."""
    rules = rules or (BY_TIME, stage("prod", after("dev")))
    return facts(rules, variants, evidence_of("dev", PASSED), *records, now=now, **fields)


NEXT = [
    ("it is ready by time alone", ready(), 46),
    ("and then it soaks", ready(rules=(BY_TIME, stage("prod", after("dev", soak=30)))), 76),
    ("behind a join", ready(rules=(
        BY_TIME, stage("join", after("dev"), verification=(), control_flow=True),
        stage("prod", after("join", soak=5)))), 51),
    ("another one is not there yet", ready(variants=(D, P, variant("e", "dev"))), None),
    ("another one is not verified",
     ready(variants=(D, P, variant("e", "dev", published("v1", 2)))), None),
    ("another one is skipped", ready(
        decided(Action.SKIP, variants=("e",), stage="dev", revision="v1"),
        variants=(D, P, variant("e", "dev", published("v1", 2)))), 46),
    ("any of two, and one goes by time", ready(
        rules=(BY_TIME, stage("eu"),
               stage("prod", after("dev", "eu", require=Require.ANY))),
        variants=(D, P, variant("e", "eu"))), 46),
    ("all of two, and one waits for somebody", ready(
        rules=(BY_TIME, stage("eu"), stage("prod", after("dev", "eu"))),
        variants=(D, P, variant("e", "eu"))), None),
]  # fmt: skip


@pytest.mark.parametrize(("_", "it", "minute"), NEXT, ids=[row[0] for row in NEXT])
def test_the_next_instant_behind_a_stage_in_which_a_clock_runs(_, it, minute):
    evaluation = evaluate_gates(it)
    instant = at(minute) if minute is not None else None
    assert evaluation.stages["prod"].next == instant
    assert evaluation.variants["p"].next == instant


def test_a_failure_that_is_borne_opens_the_gate_at_its_deadline():
    rollout = Rollout(max_failures=1, progress_deadline=minutes(40))
    rules = (stage("dev", rollout=rollout), stage("prod", after("dev")))
    late = variant("e", "dev", published("v1", 2))
    it = facts(rules, (D, late, P), evidence_of("dev", PASSED, variants=("d",)), now=16)
    assert evaluate_gates(it).stages["prod"].next == at(42)
    strict = replace(rules[0], rollout=rollout.model_copy(update={"max_failures": 0}))
    assert evaluate_gates(replace(it, stages=(strict, rules[1]))).stages["prod"].next is None


def test_a_variant_without_a_slot_waits_for_future_evidence_and_then_min_ready():
    rule = stage("dev", rollout=Rollout(max_in_flight=1, min_ready=minutes(10)))
    waits = variant("e", "dev", draft=draft("v1"))
    it = facts((rule,), (D, waits), evidence_of("dev", PASSED, when=14), now=10)
    evaluation = evaluate_gates(it)
    assert (evaluation.variants["d"].next, evaluation.variants["e"].next) == (at(14), at(24))
    assert evaluation.variants["e"].holds[0].who == gate_wording.format_budget_actor(
        gate_wording.TIME_ALONE
    )
