"""Laws of the evaluator over random worlds."""

from datetime import timedelta
from random import Random

from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    SIGNED,
    after,
    approved,
    at,
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

from fanout.api.gate_vocabulary import GATE_ACTIONS, OverridableGate, Require, VariantState, Verdict
from fanout.api.results import Hold
from fanout.gates.gate_evaluator import choose_candidates, evaluate_gates
from fanout.gates.gate_facts import PolicyFacts
from fanout.values import replace

REVISIONS = ["v1", "v2", "v3"]
STAGES = ["dev", "eu", "prod"]
RANK = {FAILED: 0, PENDING: 1, PASSED: 2}


@st.composite
def variants(draw, name):
    has, open_draft, release = (
        draw(st.sampled_from(["", *REVISIONS])) for _ in ("has", "draft", "grant")
    )
    return variant(
        name,
        draw(st.sampled_from([*STAGES, "nowhere"])),
        published(has, draw(st.integers(0, 5))) if has else None,
        draft=draft(open_draft, current=draw(st.booleans())) if open_draft else None,
        grant=grant(release) if release else None,
        suspended=draw(st.integers(0, 9)) == 0,
        held=Hold("PathTaken", "x", "somebody") if draw(st.integers(0, 9)) == 0 else None,
        failed=Hold("RenderFailed", "x", "somebody") if draw(st.integers(0, 9)) == 0 else None,
    )


EVIDENCE = st.builds(
    evidence_of,
    st.sampled_from(STAGES),
    st.sampled_from(list(Verdict)),
    st.sampled_from(REVISIONS),
    when=st.integers(0, 17),
    by=st.sampled_from(["ci", "ann"]),
    variants=st.sampled_from([(), ("a",), ("b", "c")]),
)
APPROVALS = st.builds(
    approved,
    st.sampled_from(["ann", "bob", "eve"]),
    revision=st.sampled_from(REVISIONS),
)
DECISIONS = st.builds(
    lambda overrides, **fields: decided(*overrides, **fields),
    st.tuples(st.sampled_from(GATE_ACTIONS), st.sampled_from(list(OverridableGate))),
    stage=st.sampled_from(["", *STAGES]),
    variants=st.sampled_from([(), (), ("a",)]),
    revision=st.sampled_from(["", *REVISIONS]),
    when=st.integers(0, 17),
    expires=st.sampled_from([None, at(5), at(30)]),
)
HISTORY = st.dictionaries(
    st.tuples(st.sampled_from(STAGES), st.sampled_from(REVISIONS)),
    st.sampled_from([passed(1), passed(1, 4)]),
    max_size=4,
)


@st.composite
def worlds(draw) -> PolicyFacts:
    require = draw(st.sampled_from(Require))
    soak = draw(st.sampled_from([0, 5, 60]))
    rules = (
        stage("dev"),
        stage("eu", after("dev", soak=soak)),
        stage(
            "prod",
            after("dev", "eu", require=require, soak=soak),
            requires=(replace(SIGNED, expires=timedelta(minutes=draw(st.sampled_from([5, 60])))),),
            automatic=draw(st.booleans()),
        ),
    )
    return facts(
        rules,
        [draw(variants(name)) for name in "abcdef"[: draw(st.integers(0, 6))]],
        *draw(st.lists(EVIDENCE, max_size=6)),
        *draw(st.lists(APPROVALS, max_size=3)),
        *draw(st.lists(DECISIONS, max_size=3)),
        revisions=" ".join(REVISIONS[: draw(st.integers(0, 3))]),
        history=draw(HISTORY),
        sweep=draw(st.booleans()),
    )


