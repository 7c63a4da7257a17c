"""Windows at the gates: what waits for them, what they let through, and when the engine wakes."""

from datetime import timedelta

import pytest
from gates.worlds import (
    OK,
    PASSED,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    grant,
    prod,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, VariantState
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

# T0 is midnight, the first of January 2026, UTC
MORNING = build_window("0 1 * * *", "UTC", duration=timedelta(hours=1))
OFFICE = PublicationCalendar("office", allow=(MORNING,))
FINISHING = replace(OFFICE, lets_finish=True)
FREEZE = PublicationCalendar("freeze", deny=(MORNING,))
ROWS = [
    pytest.param((), 10, True, None, id="without windows it is always open"),
    pytest.param((OFFICE,), 10, False, 60, id="before an allowed time"),
    pytest.param((OFFICE,), 60, True, 120, id="at its first instant"),
    pytest.param((OFFICE,), 119, True, 120, id="in its last minute"),
    pytest.param((OFFICE,), 120, False, 60 + 1440, id="at its end"),
    pytest.param((FREEZE,), 10, True, 60, id="before a denied time"),
    pytest.param((FREEZE,), 60, False, 120, id="in a denied time"),
    pytest.param((FREEZE,), 120, True, 60 + 1440, id="after it"),
    pytest.param((OFFICE, FREEZE), 60, False, None, id="deny beats allow, for ever here"),
]


@pytest.mark.parametrize(("calendars", "now", "goes", "edge"), ROWS)
def test_the_edge_of_a_window_is_a_next_instant(calendars, now, goes, edge):
    decision = evaluate_gates(prod(OK, now=now, policy_fields={"calendars": calendars}))
    assert decision.variants["p"].publish is goes
    assert decision.variants["p"].release is goes
    assert decision.next == (at(edge) if edge is not None else None)
    assert ("WindowClosed" in reasons_of(decision, "p")) is not goes


def test_a_policy_that_waits_for_a_window_and_for_people_is_not_stuck():
    rules = [stage("dev", automatic=False)]
    variants = [variant(name, "dev", draft=draft("v1")) for name in ("a", "b")]
    decision = evaluate_gates(facts(rules, variants, calendars=(OFFICE,)))
    assert reasons_of(decision, "a") == ["WindowClosed", "AutomationOff"]
    assert "Stuck" not in {it.reason for it in decision.holds}, "it goes on when the window opens"


def test_a_release_does_not_outlive_its_window():
    decision = evaluate_gates(
        prod(OK, grant=grant("v1"), now=10, policy_fields={"calendars": (OFFICE,)})
    )
    assert decision.variants["p"].state is VariantState.RELEASED
    assert not decision.variants["p"].publish


def test_windows_bind_people_too_unless_overridden():
    plain = decided(Action.PUBLISH, stage="prod", revision="v1")
    decision = evaluate_gates(prod(OK, plain, policy_fields={"calendars": (OFFICE,)}))
    assert not decision.variants["p"].publish
    lifting = decided(Action.PUBLISH, OverridableGate.WINDOW, stage="prod", revision="v1")
    decision = evaluate_gates(prod(OK, lifting, policy_fields={"calendars": (OFFICE,)}))
    assert decision.variants["p"].publish


def half_way(*more, calendars=(OFFICE,), **fields):
    variants = [
        variant("a", "prod", published("v2", 5)),
        variant("b", "prod", published("v1"), draft=draft("v2")),
    ]
    return facts(
        [stage("prod")], variants,
        evidence_of("prod", PASSED, "v1"), evidence_of("prod", PASSED, "v2", when=6),
        *more, revisions="v1 v2", calendars=calendars, **fields,
    )  # fmt: skip


def test_at_close_a_rollout_holds():
    assert not evaluate_gates(half_way()).variants["b"].publish


def test_at_close_a_rollout_that_has_begun_goes_on_where_it_may_finish():
    assert evaluate_gates(half_way(calendars=(FINISHING,))).variants["b"].publish


def test_a_rollout_that_has_not_begun_waits_where_it_may_finish():
    policy_facts = prod(OK, policy_fields={"calendars": (FINISHING,)})
    assert not evaluate_gates(policy_facts).variants["p"].publish


def test_all_that_are_closed_must_let_it_finish():
    both = (FINISHING, PublicationCalendar("other", allow=(MORNING,)))
    assert not evaluate_gates(half_way(calendars=both)).variants["b"].publish


def test_a_closed_window_is_no_reason_to_be_stuck():
    decision = evaluate_gates(prod(OK, policy_fields={"calendars": (OFFICE,)}))
    assert [str(hold.reason) for hold in decision.holds] == []


def test_a_window_that_never_opens_is():
    decision = evaluate_gates(prod(OK, now=60, policy_fields={"calendars": (OFFICE, FREEZE)}))
    assert [str(hold.reason) for hold in decision.holds] == ["Stuck"]


def test_windows_that_cannot_be_read_are_closed_unless_overridden():
    plain = decided(Action.PUBLISH, stage="prod", revision="v1")
    closed = evaluate_gates(prod(OK, plain, policy_fields={"has_unreadable_calendar": True}))
    assert reasons_of(closed, "p") == ["WindowClosed"]
    assert closed.next is None
    lifting = decided(Action.PUBLISH, OverridableGate.WINDOW, stage="prod", revision="v1")
    unreadable = prod(OK, lifting, policy_fields={"has_unreadable_calendar": True})
    assert evaluate_gates(unreadable).variants["p"].publish


def test_the_edge_is_reported_though_no_variant_waits_for_it():
    """What a move has left may wait for it, as may what has no target."""
    done = [variant("p", "prod", published("v1"))]
    policy_facts = facts([stage("prod")], done, evidence_of("prod", PASSED), calendars=(OFFICE,))
    assert evaluate_gates(policy_facts).next == at(60)
