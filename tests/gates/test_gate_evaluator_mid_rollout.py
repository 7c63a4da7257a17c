"""What becomes of a rollout that is under way when something changes.

The rows of docs/concepts/changes-in-mid-rollout.md, as far as the gates decide them.
"""

from datetime import timedelta

import pytest
from gates.worlds import (
    FAILED,
    PASSED,
    SIGNED,
    after,
    approved,
    at,
    check_rule,
    draft,
    evidence_of,
    facts,
    grant,
    later,
    passed,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import VariantState
from fanout.api.stages import Rollout
from fanout.calendar.publication_calendar import PublicationCalendar, build_window
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

TWO = Rollout(max_in_flight=2)
PROD = stage("prod", rollout=TWO)


def at_v1(name, **fields):
    return variant(name, "prod", published("v1"), **fields)


def to_v2(name, **fields):
    return at_v1(name, draft=draft("v2"), **fields)


def build_facts(*variants, rule=PROD, records=(), **fields):
    fields.setdefault("revisions", "v0 v1 v2 v3")
    return facts([rule], variants, evidence_of("prod", PASSED, "v1"), *records, **fields)


def test_a_newer_revision_takes_the_slots_of_what_is_in_flight_and_no_others():
    under_way = [
        variant(name, "prod", published("v2", 5), draft=draft("v3")) for name in ("a", "b")
    ]
    decision = evaluate_gates(build_facts(*under_way, at_v1("c", draft=draft("v3"))))
    assert decision.stages["prod"].candidate == "v3"
    assert decision.stages["prod"].released == ("a", "b")
    assert reasons_of(decision, "c") == ["BudgetExhausted"]


def test_no_variant_is_released_while_more_are_in_flight_than_may():
    under_way = [variant(name, "prod", published("v2", 5), draft=draft("v3")) for name in "abc"]
    decision = evaluate_gates(build_facts(*under_way, at_v1("d", draft=draft("v3"))))
    assert decision.stages["prod"].released == ("a", "b", "c")
    assert reasons_of(decision, "d") == ["BudgetExhausted"]


def test_a_draft_that_people_have_approved_is_not_taken_away():
    rule = stage("prod", requires=(SIGNED,))
    decision = evaluate_gates(
        build_facts(to_v2("a"), rule=rule, records=[approved("ann", revision="v2")])
    )
    assert decision.stages["prod"].candidate == "v2"
    assert decision.stages["prod"].queued == ("v3",)


def test_a_target_that_joins_goes_by_the_budget_and_withdraws_no_verdict():
    history = {("prod", "v1"): passed(2)}
    joined = variant("z", "prod", draft=draft("v1"))
    busy = [variant(name, "prod", published("v0", 5), draft=draft("v1")) for name in ("b", "c")]
    decision = evaluate_gates(
        build_facts(at_v1("a"), *busy, joined, history=history, revisions="v0 v1")
    )
    assert reasons_of(decision, "z") == ["BudgetExhausted"]
    assert decision.stages["prod"].verdicts["v1"] is PASSED


def test_a_target_that_leaves_frees_its_slot():
    full = [variant(name, "prod", published("v2", 5)) for name in ("a", "b")]
    it = build_facts(*full, to_v2("c"), revisions="v1 v2")
    assert evaluate_gates(it).stages["prod"].released == ()
    assert evaluate_gates(replace(it, variants=it.variants[1:])).stages["prod"].released == ("c",)


def test_offline_or_suspended_before_its_release_is_not_waited_for():
    done = variant("a", "prod", published("v2", 5))
    reports = [evidence_of("prod", PASSED, "v2", when=6)]
    for away in ({"offline": True}, {"suspended": True}):
        decision = evaluate_gates(
            build_facts(done, to_v2("b", **away), records=reports, revisions="v1 v2")
        )
        assert decision.stages["prod"].verdict is PASSED


def test_offline_or_suspended_after_its_release_is_waited_for():
    done = variant("a", "prod", published("v2", 5))
    reports = [evidence_of("prod", PASSED, "v2", when=6)]
    for away in ({"offline": True}, {"suspended": True}):
        unavailable = to_v2("b", grant=grant("v2"), **away)
        decision = evaluate_gates(
            build_facts(done, unavailable, records=reports, revisions="v1 v2")
        )
        assert decision.stages["prod"].verdict == "pending"
        assert decision.stages["prod"].aggregates.in_flight == 1


def test_other_inputs_are_verified_anew_and_the_verdict_stays():
    history = {("prod", "v1"): passed(2)}
    renewed = variant("a", "prod", published("v1", 5, inputs="-new"))
    decision = evaluate_gates(build_facts(renewed, at_v1("b"), history=history, revisions="v1"))
    assert decision.variants["a"].state is VariantState.VERIFYING
    assert decision.stages["prod"].verdict is PASSED


def test_an_edited_draft_is_released_anew_and_asks_for_approvals_again():
    rule = stage("prod", requires=(SIGNED,))
    edited = at_v1("a", draft=draft("v2", "-edited"), grant=grant("v2"))
    said_yes = [approved(person, revision="v2") for person in ("ann", "bob")]
    decision = evaluate_gates(build_facts(edited, rule=rule, records=said_yes, revisions="v1 v2"))
    assert decision.variants["a"].release
    assert decision.variants["a"].state is VariantState.RELEASED


def test_a_stage_that_is_put_before_has_to_pass_first():
    rules = [stage("canary"), stage("prod", after("canary"))]
    variants = [variant("c", "canary", draft=draft("v2")), to_v2("a", grant=grant("v2"))]
    decision = evaluate_gates(
        facts(rules, variants, evidence_of("prod", PASSED, "v1"), revisions="v1 v2")
    )
    assert not decision.variants["a"].publish


def test_a_stage_that_is_renamed_leaves_its_variants_by_name():
    decision = evaluate_gates(build_facts(to_v2("a"), rule=stage("production")))
    assert reasons_of(decision, "a") == ["NotInStage"]
    assert reasons_of(decision, "production") == ["NoTargets"]


def test_a_longer_soak_does_not_reset_the_clock():
    def soaked(minutes):
        rules = [stage("dev"), stage("prod", after("dev", soak=minutes))]
        variants = [variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))]
        history = {("dev", "v1"): passed(5)}
        return facts(rules, variants, evidence_of("dev", PASSED), history=history, now=20)

    assert evaluate_gates(soaked(10)).variants["p"].publish
    assert evaluate_gates(soaked(30)).next == at(35)


