"""`propagateWhen`: what it sees, what its answers do, and what is asked of whom."""

import pytest
from gates.worlds import (
    PASSED,
    draft,
    evidence_of,
    facts,
    grant,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_rules import UNKNOWN, PropagationCondition
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import replace


def when(text, ask):
    return PropagationCondition(text, ask)


def waiting(name, **fields):
    return variant(name, "prod", published("v1"), draft=draft("v2"), **fields)


def build_facts(*conditions, names="abcde", **fields):
    variants = fields.pop("variants", None) or [waiting(name) for name in names]
    rule = stage("prod", propagate_when=conditions)
    return facts([rule], variants, evidence_of("prod", PASSED, "v1"), revisions="v1 v2", **fields)


def released(it):
    return "".join(evaluate_gates(it).stages["prod"].released)


FEW = when("stage.inFlight < 3", lambda row: row["stage"]["inFlight"] < 3)
NO, YES = when("false", lambda _: False), when("true", lambda _: True)
BROKEN = when("nope", lambda _: ExpressionFailure("ExpressionError", "no such field"))
TEXT = when("'a'", lambda _: "a")
ROWS = [
    pytest.param((), "abcde", [], id="none: no further condition"),
    pytest.param((FEW,), "abc", ["PropagationHeld"], id="counted on with each release"),
    pytest.param((YES,), "abcde", [], id="true"),
    pytest.param((NO,), "", ["PropagationHeld"], id="false"),
    pytest.param((YES, NO), "", ["PropagationHeld"], id="all must be true"),
    pytest.param((BROKEN,), "", ["ExpressionError"], id="an error holds"),
    pytest.param((BROKEN, NO), "", ["PropagationHeld", "ExpressionError"], id="false and error"),
    pytest.param((NO, BROKEN), "", ["PropagationHeld", "ExpressionError"], id="in any order"),
    pytest.param((TEXT,), "", ["ExpressionError"], id="text is neither true nor false"),
]


@pytest.mark.parametrize(("conditions", "goes", "reasons"), ROWS)
def test_a_condition_releases_or_holds_variants_by_its_result(conditions, goes, reasons):
    it = build_facts(*conditions)
    assert released(it) == goes
    assert reasons_of(evaluate_gates(it), "e") == reasons


def test_a_condition_reads_the_stage_the_variant_the_target_and_the_revision():
    seen = []
    variables = {
        "target": {"kind": "Cluster"},
        "variant": {"name": "a"},
        "upstream": {"package": "p"},
    }
    it = build_facts(
        when("x", lambda row: seen.append(row) or True),
        variants=[waiting("a", variables=variables)],
    )
    evaluate_gates(it)
    assert seen == [
        {
            "stage": {"total": 1, "updated": 0, "ready": 0, "inFlight": 0, "failed": 0},
            "target": {"kind": "Cluster"},
            "variant": {"name": "a"},
            "upstream": {"package": "p", "revision": "v2"},
        }
    ]


def test_the_slot_that_a_variant_has_is_not_in_its_own_way():
    few = when("stage.inFlight < 1", lambda row: row["stage"]["inFlight"] < 1)
    on_its_way = variant("a", "prod", published("v0", 5), draft=draft("v2"))
    assert released(build_facts(few, variants=[on_its_way, waiting("b")])) == "a"


def test_an_unanswered_condition_is_requested_and_holds():
    answers = {}
    ask = when("sandboxed", lambda row: answers.get(row["stage"]["inFlight"], UNKNOWN))
    it = build_facts(ask)
    decision = evaluate_gates(it)
    assert decision.stages["prod"].released == ()
    while decision.unanswered:
        answers |= {
            wanted.variables["stage"]["inFlight"]: wanted.variables["stage"]["inFlight"] < 2
            for wanted in decision.unanswered
        }
        decision = evaluate_gates(it)
    assert decision.stages["prod"].released == ("a", "b")


def test_questions_are_asked_ahead_so_that_rounds_are_few():
    answers, rounds = {}, 0
    ask = when("sandboxed", lambda row: answers.get(row["stage"]["inFlight"], UNKNOWN))
    it = build_facts(ask, variants=[waiting(f"n{number:03}") for number in range(300)])
    decision = evaluate_gates(it)
    while decision.unanswered:
        rounds += 1
        answers |= {wanted.variables["stage"]["inFlight"]: True for wanted in decision.unanswered}
        decision = evaluate_gates(it)
    assert len(decision.stages["prod"].released) == 300
    assert rounds <= 3


def test_a_condition_is_not_evaluated_for_a_released_variant():
    it = build_facts(NO, variants=[waiting("a", grant=grant("v2"))])
    assert evaluate_gates(it).variants["a"].publish
    assert evaluate_gates(replace(it, suspended=True)).variants["a"].publish is False
