"""Rollbacks in the engine: how long they stand, and what was said before they were made."""

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    decided,
    draft,
    evidence_of,
    facts,
    grant,
    passed,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, VariantState
from fanout.api.stages import Rollout
from fanout.gates.gate_evaluation import find_rollbacks
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

BACK = decided(Action.ROLLBACK, stage="prod", revision="v1", when=3)
MEND = decided(Action.PUBLISH, stage="prod", revision="v3", when=4)


def build_facts(*records, dev="v3", open_draft="v2", has="v1", **fields):
    """Dev has v3 and prod went back from v2 to v1; v2 has passed dev for ever."""
    rules = [stage("dev"), stage("prod", after("dev"), **fields)]
    variants = [
        variant("d", "dev", published(dev, 2)),
        variant("p", "prod", published(has, 3), draft=draft(open_draft)),
    ]
    return facts(
        rules, variants, *records, revisions="v1 v2 v3", history={("dev", "v2"): passed(1, 2)}
    )


def test_a_rollback_is_active_until_the_mending_revision_may_go():
    waiting = build_facts(BACK, MEND, open_draft="v1")
    decision = evaluate_gates(waiting)
    assert decision.stages["prod"].candidate == "v1", "not the bad one, which has passed dev"
    assert find_rollbacks(waiting).keys() == {"p"}
    ready = build_facts(BACK, MEND, evidence_of("dev", PASSED, "v3", when=5), open_draft="v3")
    assert evaluate_gates(ready).stages["prod"].candidate == "v3"
    assert evaluate_gates(ready).variants["p"].publish
    assert find_rollbacks(ready) == {}


def test_automation_does_not_take_the_bad_revision_again():
    decision = evaluate_gates(build_facts(BACK, MEND, open_draft="v2"))
    assert not decision.variants["p"].publish


def test_a_rollback_ends_when_the_mending_revision_is_published():
    taken = build_facts(
        BACK, MEND, evidence_of("dev", PASSED, "v3", when=5), has="v3", open_draft="v3"
    )
    late = published("v3", 6)
    it = taken.variants[1]
    taken = replace(taken, variants=(taken.variants[0], replace(it, published=late)))
    assert evaluate_gates(taken).stages["prod"].candidate == "v3"
    assert find_rollbacks(taken) == {}


def later_publications(*revisions_and_instants):
    """Prod's publications since a rollback and a promotion of v3, which passes `after` no more."""
    taken = build_facts(BACK, MEND, has="v3", open_draft="v3")
    variants = [
        variant(f"p{number}", "prod", published(revision, when))
        for number, (revision, when) in enumerate(revisions_and_instants)
    ]
    return replace(
        taken, variants=(taken.variants[0], *variants), revisions=("v1", "v2", "v3", "v4")
    )


@pytest.mark.parametrize(
    "publications",
    [
        [("v4", 8)],
        [("v4", 8), ("v4", 9)],
        [("v2", 8)],  # since a later rollback of this variant alone
        [("v4", 8), ("v1", 9)],
    ],
    ids=["all have the next one", "two have the next one", "went back alone", "one is new"],
)
def test_an_ended_rollback_stays_ended_when_the_stage_goes_on(publications):
    """Nothing that has v3 is left, and still the promotion of v3 was carried out."""
    later = later_publications(*publications)
    assert find_rollbacks(later) == {}


def test_publications_of_the_rollback_itself_do_not_end_it():
    later = later_publications(("v1", 8), ("v1", 9))
    assert find_rollbacks(later).keys() == {"p0", "p1"}


def test_a_publication_that_left_the_promotion_waiting_does_not_end_it():
    stray = replace(published("v2", 8), waiting=frozenset({MEND.name}))
    later = later_publications(("v1", 8))
    later = replace(later, variants=(*later.variants, variant("q", "prod", stray)))
    assert find_rollbacks(later).keys() == {"p0", "q"}


def test_approvals_from_before_it_are_not_asked():
    yes = [approved(name, revision="v2") for name in ("ann", "bob")]
    rule = {"requires": (SIGNED,)}
    before = evaluate_gates(build_facts(*yes, dev="v2", **rule))
    assert before.stages["prod"].candidate == "v2"
    withdrawn_since = decided(Action.ROLLBACK, stage="prod", revision="v1", when=3, expires=None)
    mended = [evidence_of("dev", PASSED, "v3", when=5), withdrawn_since, MEND]
    decision = evaluate_gates(build_facts(*yes, *mended, **rule))
    assert decision.stages["prod"].candidate == "v3"


def test_promotions_from_before_it_are_not_carried_out_after_it():
    old = decided(Action.PUBLISH, stage="prod", revision="v2", when=2)
    over = [BACK, MEND, evidence_of("dev", PASSED, "v3", when=5)]
    rules = [stage("dev"), stage("prod", after("dev"), automatic=False)]
    variants = [
        variant("d", "dev", published("v3", 2)),
        variant("p", "prod", published("v1"), draft=draft("v2")),
        variant("q", "prod", published("v3", 6)),
    ]
    decision = evaluate_gates(facts(rules, variants, old, *over, revisions="v1 v2 v3"))
    assert not decision.variants["p"].publish


ALONE = decided(Action.ROLLBACK, variants=("a",), stage="prod", revision="v1", when=7)


def two_groups(*records, max_failures=1):
    """The canary a had v2 and failed; b comes after it."""
    rule = stage("prod", rollout=Rollout(max_failures=max_failures))
    variants = [
        variant("a", "prod", published("v1", 8)),
        variant("b", "prod", published("v1"), draft=draft("v2"), group=1),
    ]
    return facts(
        [rule], variants, evidence_of("prod", PASSED, "v1", when=9), *records, revisions="v1 v2"
    )


def test_a_variant_that_went_back_alone_has_failed_while_the_others_go_on():
    decision = evaluate_gates(two_groups(ALONE))
    assert decision.variants["b"].publish
    assert decision.variants["a"].state is VariantState.READY
    assert decision.stages["prod"].aggregates.failed == 1


def test_and_halts_a_stage_that_bears_no_failure():
    decision = evaluate_gates(two_groups(ALONE, max_failures=0))
    assert decision.stages["prod"].verdict is FAILED
    assert "Halted" in reasons_of(decision, "b")


def test_a_skipped_variant_that_went_back_is_not_counted():
    skip = decided(Action.SKIP, variants=("a",), stage="prod", revision="v2", when=8)
    decision = evaluate_gates(two_groups(ALONE, skip, max_failures=0))
    assert decision.variants["b"].publish


def test_a_skip_from_before_it_keeps_nobody_from_going_back():
    skip = decided(Action.SKIP, variants=("p",), stage="prod", revision="v1", when=1)
    it = facts(
        [stage("prod")], [variant("p", "prod", published("v2"), draft=draft("v1"))], skip, BACK,
        revisions="v1 v2",
    )  # fmt: skip
    assert evaluate_gates(it).variants["p"].publish


@pytest.mark.parametrize("when", [2, 3])
def test_a_variant_released_to_the_bad_revision_goes_back_too(when):
    it = facts(
        [stage("prod")],
        [variant("p", "prod", published("v1"), draft=draft("v2"), grant=grant("v2", when=when))],
        BACK, revisions="v1 v2",
    )  # fmt: skip
    assert not evaluate_gates(it).variants["p"].publish
