"""A decision that overrides what a stage waits for takes its revision, before present approvals."""

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    passed,
    published,
    stage,
    variant,
    with_spec,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, VariantState
from fanout.gates.active_decisions import decision_statuses
from fanout.gates.gate_evaluation import find_leads
from fanout.gates.gate_evaluator import choose_candidates, evaluate_gates
from fanout.values import replace

AFTER, SOAK, REQUIRES = OverridableGate.AFTER, OverridableGate.SOAK, OverridableGate.REQUIRES
PROD = stage("prod", after("dev", soak=60), requires=(SIGNED,))
OK = evidence_of("dev", PASSED)


def decide(*overrides, revision="v2", **fields):
    return decided(Action.PUBLISH, *overrides, stage="prod", revision=revision, when=90, **fields)


def build_facts(*records, rule=PROD, has="v0", drafts="v1", revisions="v0 v1 v2", **fields):
    """Dev at v1, soaked; prod's a and b at v0, with drafts of v1 that ann has approved."""
    d = variant("d", "dev", published("v1"))
    has = published(has) if has else None
    others = [variant(it, "prod", has, draft=draft(drafts)) for it in ("a", "b")]
    history = {("dev", "v1"): passed(2)}
    return facts(
        (stage("dev"), rule), (d, *others), OK, approved("ann"), *records,
        now=100, revisions=revisions, history=history, **fields,
    )  # fmt: skip


def candidates_of(w):
    return choose_candidates(w)["prod"], find_leads(w)


def with_drafts(w, revisions):
    """Return the world with the drafts that it asks for."""
    return replace(
        w,
        variants=tuple(
            replace(it, draft=draft(revisions[it.name])) if it.name in revisions else it
            for it in w.variants
        ),
    )


def test_approvals_keep_a_candidate_until_a_decision_overrides_after_and_soak():
    assert candidates_of(build_facts()) == ("v1", {})
    assert candidates_of(build_facts(decide())) == ("v1", {})
    assert candidates_of(build_facts(decide(AFTER))) == ("v1", {})
    assert candidates_of(build_facts(decide(AFTER, SOAK))) == ("v2", {})


def test_a_stage_without_soak_is_overridden_by_after_alone():
    rule = stage("prod", after("dev"), requires=(SIGNED,))
    assert candidates_of(build_facts(decide(AFTER), rule=rule)) == ("v2", {})


def test_a_stage_without_after_takes_the_revision_of_any_override():
    rule = stage("prod", requires=(SIGNED,))
    assert candidates_of(build_facts(rule=rule)) == ("v1", {})
    assert candidates_of(build_facts(decide(), rule=rule)) == ("v2", {})
    # It was about the drafts of a candidate.
    trees = frozenset({"tree-v2"})
    assert candidates_of(build_facts(decide(trees=trees), rule=rule)) == ("v1", {})


def test_a_hotfix_of_an_older_line_goes_before_the_candidate():
    w = build_facts(decide(AFTER, SOAK, revision="v0.1"), revisions="v0 v0.1 v1 v2")
    assert candidates_of(w) == ("v0.1", {})


def test_no_decision_takes_a_stage_back():
    w = build_facts(decide(AFTER, SOAK, revision="v0"), has="v1", drafts="v2", revisions="v0 v1 v2")
    assert candidates_of(w) == ("v1", {})


def test_the_fix_goes_with_what_else_it_needs():
    w = with_drafts(build_facts(decide(AFTER, SOAK)), {"a": "v2", "b": "v2"})
    decision = evaluate_gates(w).variants["a"]
    assert (decision.release, decision.publish) == (True, False)  # approvals of v2
    w = with_drafts(build_facts(decide(AFTER, SOAK, REQUIRES)), {"a": "v2", "b": "v2"})
    assert evaluate_gates(w).variants["a"].publish


def test_a_variant_alone_goes_first_and_the_others_stay():
    decision = decide(AFTER, SOAK, REQUIRES, variants=("a",))
    w = build_facts(decision)
    assert candidates_of(w) == ("v1", {"a": "v2"})
    w = with_drafts(w, {"a": "v2"})
    assert candidates_of(w) == ("v1", {"a": "v2"})
    evaluation = evaluate_gates(w)
    a, b = evaluation.variants["a"], evaluation.variants["b"]
    assert (a.candidate, a.publish) == ("v2", True)
    assert (b.candidate, b.release, b.publish) == ("v1", True, False)


@pytest.mark.parametrize("overrides", [(AFTER, SOAK, REQUIRES), (REQUIRES,)])
def test_a_decision_about_a_revision_covers_drafts_that_it_does_not_name(overrides):
    """Only the draft of one variant was there; of the other it has been written since."""
    w = with_drafts(build_facts(decide(*overrides, trees=frozenset({"tree-v2"}))), {"a": "v2"})
    w = replace(w, variants=(*w.variants[:2], replace(w.variants[2], draft=draft("v2", "-new"))))
    w = replace(w, revisions=("v0", "v2"))
    is_about_revision = AFTER in overrides
    evaluation = evaluate_gates(w)
    assert evaluation.variants["b"].publish is is_about_revision
    [status] = decision_statuses(w.records.decisions, w.variants[2:], w.now).values()
    assert status == ("Active" if is_about_revision else "Stale")
    # It is about one publication of each, whatever is drafted then.
    after = tuple(replace(it, published=published("v2", 95)) for it in w.variants[1:])
    assert not evaluate_gates(replace(w, variants=(w.variants[0], *after))).variants["b"].publish


