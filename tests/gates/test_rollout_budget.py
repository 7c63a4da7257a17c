"""Rollouts inside a stage: who is released in which pass, and why the others are not."""

from fractions import Fraction

import pytest
from gates.rolling import bad, ok, released, rolling, rollout_facts, through, under_way, waiting
from gates.worlds import (
    FAILED,
    PASSED,
    decided,
    draft,
    evidence_of,
    grant,
    published,
    reasons_of,
    variant,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, RolloutStrategy, VariantState
from fanout.api.results import Hold
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.percentages import compute_budget, compute_tolerance
from fanout.values import replace


@pytest.mark.parametrize(
    ("amount", "total", "up", "down"),
    [
        pytest.param(Fraction(29, 100), 100, 29, 29, id="29 % of 100 is 29"),
        pytest.param(Fraction(7, 100), 100, 7, 7, id="7 % of 100 is 7"),
        pytest.param(Fraction(14, 100), 50, 7, 7, id="14 % of 50 is 7"),
        pytest.param(Fraction(1, 100), 5, 1, 0, id="1 % of 5 is one to release and none to lose"),
        pytest.param(3, 2, 3, 3, id="a number is what it is"),
    ],
)
def test_shares_are_counted_exactly(amount, total, up, down):
    assert (compute_budget(amount, total), compute_tolerance(amount, total)) == (up, down)


def test_no_share_of_any_total_is_rounded_twice():
    for percent in range(101):
        for total in range(301):
            share = Fraction(percent, 100)
            assert compute_budget(share, total) == -(-percent * total // 100)
            assert compute_tolerance(share, total) == percent * total // 100


def waves(rollout, number):
    """How many each sweep releases when all that is released is ready by the next one."""
    names = [f"n{index:04}" for index in range(number)]
    has = dict.fromkeys(names, "v1")
    released_in_turn = []
    while any(revision == "v1" for revision in has.values()):
        variants = [through(name) if has[name] == "v2" else waiting(name) for name in names]
        decision = evaluate_gates(
            rollout_facts(rollout, variants, evidence_of("prod", PASSED, "v2", when=6))
        )
        assert released(decision), "a rollout that nothing holds goes on"
        released_in_turn.append(len(released(decision)))
        has |= dict.fromkeys(released(decision), "v2")
    return released_in_turn


@pytest.mark.parametrize(
    ("rollout", "number", "expected"),
    [
        pytest.param(
            rolling(strategy=RolloutStrategy.EXPONENTIAL), 1000,
            [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 488],
            id="Exponential over 1000",
        ),
        pytest.param(
            rolling(strategy=RolloutStrategy.EXPONENTIAL, factor=Fraction(3, 2)), 10,
            [1, 1, 1, 1, 2, 3, 1],
            id="Exponential by 1.5 rounds down",
        ),
        pytest.param(
            rolling(strategy=RolloutStrategy.EXPONENTIAL, max_in_flight=3), 10,
            [1, 1, 2, 3, 3],
            id="Exponential, capped",
        ),
        pytest.param(
            rolling(strategy=RolloutStrategy.LINEAR), 3, [1, 1, 1], id="Linear is one at a time"
        ),
        pytest.param(
            rolling(strategy=RolloutStrategy.LINEAR, step=4), 10, [4, 4, 2], id="Linear by 4"
        ),
        pytest.param(rolling(), 7, [7], id="AllAtOnce"),
        pytest.param(rolling(max_in_flight="25%"), 10, [3, 3, 3, 1], id="25 % of 10 rounds up"),
    ],
)  # fmt: skip
def test_waves(rollout, number, expected):
    assert waves(rollout, number) == expected


ROWS = [
    pytest.param(
        rolling(max_in_flight=2), [under_way("a"), waiting("b"), waiting("c")], [],
        ["b"], {"c": "BudgetExhausted"},
        id="who verifies has a slot",
    ),
    pytest.param(
        rolling(max_in_flight=1), [waiting("a", grant=grant("v2")), waiting("b")], [],
        [], {"b": "BudgetExhausted"},
        id="who is released and not yet published has a slot",
    ),
    pytest.param(
        rolling(max_in_flight=1, max_failures=1), [under_way("a"), waiting("b")], [bad("a")],
        ["b"], {},
        id="who has failed has none",
    ),
    pytest.param(
        rolling(max_in_flight=1), [under_way("a"), waiting("b")], [bad("a")],
        [], {"b": "Halted"},
        id="one failure halts a stage that bears none",
    ),
    pytest.param(
        rolling(max_failures="20%"), [under_way("a"), *map(waiting, "bcde")], [bad("a")],
        list("bcde"), {},
        id="one of five is 20 %, which is borne",
    ),
    pytest.param(
        rolling(max_failures="19%"), [under_way("a"), *map(waiting, "bcde")], [bad("a")],
        [], {"b": "Halted"},
        id="19 % of five is none",
    ),
    pytest.param(
        rolling(max_in_flight=0), [waiting("a")], [],
        [], {"a": "BudgetExhausted"},
        id="a budget of 0 releases nothing",
    ),
    pytest.param(
        rolling(max_in_flight=0), [variant("a", "prod", published("v0"), draft=draft("v2"))],
        [evidence_of("prod", FAILED, "v0")],
        [], {"a": "BudgetExhausted"},
        id="a budget of 0 mends nothing either",
    ),
    pytest.param(
        rolling(max_in_flight=1),
        [under_way("a"), variant("b", "prod", published("v0"), draft=draft("v2"))],
        [evidence_of("prod", FAILED, "v0")],
        ["b"], {},
        id="who is broken at what it has needs no slot",
    ),
    pytest.param(
        rolling(max_in_flight=1),
        [variant("a", "prod", published("v0", 5), draft=draft("v2")), waiting("b")], [],
        ["a"], {"b": "BudgetExhausted"},
        id="who is on its way to an older revision takes the newer one in its slot",
    ),
    pytest.param(
        rolling(max_in_flight=1, strategy=RolloutStrategy.LINEAR),
        [waiting("a", suspended=True), waiting("b")], [],
        ["b"], {"a": "Suspended"},
        id="who is suspended takes no slot from others",
    ),
    pytest.param(
        rolling(max_in_flight=1), [waiting("a", offline=True), waiting("b")], [],
        ["b"], {"a": "Offline"},
        id="who is offline takes no slot from others",
    ),
    pytest.param(
        rolling(max_in_flight=1), [under_way("a", offline=True), waiting("b")], [],
        [], {"b": "BudgetExhausted"},
        id="who goes offline after its release keeps its slot",
    ),
    pytest.param(
        rolling(max_in_flight="50%"), [*map(waiting, "ab"), waiting("c", offline=True)], [],
        ["a"], {"b": "BudgetExhausted"},
        id="a share is of those that count",
    ),
    pytest.param(
        rolling(max_in_flight=1), [waiting("a"), waiting("b", priority=1)], [],
        ["b"], {"a": "BudgetExhausted"},
        id="priority before name",
    ),
    pytest.param(
        rolling(max_in_flight=2),
        [waiting("a", group=1, priority=9), waiting("b", group=1), waiting("c", group=0)], [],
        ["c"], {"a": "GroupAwaits", "b": "GroupAwaits"},
        id="a group begins when the one before it has passed",
    ),
    pytest.param(
        rolling(), [waiting("a", group=1), through("c", group=0)], [ok("c")],
        ["a"], {},
        id="a group that has passed lets the next begin",
    ),
    pytest.param(
        rolling(max_failures=1), [waiting("a", group=1), under_way("c", group=0)], [bad("c")],
        ["a"], {},
        id="a failure that is borne lets the next begin",
    ),
    pytest.param(
        rolling(), [waiting("a", group=2), waiting("b", group=0, suspended=True)], [],
        ["a"], {},
        id="a group in which nothing is left to count holds nothing back",
    ),
    pytest.param(
        rolling(max_in_flight=1), [under_way("a"), waiting("b")],
        [decided(Action.PUBLISH, OverridableGate.BUDGET, stage="prod", revision="v2",
                 trees=frozenset({"tree-v2"}), variants=("b",))],
        ["b"], {},
        id="a person lifts the budget for one",
    ),
    pytest.param(
        rolling(), [under_way("a"), waiting("b")],
        [bad("a"), decided(Action.PUBLISH, OverridableGate.BUDGET, stage="prod", revision="v2")],
        [], {"b": "Halted"},
        id="who lifts the budget does not lift a halt",
    ),
    pytest.param(
        rolling(), [under_way("a"), waiting("b")],
        [bad("a"), decided(Action.SKIP, stage="prod", revision="v2", variants=("a",), when=7)],
        ["b"], {},
        id="who is skipped halts nothing",
    ),
    pytest.param(
        rolling(max_in_flight=1), [under_way("a"), waiting("b")],
        [decided(Action.SKIP, stage="prod", revision="v2", variants=("a",), when=7)],
        ["b"], {},
        id="who is skipped frees its slot",
    ),
    pytest.param(
        rolling(), [under_way("a"), waiting("b")],
        [bad("a"), decided(Action.RETRY, stage="prod", revision="v2", variants=("a",), when=7)],
        ["b"], {"a": "VerificationPending"},
        id="who tries again has failed no more",
    ),
    pytest.param(
        rolling(), [under_way("a"), waiting("b")],
        [bad("a"), decided(Action.RETRY, stage="prod", revision="v2", variants=("a",), when=7),
         bad("a", when=8)],
        [], {"b": "Halted"},
        id="who fails again has failed",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("rollout", "variants", "records", "goes", "holds"), ROWS)
def test_a_rollout_releases_the_next_variants(rollout, variants, records, goes, holds):
    decision = evaluate_gates(rollout_facts(rollout, variants, *records))
    assert released(decision) == goes
    for name, reason in holds.items():
        assert reason in reasons_of(decision, name)


def test_a_released_variant_that_a_conflict_holds_keeps_its_slot():
    held = waiting("a", grant=grant("v2"))
    held = replace(held, draft=replace(held.draft, conflict_count=1))
    decision = evaluate_gates(rollout_facts(rolling(max_in_flight=1), [held, waiting("b")]))
    assert released(decision) == []
    assert not decision.variants["a"].publish
    assert decision.variants["a"].state is VariantState.RELEASED
    assert reasons_of(decision, "a")[0] == "MergeConflict"


def test_a_variant_that_cannot_be_rendered_fails_and_takes_no_slot():
    broken = waiting("a", failed=Hold("RenderFailed", "x", "somebody"))
    decision = evaluate_gates(
        rollout_facts(rolling(max_in_flight=1, max_failures=1), [broken, waiting("b")])
    )
    assert released(decision) == ["b"]
    assert decision.stages["prod"].aggregates.failed == 1


def test_a_halted_stage_publishes_nothing_that_it_has_released():
    variants = [under_way("a"), waiting("b", grant=grant("v2"))]
    decision = evaluate_gates(rollout_facts(rolling(), variants, bad("a")))
    assert decision.stages["prod"].halted
    assert not decision.variants["b"].publish
    assert decision.variants["b"].state is VariantState.RELEASED


def test_a_released_variant_is_published_without_a_further_slot():
    decision = evaluate_gates(
        rollout_facts(rolling(max_in_flight=1), [waiting("a", grant=grant("v2"))])
    )
    assert decision.variants["a"].publish
    assert not decision.variants["a"].release


def test_a_newer_revision_that_waits_for_a_slot_says_who_has_it():
    decision = evaluate_gates(
        rollout_facts(rolling(max_in_flight=1), [under_way("a"), waiting("b")])
    )
    hold = decision.variants["b"].holds[0]
    assert hold.message == "in-flight limit reached (1 of 1)"


def test_a_stage_with_borne_failures_passes():
    it = rollout_facts(rolling(max_failures=1), [under_way("a"), through("b")], bad("a"), ok("b"))
    assert evaluate_gates(it).stages["prod"].verdict is PASSED


def test_an_unfinished_variant_is_never_borne():
    it = rollout_facts(rolling(max_failures=5), [under_way("a"), through("b")], ok("b"))
    assert evaluate_gates(it).stages["prod"].verdict == "pending"


def test_other_inputs_at_the_same_revision_go_by_the_budget():
    changed = [
        variant(name, "prod", published("v2", 5), draft=draft("v2", "-new")) for name in "abc"
    ]
    reports = evidence_of("prod", PASSED, "v2", when=6)
    for rollout in (rolling(max_in_flight=1), rolling(strategy=RolloutStrategy.EXPONENTIAL)):
        decision = evaluate_gates(rollout_facts(rollout, changed, reports))
        assert released(decision) == ["a"]
        assert decision.stages["prod"].verdict is PASSED