def test_a_check_that_is_added_is_asked_of_what_is_published():
    rule = stage("prod", verification=("e2e", "load"))
    decision = evaluate_gates(
        build_facts(at_v1("a"), rule=rule, history={("prod", "v1"): passed(2)}, revisions="v1")
    )
    assert decision.variants["a"].state is VariantState.VERIFYING
    assert decision.stages["prod"].verdicts["v1"] is PASSED


def test_a_requirement_that_is_added_is_waited_for_in_the_slot():
    rule = stage("prod", requires=(SIGNED,), rollout=TWO)
    decision = evaluate_gates(
        build_facts(to_v2("a", grant=grant("v2")), rule=rule, revisions="v1 v2")
    )
    assert decision.variants["a"].state is VariantState.RELEASED
    assert decision.stages["prod"].aggregates.in_flight == 1


def test_a_smaller_budget_takes_nobody_back():
    full = [to_v2(name, grant=grant("v2")) for name in "abc"]
    decision = evaluate_gates(build_facts(*full, to_v2("d"), revisions="v1 v2"))
    assert [name for name, it in decision.variants.items() if it.publish] == ["a", "b", "c"]
    assert reasons_of(decision, "d") == ["BudgetExhausted"]


def test_a_promotion_policy_that_is_taken_away_ends_automation():
    rule = stage("prod", automatic=False)
    decision = evaluate_gates(
        build_facts(to_v2("a", grant=grant("v2")), rule=rule, revisions="v1 v2")
    )
    assert not decision.variants["a"].publish
    assert reasons_of(decision, "a") == ["AutomationOff"]


