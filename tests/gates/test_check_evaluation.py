"""Answers of machines: three values, when they count, and what withdraws them."""

from datetime import timedelta

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    at,
    check_rule,
    draft,
    facts,
    grant,
    published,
    stage,
    variant,
    with_spec,
)

from fanout.api.gate_vocabulary import CheckMethod, VariantState
from fanout.api.results import CheckAnswer
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import CheckReading
from fanout.values import replace

HEALTH = check_rule("health", CheckMethod.OBJECT)


def minutes(number):
    return timedelta(minutes=number)


def reading(verdict, revision="v1", seen=""):
    return CheckReading("health", f"digest-{revision}", verdict, "it says so", seen)


def answer(verdict, when, revision="v1"):
    return CheckAnswer("health", f"digest-{revision}", verdict, at(when), "it said so")


def dev(rule=HEALTH, readings=(), answers=(), now=10.0, **fields):
    it = variant("d", "dev", published("v1"), readings=readings, answers=answers, **fields)
    return facts([stage("dev", verification=(rule,))], [it], now=now)


ROWS = [
    pytest.param((), (), "Verifying", None, id="nobody was asked"),
    pytest.param((reading(PASSED),), (), "Ready", 10, id="passed: the answer is kept"),
    pytest.param((reading(FAILED),), (), "Failed", 10, id="failed"),
    pytest.param((reading(PENDING),), (), "Verifying", None, id="unreachable holds"),
    pytest.param((reading(PENDING),), (answer(PASSED, 3),), "Ready", 3,
                 id="unreachable changes nothing once an answer was given"),
    pytest.param((), (answer(PASSED, 3),), "Ready", 3, id="nor does silence"),
    pytest.param((reading(PASSED),), (answer(PASSED, 3),), "Ready", 3,
                 id="the same answer keeps its instant"),
    pytest.param((reading(FAILED),), (answer(PASSED, 3),), "Failed", 10, id="failed withdraws"),
    pytest.param((reading(PASSED),), (answer(FAILED, 3),), "Ready", 10, id="passed mends"),
    pytest.param((reading(PASSED, "v0"),), (), "Verifying", None, id="about another digest"),
    pytest.param((), (answer(PASSED, 3, "v0"),), "Verifying", None, id="on record about another"),
]  # fmt: skip


@pytest.mark.parametrize(("readings", "answers", "state", "since"), ROWS)
def test_a_machine_s_answer(readings, answers, state, since):
    decision = evaluate_gates(dev(readings=readings, answers=answers)).variants["d"]
    assert decision.state == state
    assert [item.at for item in decision.answers] == ([at(since)] if since is not None else [])


SEEN = [
    pytest.param("v1", "Ready", id="the revision"),
    pytest.param("commit-v1", "Ready", id="the commit of the publication"),
    pytest.param("v0", "Verifying", id="an older revision"),
    pytest.param("", "Verifying", id="nothing"),
]


@pytest.mark.parametrize(("seen", "state"), SEEN)
@pytest.mark.parametrize("verdict", [PASSED, FAILED])
def test_only_a_reading_that_has_seen_the_revision_counts(seen, state, verdict):
    rule = replace(HEALTH, names_revision=True)
    state_found = (
        evaluate_gates(dev(rule, readings=(reading(verdict, seen=seen),))).variants["d"].state
    )
    assert state_found == (state if verdict is PASSED or state == "Verifying" else "Failed")


def test_a_machine_check_counts_once_the_variant_has_settled():
    rule = with_spec(HEALTH, settle=minutes(15))
    early = evaluate_gates(dev(rule, readings=(reading(PASSED),)))
    assert early.variants["d"].state is VariantState.VERIFYING
    assert early.next == at(15)
    assert (
        evaluate_gates(dev(rule, readings=(reading(PASSED),), now=15)).variants["d"].state
        == "Ready"
    )


def test_a_missing_answer_fails_at_the_timeout_and_a_late_answer_counts():
    rule = with_spec(HEALTH, timeout=minutes(15))
    assert evaluate_gates(dev(rule)).next == at(15)
    late = evaluate_gates(dev(rule, now=15)).variants["d"]
    assert (late.state, late.checks[0].reason) == ("Failed", "CheckTimedOut")
    later = dev(rule, readings=(reading(PASSED),), now=20)
    assert evaluate_gates(later).variants["d"].state is VariantState.READY


def prod(rule, now=10.0, **fields):
    it = variant("p", "prod", draft=draft("v1"), grant=grant("v1", when=2), **fields)
    return facts([stage("prod", requires=(rule,))], [it], now=now)


REQUIRED = [
    pytest.param({}, "Released", False, id="nobody was asked"),
    pytest.param({"readings": (reading(PASSED),)}, "Proposed", True, id="passed"),
    pytest.param({"readings": (reading(FAILED),)}, "Failed", False, id="failed"),
    pytest.param({"readings": (reading(PENDING),)}, "Released", False, id="pending holds its slot"),
]


@pytest.mark.parametrize(("fields", "state", "publish"), REQUIRED)
def test_before_publication(fields, state, publish):
    decision = evaluate_gates(prod(HEALTH, **fields))
    evaluation = decision.variants["p"]
    assert (evaluation.state, evaluation.publish) == (state, publish)
    assert decision.stages["prod"].aggregates.in_flight == (state != "Failed")


def test_before_publication_an_answer_counts_while_it_is_fresh():
    rule = with_spec(HEALTH, fresh_for=minutes(5))
    fresh = prod(rule, answers=(answer(PASSED, 6),))
    assert evaluate_gates(fresh).variants["p"].publish
    assert evaluate_gates(fresh).next == at(11)
    stale = evaluate_gates(prod(rule, answers=(answer(PASSED, 4),)))
    assert not stale.variants["p"].publish
    assert stale.variants["p"].checks[0].reason == "AnswerStale"


STATUS = check_rule("health", CheckMethod.COMMIT_STATUS, names_revision=True)


def test_a_status_counts_for_the_tree_of_the_draft_and_for_no_other():
    """A commit by a person changes the tree, and not the digest."""

    def after(verdict, tree, answers=()):
        head = replace(draft("v1"), tree=tree, commits=frozenset({"commit"}))
        asked = prod(STATUS, readings=(reading(verdict, seen="commit"),), answers=answers)
        [only] = asked.variants
        return evaluate_gates(replace(asked, variants=(replace(only, draft=head),))).variants["p"]

    passed = after(PASSED, "tree-v1")
    assert (passed.publish, [it.digest for it in passed.answers]) == (True, ["tree-v1"])
    assert after(PENDING, "tree-v1", passed.answers).publish, "no answer withdraws none"
    edited = after(PENDING, "tree-edited", passed.answers)
    assert (edited.publish, edited.state, edited.answers) == (False, "Released", ())
    again = after(PASSED, "tree-edited", passed.answers)
    assert (again.publish, [it.digest for it in again.answers]) == (True, ["tree-edited"])
