"""Laws of rollouts over random worlds: budgets, halts, groups, timers, windows, machine checks."""

from datetime import timedelta
from fractions import Fraction

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
    grant,
    passed,
    published,
    stage,
    variant,
)
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import (
    Action,
    CheckMethod,
    OverridableGate,
    RolloutStrategy,
    VariantState,
)
from fanout.api.results import CheckAnswer
from fanout.api.stages import Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import CheckReading, PolicyFacts
from fanout.gates.gate_rules import PropagationCondition
from fanout.selection.variant_spec import ExpressionFailure
from fanout.values import replace

REVISIONS = ["v1", "v2", "v3"]
NAMES = "abcdef"


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


OFFICE = PublicationCalendar(
    "office", allow=(build_window("30 0 * * *", "UTC", duration=minutes(60)),)
)
FREEZE = PublicationCalendar(
    "freeze", deny=(build_window("5 0 * * *", "UTC", duration=minutes(20)),)
)
CONDITIONS = [
    (),
    (PropagationCondition("few", lambda row: row["stage"]["inFlight"] < 2),),
    (
        PropagationCondition(
            "broken", lambda _: ExpressionFailure("ExpressionError", "no such field")
        ),
    ),
]
ROLLOUTS = st.builds(
    Rollout,
    strategy=st.sampled_from(RolloutStrategy),
    step=st.integers(1, 3),
    factor=st.sampled_from([Fraction(2), Fraction(3, 2), Fraction(5)]),
    max_in_flight=st.sampled_from([None, 0, 1, 2, Fraction(1, 2)]),
    max_failures=st.sampled_from([0, 1, Fraction(1, 3), 9]),
    min_ready=st.sampled_from([minutes(0), minutes(7)]),
    progress_deadline=st.sampled_from([None, minutes(4), minutes(90)]),
)
CHECKS = st.builds(
    check_rule,
    st.just("e2e"),
    st.sampled_from([CheckMethod.REPORT, CheckMethod.OBJECT]),
    timeout=st.sampled_from([None, minutes(3), minutes(30)]),
    fresh_for=st.sampled_from([None, minutes(5)]),
    settle=st.sampled_from([None, minutes(2), minutes(40)]),
)
VERDICTS = st.sampled_from([PASSED, FAILED, PENDING])


@st.composite
def variants(draw, name):
    has, drafted, granted = (
        draw(st.sampled_from(["", *REVISIONS])) for _ in ("has", "draft", "grant")
    )
    digests = [f"digest-{revision}" for revision in REVISIONS]
    readings = draw(st.lists(st.builds(
        CheckReading, st.just("e2e"), st.sampled_from(digests), VERDICTS, st.just("it says so")),
        max_size=1,
    ))  # fmt: skip
    answers = draw(st.lists(st.builds(
        CheckAnswer, st.just("e2e"), st.sampled_from(digests), st.sampled_from([PASSED, FAILED]),
        st.integers(0, 10).map(at)), max_size=1,
    ))  # fmt: skip
    return variant(
        name,
        draw(st.sampled_from(["dev", "prod"])),
        published(has, draw(st.integers(0, 9))) if has else None,
        draft=draft(drafted, draw(st.sampled_from(["", "-new"]))) if drafted else None,
        grant=grant(granted, when=draw(st.integers(0, 9))) if granted else None,
        group=draw(st.integers(0, 2)),
        priority=draw(st.integers(0, 1)),
        suspended=draw(st.integers(0, 9)) == 0,
        offline=draw(st.integers(0, 9)) == 0,
        readings=tuple(readings),
        answers=tuple(answers),
    )


EVIDENCE = st.builds(
    evidence_of,
    st.sampled_from(["dev", "prod"]),
    VERDICTS,
    st.sampled_from(REVISIONS),
    when=st.integers(0, 10),
    variants=st.sampled_from([(), ("a",), ("b", "c")]),
)
DECISIONS = st.builds(
    decided,
    st.sampled_from([Action.SKIP, Action.RETRY, Action.ROLLBACK, Action.PUBLISH]),
    stage=st.sampled_from(["dev", "prod"]),
    variants=st.sampled_from([(), ("a",), ("b",)]),
    revision=st.sampled_from(REVISIONS),
    when=st.integers(0, 10),
)
LIFTED = st.builds(
    lambda override, **fields: decided(Action.PUBLISH, override, **fields),
    st.sampled_from(OverridableGate),
    stage=st.sampled_from(["dev", "prod"]),
    revision=st.sampled_from(REVISIONS),
)


