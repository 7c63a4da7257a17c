"""What a stage tells of itself while it rolls out: what holds it comes first, said as it is."""

import pytest
from gates.test_rollout_budget import (
    bad,
    ok,
    released,
    rolling,
    rollout_facts,
    through,
    under_way,
    waiting,
)
from gates.worlds import decided, evidence_of

from fanout.api.gate_vocabulary import Action, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates

ABOUT_A = {"stage": "prod", "revision": "v2", "variants": ("a",), "when": 7}
SKIPPED = decided(Action.SKIP, reason="rebuilt next week", **ABOUT_A)
RETRIED = decided(Action.RETRY, **ABOUT_A)


def reasons(decision):
    """The reasons of the stage, in their order."""
    return [hold.reason for hold in decision.stages["prod"].holds]


ORDERS = [
    pytest.param(
        (0, [through("a"), under_way("b"), waiting("c")], [bad("a")]),
        [Reason.HALTED, Reason.VERIFICATION_PENDING, Reason.VERIFICATION_FAILED],
        id="that it is halted comes before the variants",
    ),
    pytest.param(
        (1, [through("a"), through("b"), under_way("c")], [bad("a"), ok("b")]),
        [Reason.VERIFICATION_PENDING, Reason.VERIFICATION_FAILED],
        id="a failure that the stage bears comes after what it waits for",
    ),
    pytest.param(
        (0, [through("a"), under_way("b")], [bad("a"), SKIPPED]),
        [Reason.VERIFICATION_PENDING, Reason.SKIPPED],
        id="who was skipped comes after what it waits for",
    ),
]


@pytest.mark.parametrize(("stated", "expected"), ORDERS)
def test_the_order_of_what_holds_a_stage(stated, expected):
    borne, variants, records = stated
    decision = evaluate_gates(rollout_facts(rolling(max_failures=borne), variants, *records))
    assert reasons(decision) == expected


def test_a_variant_skipped_after_its_publication_names_the_decider_and_the_comment():
    decision = evaluate_gates(rollout_facts(rolling(), [through("a")], bad("a"), SKIPPED))
    view = decision.variants["a"]
    assert view.state is VariantState.SKIPPED
    [hold] = view.holds
    assert hold.reason == Reason.SKIPPED
    assert hold.message == "skipped for v2 by ann: rebuilt next week"
    assert hold.who == gate_wording.ANY_PROMOTER_RETRY


def test_a_failure_before_a_retry_says_that_the_retry_took_it_back():
    decision = evaluate_gates(rollout_facts(rolling(), [through("a")], bad("a"), RETRIED))
    [check] = decision.variants["a"].checks
    assert check.verdict is Verdict.PENDING
    assert "was recorded before v2 was retried" in check.message


def test_evidence_from_before_the_publication_is_still_called_so():
    early = evidence_of("prod", Verdict.FAILED, "v2", when=4, variants=("a",))
    decision = evaluate_gates(rollout_facts(rolling(), [through("a")], early, RETRIED))
    [check] = decision.variants["a"].checks
    assert "was recorded before v2 was published" in check.message


def test_a_variant_without_a_slot_names_the_limit_in_numbers():
    rule = rolling(max_in_flight=1)
    decision = evaluate_gates(rollout_facts(rule, [under_way("a"), waiting("b")]))
    assert released(decision) == []
    [hold] = decision.variants["b"].holds
    assert (hold.reason, hold.message) == (
        Reason.BUDGET_EXHAUSTED,
        "in-flight limit reached (1 of 1)",
    )
    assert hold.who == gate_wording.format_budget_actor(gate_wording.REPORTER)