def test_a_window_that_closes_stops_what_is_released():
    night = build_window("0 0 * * *", "UTC", duration=timedelta(hours=6))
    closed = (PublicationCalendar("nights", deny=(night,)),)
    it = build_facts(to_v2("a", grant=grant("v2")), revisions="v1 v2", calendars=closed)
    assert evaluate_gates(it).variants["a"].state is VariantState.RELEASED
    assert evaluate_gates(it).next == at(360)
    assert evaluate_gates(replace(it, now=at(360))).variants["a"].publish


def test_a_failure_after_the_soak_has_begun_starts_it_anew():
    rules = [stage("dev"), stage("prod", after("dev", soak=30))]
    variants = [variant("d", "dev", published("v1")), variant("p", "prod", draft=draft("v1"))]
    it = later(facts(rules, variants, evidence_of("dev", PASSED)), 20)
    it = later(it, 25, evidence_of("dev", FAILED, when=21))
    it = later(it, 30, evidence_of("dev", PASSED, when=26))
    it = later(it, 31)
    assert evaluate_gates(it).next == at(56)


def test_a_machine_check_that_is_added_leaves_the_others_evidence():
    rule = stage("prod", verification=("e2e", check_rule("load")))
    decision = evaluate_gates(build_facts(at_v1("a"), rule=rule, revisions="v1"))
    assert [check.verdict for check in decision.variants["a"].checks] == [PASSED, "pending"]


def test_a_variant_released_to_a_revision_that_cannot_pass_is_not_awaited():
    """It awaits an approval, and dev has failed v1 since and gone past it."""
    rules = (stage("dev"), stage("prod", after("dev"), requires=(SIGNED,)))
    d = variant("d", "dev", published("v2", 5))
    p = variant("p", "prod", draft=draft("v1"), grant=grant("v1"))
    ok = evidence_of("dev", PASSED, "v2", when=6)
    decision = evaluate_gates(facts(rules, (d, p), ok, revisions="v1 v2", serialize=True))
    assert decision.stages["prod"].candidate == "v2"


def test_a_variant_released_to_a_revision_that_can_still_pass_is_awaited():
    rules = (stage("dev"), stage("prod", after("dev"), requires=(SIGNED,)))
    d = variant("d", "dev", published("v2", 5))
    p = variant("p", "prod", draft=draft("v1"), grant=grant("v1"))
    ok = evidence_of("dev", PASSED, "v2", when=6)
    history = {("dev", "v1"): passed(1, 5)}
    decision = evaluate_gates(
        facts(rules, (d, p), ok, revisions="v1 v2", serialize=True, history=history)
    )
    assert decision.stages["prod"].candidate == "v1"


# The draft of a ready variant at v1, whether its inputs have changed without a draft, its state.
CHANGES = [
    ("without a change", None, False, "Ready"),
    ("with a changed input", None, True, "Suspended"),
    ("with the draft of a changed input", draft("v1", "+"), False, "Suspended"),
    ("with the draft that was published", draft("v1"), False, "Ready"),
]


@pytest.mark.parametrize(
    ("_", "own_draft", "outdated", "state"),
    CHANGES,
    ids=[it[0] for it in CHANGES],
)
@pytest.mark.parametrize("level", ["policy", "stage", "variant"])
def test_a_change_of_what_is_suspended_is_shown(_, own_draft, outdated, state, level):
    ready = variant("a", "dev", published("v1"), draft=own_draft, outdated=outdated)
    it = facts(
        [stage("dev", suspended=level == "stage")],
        [replace(ready, suspended=level == "variant")],
        evidence_of("dev", PASSED),
        suspended=level == "policy",
    )
    evaluation = evaluate_gates(it)
    assert evaluation.variants["a"].state == state
    assert evaluation.stages["dev"].verdict is PASSED
    changes = [it.message for it in evaluation.variants["a"].holds if "inputs" in it.message]
    assert len(changes) == (state == "Suspended")


def test_a_suspended_policy_stays_as_it_is():
    busy = variant("b", "prod", published("v1", 5))
    it = build_facts(to_v2("a", grant=grant("v2")), busy, revisions="v1 v2", suspended=True)
    decision = evaluate_gates(it)
    assert not any(item.release or item.publish for item in decision.variants.values())
    assert decision.stages["prod"].aggregates.in_flight == 2
