"""Conditions that need the sandbox: what is asked of it, how often, and what comes of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import pytest
from gates.worlds import draft, facts, stage, variant
from reconcile.builders import NOW

from fanout.gates.gate_facts import PolicyFacts
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.ports import Sandbox
from fanout.reconcile.selection.propagation_conditions import MAX_ROUNDS, PropagationConditions
from fanout.selection.variant_spec import ASK, ExpressionFailure, InProcessExpression


class StubSandbox:
    """Answers by a function of the row, and counts what it is asked; nothing is a closure."""

    closure: InProcessExpression | None = None  # of every expression

    def __init__(self, *names: str, answer: Callable[[Mapping[str, Any]], object]) -> None:
        self.batches: list[int] = []
        self._names, self._answer = frozenset(names), answer

    def free_variables(self, expressions: Sequence[str], _: object) -> Any:
        return [self._names for _ in expressions], []

    def closures(self, expressions: Sequence[str]) -> list[InProcessExpression | None]:
        return [self.closure for _ in expressions]

    def evaluate(
        self, _: object, rows: Sequence[Mapping[str, Any]], budget: EvaluationBudget | None
    ) -> list[list[object]]:
        self.batches.append(len(rows))
        if budget is not None and (refusal := budget.find_refusal("x")) is not None:
            return [[refusal] * len(rows)]
        return [[self._answer(row) for row in rows]]


def conditions_of(sandbox: StubSandbox) -> PropagationConditions:
    return PropagationConditions(cast(Sandbox, sandbox))


def build_facts(conditions: PropagationConditions, number: int) -> PolicyFacts:
    """So many drafts in a stage with one condition; the variables have their numbers."""
    rule = stage("dev", propagate_when=(conditions.get_condition("x"),))
    variants = [
        variant(
            f"v{index:04}",
            "dev",
            draft=draft("v1"),
            variables={"target": {"number": index}, "variant": {"stage": "dev"}},
        )
        for index in range(number)
    ]
    return facts([rule], variants)


def released(conditions: PropagationConditions, number: int) -> list[int]:
    decision = conditions.decide(build_facts(conditions, number))
    assert decision.unanswered == ()
    return [int(name[1:]) for name in decision.stages["dev"].released]


def test_all_rows_are_a_single_batch_and_unchanged_rows_are_none():
    sandbox = StubSandbox("target", answer=lambda row: row["target"]["number"] % 2 == 0)
    conditions = conditions_of(sandbox)
    assert released(conditions, 10) == [0, 2, 4, 6, 8]
    assert released(conditions, 10) == [0, 2, 4, 6, 8]
    assert sandbox.batches == [10]


def test_rows_that_closures_leave_are_a_single_batch_within_the_budget_of_the_policy():
    sandbox = StubSandbox("target", answer=lambda row: True)
    sandbox.closure = InProcessExpression("x", {}, lambda row: row["target"]["number"] < 3 or ASK)
    spent = EvaluationBudget(NOW)
    spent.note_excess("y", "slow")
    conditions = conditions_of(sandbox)
    decision = conditions.decide(build_facts(conditions, 10), spent)
    assert len(decision.stages["dev"].released) == 3
    assert [hold.reason for hold in decision.variants["v0009"].holds] == ["LimitExceeded"]
    assert len(conditions.decide(build_facts(conditions, 10), None).stages["dev"].released) == 10
    assert sandbox.batches == [7, 7]


def test_equal_rows_are_asked_once():
    sandbox = StubSandbox("variant", answer=lambda row: True)
    assert released(conditions_of(sandbox), 10) == list(range(10))
    assert sandbox.batches == [1]


def three_of_the_last_fifty(row: Mapping[str, Any]) -> bool:
    return bool(row["target"]["number"] >= 950 and row["stage"]["inFlight"] < 3)


def test_many_who_may_not_go_cost_no_round_each():
    sandbox = StubSandbox("target", "stage", answer=three_of_the_last_fifty)
    assert released(conditions_of(sandbox), 1000) == [950, 951, 952]
    assert len(sandbox.batches) < 10


def every_other(row: Mapping[str, Any]) -> bool:
    return bool(row["target"]["number"] % 2 == 0 and row["stage"]["updated"] >= 0)


def test_after_so_many_rounds_what_is_open_holds_and_the_next_pass_goes_on():
    sandbox = StubSandbox("target", "stage", answer=every_other)
    conditions = conditions_of(sandbox)
    decision = conditions.decide(build_facts(conditions, 150))
    assert decision.unanswered == ()
    first = [int(name[1:]) for name in decision.stages["dev"].released]
    assert len(first) >= MAX_ROUNDS - 1
    assert all(number % 2 == 0 for number in first)
    assert [hold.reason for hold in decision.variants["v0149"].holds] == ["LimitExceeded"]
    assert len(sandbox.batches) == MAX_ROUNDS
    assert len(released(conditions, 150)) > len(first)


@pytest.mark.parametrize(
    ("reason", "batches"), [("LimitExceeded", 2), ("ExpressionError", 1)], ids=str
)
def test_a_row_that_exceeded_a_limit_is_asked_again_in_the_next_pass(reason, batches):
    sandbox = StubSandbox("variant", answer=lambda row: ExpressionFailure(reason, "so it is"))
    conditions = conditions_of(sandbox)
    for _ in range(2):
        conditions.begin_pass()
        for _ in range(2):
            assert released(conditions, 3) == []
    assert len(sandbox.batches) == batches


def test_a_row_refused_by_the_budget_of_a_policy_is_asked_for_another():
    sandbox = StubSandbox("variant", answer=lambda row: True)
    conditions = conditions_of(sandbox)
    spent, whole = EvaluationBudget(NOW), EvaluationBudget(NOW)
    spent.note_excess("y", "slow")
    decision = conditions.decide(build_facts(conditions, 3), spent)
    assert [hold.reason for hold in decision.variants["v0000"].holds] == ["LimitExceeded"]
    assert len(conditions.decide(build_facts(conditions, 3), whole).stages["dev"].released) == 3