@given(worlds())
def test_remembering_and_asking_again_at_the_same_instant_changes_nothing(policy_facts):
    first = evaluate_gates(policy_facts)
    assert evaluate_gates(policy_facts) == first
    again = evaluate_gates(replace(policy_facts, history=first.history))
    assert again.history == first.history
    assert evaluate_gates(replace(policy_facts, history=again.history)) == again
    for name, item in first.variants.items():
        other = again.variants[name]
        assert (other.state, other.release, other.publish) == (
            item.state, item.release, item.publish
        )  # fmt: skip
    for name, stage_before in first.stages.items():
        other = again.stages[name]
        assert (other.candidate, other.verdicts, other.gate) == (
            stage_before.candidate, stage_before.verdicts, stage_before.gate
        )  # fmt: skip


@given(worlds(), st.integers(0, 999))
def test_the_order_of_variants_is_irrelevant(policy_facts, seed):
    shuffled = list(policy_facts.variants)
    Random(seed).shuffle(shuffled)
    decision, other = (
        evaluate_gates(policy_facts),
        evaluate_gates(replace(policy_facts, variants=tuple(shuffled))),
    )
    assert other == decision
    assert list(other.variants) == list(decision.variants)


@given(worlds())
def test_the_answer_s_candidates_are_those_that_were_rendered(policy_facts):
    decision = evaluate_gates(policy_facts)
    assert {name: item.candidate for name, item in decision.stages.items()} == choose_candidates(
        policy_facts
    )


@given(worlds(), st.sampled_from(STAGES), st.sampled_from(REVISIONS))
def test_an_additional_failure_never_improves_a_verdict_or_opens_a_gate(
    policy_facts, name, revision
):
    bad = evidence_of(name, FAILED, revision, when=9, by="zoe")
    worse = replace(
        policy_facts,
        records=replace(policy_facts.records, evidence=(*policy_facts.records.evidence, bad)),
    )
    before, then = evaluate_gates(policy_facts), evaluate_gates(worse)
    for key, item in before.stages.items():
        for about, verdict in item.verdicts.items():
            assert RANK[then.stages[key].verdicts.get(about, PENDING)] <= RANK[verdict]
        if then.stages[key].candidate == item.candidate:
            assert RANK[then.stages[key].gate] <= RANK[item.gate]
    for key, variant_before in before.variants.items():
        after_it = then.variants[key]
        if after_it.candidate == variant_before.candidate:
            assert after_it.publish <= variant_before.publish
            assert after_it.release <= variant_before.release


@given(worlds())
def test_every_released_or_published_variant_may_be(policy_facts):
    decision = evaluate_gates(policy_facts)
    for item in policy_facts.variants:
        answer = decision.variants[item.name]
        if answer.release or answer.publish:
            assert item.draft is not None
            assert item.draft.current
            assert item.draft.revision == answer.candidate
            assert not item.suspended
            assert item.held is None
            assert item.failed is None
            assert answer.state in (VariantState.RELEASED, VariantState.PROPOSED)
        if answer.publish:
            assert all(check.verdict is PASSED for check in answer.checks)
            assert not answer.holds
        if answer.state is not VariantState.READY:
            assert answer.publish or answer.holds, "nothing waits without a reason"


@given(worlds())
def test_the_next_instant_is_later_than_now_and_every_hold_has_a_message(policy_facts):
    decision = evaluate_gates(policy_facts)
    instants = [decision.next, *(item.next for item in decision.stages.values())]
    assert all(instant is None or instant > policy_facts.now for instant in instants)
    holds = [hold for item in decision.variants.values() for hold in item.holds]
    assert all(hold.reason and hold.message and hold.who for hold in holds)


@given(worlds())
def test_no_state_changes_before_the_next_instant(policy_facts):
    settled = replace(policy_facts, history=evaluate_gates(policy_facts).history)
    decision = evaluate_gates(settled)
    horizon = decision.next or at(9999)
    just_before = evaluate_gates(replace(settled, now=horizon - timedelta(seconds=1)))
    for name, item in decision.variants.items():
        then = just_before.variants[name]
        assert (then.state, then.release, then.publish) == (item.state, item.release, item.publish)
    assert {n: s.candidate for n, s in just_before.stages.items()} == {
        n: s.candidate for n, s in decision.stages.items()
    }
