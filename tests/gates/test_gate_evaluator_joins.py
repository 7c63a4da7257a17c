"""Stages without targets: they join others and forward verdicts and clocks.

Kargo's issues 6360 and 4376 are what this is about: soak behind such a stage never ended, and what
a person allowed there reached nobody.
"""

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    after,
    at,
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

from fanout.api.gate_vocabulary import Require
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

EU, US = stage("eu"), stage("us")


def join(name, *upstreams, **fields):
    """A stage that only joins."""
    return stage(name, after(*upstreams, **fields), verification=(), control_flow=True)


def has(name, of, revision="v1", when=0):
    return variant(name, of, published(revision, when))


def build_facts(*rules, records=(), variants=(), **fields):
    variants = variants or (has("e", "eu"), has("u", "us"))
    return facts([EU, US, *rules], [*variants, *_last(rules)], *records, **fields)


def _last(rules):
    return [variant("p", rule.name, draft=draft("v1")) for rule in rules if not rule.control_flow]


OK = (evidence_of("eu", PASSED), evidence_of("us", PASSED))
ROWS = [
    pytest.param("All", OK, PASSED, id="all of both"),
    pytest.param("All", OK[:1], PENDING, id="all of both, and one has not answered"),
    pytest.param(
        "All", (OK[0], evidence_of("us", FAILED)), FAILED, id="all of both, and one has failed"
    ),
    pytest.param(
        "Any", (OK[0], evidence_of("us", FAILED)), PASSED, id="any of both, and one has failed"
    ),
    pytest.param("Majority", OK[:1], PENDING, id="one of two is no majority"),
    pytest.param("Majority", OK, PASSED, id="two of two are"),
]


@pytest.mark.parametrize(("require", "records", "verdict"), ROWS)
def test_a_join_has_the_verdict_of_its_gate(require, records, verdict):
    both = join("both", "eu", "us", require=Require(require))
    decision = evaluate_gates(build_facts(both, stage("prod", after("both")), records=records))
    assert decision.stages["both"].verdict is verdict
    assert decision.stages["prod"].gate is verdict
    assert decision.variants["p"].publish is (verdict is PASSED)


def test_a_verdict_goes_through_any_number_of_joins():
    rules = [join("j0", "eu", "us"), *(join(f"j{n}", f"j{n - 1}") for n in range(1, 30))]
    decision = evaluate_gates(build_facts(*rules, stage("prod", after("j29")), records=OK))
    assert decision.variants["p"].publish


def test_a_diamond_of_joins_is_asked_once_per_stage():
    rules = [join("j0", "eu", "us")]
    for level in range(1, 25):
        before = [rule.name for rule in rules if rule.name.startswith(f"j{level - 1}")]
        rules += [join(f"j{level}{side}", *before) for side in "ab"]
    last = [rule.name for rule in rules if rule.name.startswith("j24")]
    decision = evaluate_gates(build_facts(*rules, stage("prod", after(*last)), records=OK[:1]))
    assert decision.stages["prod"].gate is PENDING


def test_soaks_along_a_path_add():
    both = join("both", "eu", "us", soak=60)
    prod = stage("prod", after("both", soak=30))
    it = build_facts(both, prod, records=OK, now=10)
    it = later(it, 20)  # both upstreams have passed since 1
    assert evaluate_gates(it).stages["both"].verdict is PENDING
    assert evaluate_gates(it).next == at(61)
    it = later(it, 70)
    assert evaluate_gates(it).stages["both"].verdict is PASSED
    assert not evaluate_gates(it).variants["p"].publish
    it = later(it, 75)
    assert evaluate_gates(it).next == at(91)
    it = later(it, 91)
    assert evaluate_gates(it).variants["p"].publish


def test_the_clock_of_a_join_ends_when_too_few_are_at_the_revision():
    both = join("both", "eu", "us")
    prod = stage("prod", after("both", soak=60))
    moved = (has("e", "eu", "v2", 30), has("u", "us"))
    history = {("eu", "v1"): passed(10, 30), ("us", "v1"): passed(10), ("both", "v1"): passed(10)}
    it = build_facts(
        both, prod, records=OK, variants=moved, history=history, now=200, revisions="v1 v2"
    )
    decision = evaluate_gates(it)
    assert decision.history["both", "v1"] == passed(10, 30)
    assert not decision.variants["p"].publish
    assert decision.stages["prod"].candidate == "v2", "v1 can pass no more"


def test_the_clock_of_any_join_goes_on_while_one_is_there():
    both = join("both", "eu", "us", require=Require.ANY)
    prod = stage("prod", after("both", soak=60))
    moved = (has("e", "eu", "v2", 30), has("u", "us"))
    history = {("eu", "v1"): passed(10, 30), ("us", "v1"): passed(10), ("both", "v1"): passed(10)}
    it = build_facts(
        both, prod, records=OK, variants=moved, history=history, now=80, revisions="v1 v2"
    )
    assert evaluate_gates(it).history["both", "v1"] == passed(10)
    assert evaluate_gates(it).variants["p"].publish


def test_withdrawn_evidence_goes_through_a_join():
    both = join("both", "eu", "us")
    it = later(build_facts(both, stage("prod", after("both", soak=5)), records=OK), 20)
    it = later(it, 30, evidence_of("eu", FAILED, when=25))
    decision = evaluate_gates(it)
    assert decision.stages["both"].verdict is FAILED
    assert ("both", "v1") not in decision.history


def test_a_join_stage_has_no_variants():
    it = build_facts(join("both", "eu", "us"), records=OK)
    lost = replace(it, variants=(*it.variants, variant("x", "both", draft=draft("v1"))))
    decision = evaluate_gates(lost)
    assert reasons_of(decision, "x") == ["NotInStage"]
    assert decision.stages["both"].verdict is PASSED