@st.composite
def worlds(draw, *, orders: bool = True) -> PolicyFacts:
    """Two stages that roll out; without `orders` nobody has decided anything."""
    rules = [
        stage(
            name,
            upstream,
            rollout=draw(ROLLOUTS),
            verification=(draw(CHECKS),),
            requires=draw(st.sampled_from([(), (check_rule("lint"),)])),
            propagate_when=draw(st.sampled_from(CONDITIONS)),
        )
        for name, upstream in (("dev", None), ("prod", after("dev", soak=draw(SOAKS))))
    ]
    records = draw(st.lists(EVIDENCE, max_size=6))
    if orders:
        records += draw(st.lists(st.one_of(DECISIONS, LIFTED), max_size=2))
    return facts(
        rules,
        [draw(variants(name)) for name in NAMES[: draw(st.integers(0, 6))]],
        *records,
        revisions=" ".join(REVISIONS),
        history=draw(HISTORY),
        serialize=draw(st.booleans()),
        calendars=draw(
            st.sampled_from([(), (OFFICE,), (replace(OFFICE, lets_finish=True),), (FREEZE,)])
        ),
    )


SOAKS = st.sampled_from([0, 5, 60])
HISTORY = st.dictionaries(
    st.tuples(st.sampled_from(["dev", "prod"]), st.sampled_from(REVISIONS)),
    st.sampled_from([passed(1), passed(1, 4)]),
    max_size=2,
)


def answered(policy_facts: PolicyFacts) -> PolicyFacts:
    """The world with what a pass remembers of it."""
    decision = evaluate_gates(policy_facts)
    kept = {name: item.answers for name, item in decision.variants.items()}
    answered_variants = tuple(replace(it, answers=kept[it.name]) for it in policy_facts.variants)
    return replace(policy_facts, history=decision.history, variants=answered_variants)


@given(worlds())
def test_no_new_variant_is_released_over_the_budget(policy_facts):
    """Who has a slot, or is broken at what it has, may go beyond it."""
    new = {it.name for it in policy_facts.variants if it.published is None and it.grant is None}
    lifted = any(
        OverridableGate.BUDGET in it.spec.overrides for it in policy_facts.records.decisions
    )
    for item in evaluate_gates(policy_facts).stages.values():
        if item.budget is not None and not lifted:
            room = max(0, item.budget - item.aggregates.in_flight)
            assert len(new & set(item.released)) <= room


@given(worlds(orders=False))
def test_a_halted_stage_lets_nobody_go(policy_facts):
    decision = evaluate_gates(policy_facts)
    for item in decision.stages.values():
        inside = [it for it in decision.variants.values() if it.stage == item.name]
        if item.halted:
            assert not item.released
            assert not any(it.publish for it in inside)


@given(worlds(orders=False))
def test_a_group_begins_when_those_before_it_are_through(policy_facts):
    decision = evaluate_gates(policy_facts)
    groups = {it.name: it.group for it in policy_facts.variants}
    for item in decision.stages.values():
        started = [groups[name] for name in item.released]
        assert len(set(started)) <= 1, "one group at a time begins"


@given(worlds(orders=False))
def test_serialized_revisions_keep_a_stage_from_a_second_revision(policy_facts):
    decision = evaluate_gates(replace(policy_facts, serialize=True))
    for it in policy_facts.variants:
        item = decision.stages[it.stage]
        verifying = decision.variants[it.name].state is VariantState.VERIFYING
        if verifying and it.published.revision < item.candidate:
            assert not item.released


@given(worlds())
def test_every_variant_that_is_not_ready_is_published_or_held(policy_facts):
    decision = evaluate_gates(policy_facts)
    for item in decision.variants.values():
        assert item.state is VariantState.READY or item.publish or item.holds
        assert all(hold.reason and hold.message and hold.who for hold in item.holds)


@given(worlds())
def test_asking_again_changes_nothing(policy_facts):
    settled = answered(policy_facts)
    assert answered(settled) == settled
    for name, item in evaluate_gates(policy_facts).variants.items():
        again = evaluate_gates(settled).variants[name]
        assert (again.state, again.release, again.publish) == (
            item.state, item.release, item.publish
        )  # fmt: skip


@given(worlds())
def test_no_state_changes_before_the_next_instant(policy_facts):
    settled = answered(policy_facts)
    decision = evaluate_gates(settled)
    before = replace(settled, now=(decision.next or at(9999)) - minutes(1 / 60))
    then = evaluate_gates(before)
    for name, item in decision.variants.items():
        other = then.variants[name]
        assert (other.state, other.release, other.publish) == (
            item.state, item.release, item.publish
        )  # fmt: skip