def test_a_variant_ahead_of_its_stage_stays_until_the_stage_follows():
    decision = decide(AFTER, SOAK, REQUIRES, variants=("a",))
    w = build_facts(decision)
    ahead = replace(w.variants[1], published=published("v2", 95), draft=None)
    w = replace(w, variants=(w.variants[0], ahead, w.variants[2]))
    assert candidates_of(w) == ("v1", {"a": "v2"})
    evaluation = evaluate_gates(w)
    assert evaluation.variants["a"].state is VariantState.VERIFYING
    assert evaluation.variants["b"].candidate == "v1"
    # Then the rest.
    rest = replace(decide(AFTER, SOAK, REQUIRES), at=at(96))
    decisions = (*w.records.decisions, rest)
    w = replace(w, records=replace(w.records, decisions=decisions))
    assert candidates_of(w) == ("v2", {})


@pytest.mark.parametrize(
    ("report", "halted"),
    [
        ({}, True),
        ({"variants": ()}, True),
        ({"revision": "v0"}, False),
        ({"status": PASSED}, False),
    ],
    ids=["about it", "about the stage", "about another revision", "that passed"],
)
def test_the_fix_of_a_failed_variant_does_not_end_the_halt_of_the_others(report, halted):
    rule = stage("prod", after("dev", soak=60))
    reports = evidence_of("prod", FAILED, "v1", when=60, variants=("a",))
    reports = with_spec(reports, **report)
    w = build_facts(decide(AFTER, SOAK, variants=("a",)), reports, rule=rule)
    ahead = replace(w.variants[1], published=published("v2", 95), draft=None)
    w = replace(w, variants=(w.variants[0], ahead, w.variants[2]))
    evaluation = evaluate_gates(w)
    assert candidates_of(w) == ("v1", {"a": "v2"})
    assert evaluation.stages["prod"].halted is halted
    assert evaluation.variants["b"].release is not halted
    assert evaluation.variants["a"].state is VariantState.VERIFYING
    # A skip or another attempt ends it, as if the variant had stayed.
    for action in (Action.SKIP, Action.RETRY):
        ended = decided(action, stage="prod", revision="v1", variants=("a",), when=97)
        records = replace(w.records, decisions=(*w.records.decisions, ended))
        assert not evaluate_gates(replace(w, records=records)).stages["prod"].halted


@pytest.mark.parametrize(
    ("overrides", "releases"),
    [((AFTER, SOAK), True), ((OverridableGate.BUDGET,), False), ((REQUIRES,), False)],
    ids=["past after and soak", "past the budget", "of approvals"],
)
def test_a_fix_does_not_wait_for_what_is_in_flight(overrides, releases):
    """`inFlight: Serialize`, and a is not through with the revision that the fix is for."""
    rule = stage("prod", after("dev", soak=60))
    w = with_drafts(
        build_facts(decide(*overrides), rule=rule, serialize=True), {"a": "v2", "b": "v2"}
    )
    verifying = replace(w.variants[1], published=published("v1", 80))
    w = replace(w, variants=(w.variants[0], verifying, w.variants[2]))
    evaluation = evaluate_gates(w)
    assert candidates_of(w)[0] == ("v2" if releases else "v1")
    assert evaluation.variants["a"].release is releases
    assert evaluation.variants["b"].release is releases


def test_a_newer_revision_goes_past_what_is_in_flight_with_an_override_of_the_budget():
    rule = stage("prod", after("dev"))
    passed_dev = evidence_of("dev", PASSED, "v2", when=50)
    budget = decide(OverridableGate.BUDGET)
    for decisions, reasons in (((), {"Serialized"}), ((budget,), set())):
        w = build_facts(passed_dev, *decisions, rule=rule, serialize=True)
        w = with_drafts(w, {"a": "v2", "b": "v2"})
        dev, a, b = w.variants
        dev = replace(dev, published=published("v2", 40))
        a = replace(a, published=published("v1", 80))
        b = replace(b, published=published("v1", 80))
        evaluation = evaluate_gates(replace(w, variants=(dev, a, b)))
        for name in ("a", "b"):
            hold_reasons = {str(hold.reason) for hold in evaluation.variants[name].holds}
            assert hold_reasons == reasons, evaluation.stages["prod"]


def test_a_failure_of_the_candidate_does_not_halt_its_fix():
    decision = decide(AFTER, SOAK, REQUIRES, variants=("a",))
    w = with_drafts(build_facts(decision), {"a": "v2"})
    broken = replace(variant("c", "prod", published("v1", 50)))
    reports = evidence_of("prod", FAILED, "v1", when=60, variants=("c",))
    records = replace(w.records, evidence=(*w.records.evidence, reports))
    w = replace(w, variants=(*w.variants, broken), records=records)
    assert evaluate_gates(w).stages["prod"].halted
    assert evaluate_gates(w).variants["a"].publish


def test_another_revision_does_not_use_a_decision_up():
    """It waits without overrides; the publication of v1 leaves it active, one of v3 does not."""
    w = build_facts(decide(), approved("bob"))
    evaluation = evaluate_gates(w)
    [name] = {it.name for it in w.records.decisions}
    assert evaluation.variants["a"].waiting == (name,)

    def status(revision, *waiting):
        has = replace(published(revision, 100), waiting=frozenset(waiting))
        return decision_statuses(w.records.decisions, [variant("a", "prod", has)], at(110))[name]

    assert status("v1", name) == "Active"
    assert status("v2", name) == "Applied"
    assert status("v3") == "Applied"


def test_a_decision_that_was_carried_out_does_not_act_again():
    """v2 was published by it, then v1 by a pin of the spec, which left nothing waiting."""
    w = build_facts(decide(AFTER, SOAK, REQUIRES), rule=replace(PROD, automatic=False))
    back = [replace(it, published=published("v1", 95), draft=draft("v2")) for it in w.variants[1:]]
    w = replace(w, variants=(w.variants[0], *back))
    assert not evaluate_gates(w).variants["a"].release
