"""What the clock makes of a publication: `minReady`, `progressDeadline`, and a person's retry."""

from datetime import timedelta

import pytest
from gates.rolling import bad, released, rolling, rollout_facts, under_way, waiting
from gates.worlds import PASSED, at, decided, evidence_of, reasons_of

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.gates.gate_evaluator import evaluate_gates

MINUTES = [
    pytest.param(5.0, "Verifying", 15, id="verified for a moment"),
    pytest.param(15.0, "Ready", None, id="verified for as long as it is to be"),
]


@pytest.mark.parametrize(("now", "state", "until"), MINUTES)
def test_min_ready(now, state, until):
    it = rollout_facts(
        rolling(min_ready=10), [under_way("a")], evidence_of("prod", PASSED, "v2", when=5), now=now
    )
    decision = evaluate_gates(it)
    assert decision.variants["a"].state == state
    assert decision.next == (at(until) if until else None)
    if until:
        assert reasons_of(decision, "a") == ["MinReadyRunning"]


def test_repeated_passing_evidence_does_not_restart_min_ready():
    again = [evidence_of("prod", PASSED, "v2", when=minute) for minute in (5, 9, 14)]
    it = rollout_facts(rolling(min_ready=10), [under_way("a")], *again, now=15)
    assert evaluate_gates(it).variants["a"].state is VariantState.READY


def test_min_ready_starts_anew_after_a_failure():
    reports = [
        evidence_of("prod", PASSED, "v2", when=5),
        bad(when=8),
        evidence_of("prod", PASSED, "v2", when=9),
    ]
    it = rollout_facts(rolling(min_ready=10), [under_way("a")], *reports, now=15)
    assert evaluate_gates(it).variants["a"].state is VariantState.VERIFYING


DEADLINE = rolling(progress_deadline=10, max_in_flight=1, max_failures=1)


def test_in_flight_until_the_deadline():
    decision = evaluate_gates(rollout_facts(DEADLINE, [under_way("a"), waiting("b")], now=14))
    assert decision.variants["a"].state is VariantState.VERIFYING
    assert decision.next == at(15)


def test_too_long_in_flight_is_failed_and_frees_the_slot():
    decision = evaluate_gates(rollout_facts(DEADLINE, [under_way("a"), waiting("b")], now=15))
    assert decision.variants["a"].state is VariantState.FAILED
    assert "DeadlineExceeded" in reasons_of(decision, "a")
    assert released(decision) == ["b"]


def test_a_deadline_is_not_over_while_min_ready_runs():
    rollout = DEADLINE.model_copy(update={"min_ready": timedelta(minutes=60)})
    reports = evidence_of("prod", PASSED, "v2", when=14)
    assert evaluate_gates(rollout_facts(rollout, [under_way("a")], reports, now=20)).variants[
        "a"
    ].state == ("Verifying")


def test_evidence_after_the_deadline_still_counts():
    decision = evaluate_gates(
        rollout_facts(
            DEADLINE, [under_way("a")], evidence_of("prod", PASSED, "v2", when=30), now=31
        )
    )
    assert decision.variants["a"].state is VariantState.READY


def test_a_retry_gives_the_deadline_anew():
    retry = decided(Action.RETRY, stage="prod", revision="v2", variants=("a",), when=20)
    decision = evaluate_gates(rollout_facts(DEADLINE, [under_way("a")], retry, now=21))
    assert decision.variants["a"].state is VariantState.VERIFYING
    assert decision.next == at(30)
