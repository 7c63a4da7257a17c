"""What is shown beside a state without changing it, and failures that are over."""

import pytest
from gates.rolling import bad, ok, rolling, rollout_facts, under_way, waiting
from gates.worlds import (
    FAILED,
    at,
    check_rule,
    decided,
    draft,
    evidence_of,
    facts,
    grant,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, CheckMethod, VariantState
from fanout.api.results import CheckAnswer, Hold
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import CheckReading
from fanout.values import replace

# ---- offline -------------------------------------------------------------------------------------

SHUT = rolling(max_in_flight=1, progress_deadline=30)
GOES_OFFLINE = [
    ("ready", under_way("a"), (ok("a"),), 10, VariantState.READY, ["Offline"]),
    ("verifying", under_way("a"), (), 10, VariantState.VERIFYING,
     ["VerificationPending", "Offline"]),
    ("failed", under_way("a"), (bad("a"),), 10, VariantState.FAILED,
     ["VerificationFailed", "Offline"]),
    ("late", under_way("a"), (), 40, VariantState.FAILED,
     ["DeadlineExceeded", "VerificationPending", "Offline"]),
    ("suspended too", under_way("a", suspended=True), (ok("a"),), 10, VariantState.READY,
     ["Suspended", "Offline"]),
    ("released and not published", waiting("a", grant=grant("v2")), (), 10, VariantState.PROPOSED,
     ["Offline"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "it", "records", "now", "state", "reasons"),
    GOES_OFFLINE,
    ids=[it[0] for it in GOES_OFFLINE],
)
def test_a_variant_offline_after_its_release_is_shown_and_counts_as_before(
    _, it, records, now, state, reasons
):
    online, offline = (
        evaluate_gates(
            rollout_facts(SHUT, [replace(it, offline=away), waiting("b")], *records, now=now)
        )
        for away in (False, True)
    )
    assert offline.variants["a"].state is state is online.variants["a"].state
    assert sorted(reasons_of(offline, "a")) == sorted(reasons)
    assert offline.stages["prod"].aggregates == online.stages["prod"].aggregates
    assert offline.stages["prod"].released == online.stages["prod"].released
    assert offline.stages["prod"].halted is online.stages["prod"].halted
    assert (offline.variants["a"].publish, offline.variants["a"].next, offline.next) == (
        online.variants["a"].publish,
        online.variants["a"].next,
        online.next,
    )


def test_a_ready_offline_variant_waits_only_to_come_online():
    it = rollout_facts(SHUT, [under_way("a", offline=True)], ok("a"))
    evaluation = evaluate_gates(it).variants["a"]
    assert (evaluation.state, [hold.reason for hold in evaluation.holds]) == ("Ready", ["Offline"])


# ---- failures of other inputs --------------------------------------------------------------------

BROKEN = under_way("a", draft=draft("v2", "mended"))
HALTED = [
    ("as it failed", under_way("a"), True, "failed", []),
    ("with other inputs", BROKEN, False, "pending", ["a"]),
    ("with a draft that is not up to date",
     under_way("a", draft=draft("v2", "mended", current=False)), True, "failed", []),
    ("that only moves", under_way("a", draft=replace(draft("v2"), moves=True)), True, "failed", []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "it", "halted", "verdict", "released"), HALTED, ids=[row[0] for row in HALTED]
)
def test_a_failure_is_about_the_inputs_that_failed(_, it, halted, verdict, released):
    decision = evaluate_gates(rollout_facts(rolling(max_in_flight=1), [it, waiting("b")], bad("a")))
    stage_view = decision.stages["prod"]
    assert (stage_view.halted, stage_view.verdict) == (halted, verdict)
    assert list(stage_view.released)[:1] == released
    assert stage_view.aggregates.failed == halted


def test_the_others_go_on_with_the_mended_one():
    decision = evaluate_gates(rollout_facts(rolling(), [BROKEN, waiting("b")], bad("a")))
    assert list(decision.stages["prod"].released) == ["a", "b"]


def test_new_inputs_that_fail_too_halt_it_again():
    it = under_way("a")
    again = replace(it, published=replace(published("v2", 8, "mended"), since=at(5)))
    decision = evaluate_gates(
        rollout_facts(rolling(), [again, waiting("b")], bad("a"), bad("a", when=9))
    )
    assert decision.stages["prod"].halted
    quiet = evaluate_gates(rollout_facts(rolling(), [again, waiting("b")], bad("a")))
    assert not quiet.stages["prod"].halted, "what was said before is about the inputs of then"


# ---- what is required, and ways back -------------------------------------------------------------

QUOTA = check_rule("quota", CheckMethod.HTTP, names_revision=True)
REPORTED = check_rule("scan")
NO = CheckReading("quota", "digest-v1", FAILED, "no room", "v1")
WAYS = [
    ("a rollback", "", decided(Action.ROLLBACK, stage="prod", revision="v1", when=3)),
    (
        "a rollback of one",
        "",
        decided(Action.ROLLBACK, variants=("a",), stage="prod", revision="v1"),
    ),
    ("a pin", "v1", None),
]


@pytest.mark.parametrize(("_", "pin", "decision"), WAYS, ids=[row[0] for row in WAYS])
def test_required_checks_do_not_hold_a_variant_that_goes_back(_, pin, decision):
    rule = stage("prod", requires=(QUOTA, REPORTED), pin=pin)
    a = variant("a", "prod", published("v2", 2), draft=draft("v1"), readings=(NO,))
    reported = evidence_of("prod", FAILED, "v1", when=4, check="scan")
    said_so = (reported,) if decision is None else (reported, decision)
    evaluation = evaluate_gates(facts((rule,), (a,), *said_so, revisions="v1 v2"))
    assert evaluation.variants["a"].publish, evaluation.variants["a"].holds
    alone = decision is not None and bool(decision.spec.variants)
    assert evaluation.stages["prod"].halted is alone, "one that goes back alone has failed the rest"
    on_record = replace(a, readings=(), answers=(CheckAnswer("quota", "digest-v1", FAILED, at(3)),))
    assert (
        evaluate_gates(facts((rule,), (on_record,), *said_so, revisions="v1 v2"))
        .variants["a"]
        .publish
    )


def test_a_rendering_that_fails_holds_who_goes_back():
    rule = stage("prod", requires=(QUOTA,), pin="v1")
    failed = Hold("RenderFailed", "line 3", "its author")
    a = variant("a", "prod", published("v2", 2), draft=draft("v1"), failed=failed)
    assert (
        evaluate_gates(facts((rule,), (a,), revisions="v1 v2")).variants["a"].state
        is VariantState.FAILED
    )
