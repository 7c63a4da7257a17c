"""Stage verdicts: what counts, what is remembered, what withdraws it."""

from datetime import timedelta
from operator import itemgetter

import pytest
from gates.rolling import rolling
from gates.worlds import (
    FAILED,
    PASSED,
    PENDING,
    after,
    approved,
    at,
    check_rule,
    decided,
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

from fanout.api.gate_vocabulary import Action, OverridableGate, Require, VariantState
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_rules import ApprovalRule
from fanout.gates.revision_history import RevisionHistory
from fanout.values import replace

DEV = stage("dev")
PROD = stage("prod", after("dev", soak=60))
V1 = published("v1")
OK, BAD = evidence_of("dev", PASSED), evidence_of("dev", FAILED)
OK_A = evidence_of("dev", PASSED, variants=("a",))
BROKEN = Hold("RenderFailed", "line 3")
BEFORE = {("dev", "v1"): passed(1)}


def dev(*variants, records=(), **fields):
    return facts((DEV,), variants, *records, **fields)


A, B = variant("a", "dev", V1), variant("b", "dev", V1)
LATE = variant("z", "dev", published("v1", 5))  # it joined when the verdict was on record

ROWS = [
    ("passed when every variant is ready", dev(A, B, records=[OK]), PASSED),
    ("pending while one is not verified", dev(A, B, records=[OK_A]), PENDING),
    ("pending while one is not published", dev(A, variant("b", "dev"), records=[OK]), PENDING),
    (
        "failed as soon as one has failed",
        dev(A, variant("b", "dev"), records=[evidence_of("dev", FAILED, variants=("a",))]),
        FAILED,
    ),
    (
        "a rendering that failed is a failure",
        dev(A, variant("b", "dev", failed=BROKEN), records=[OK]),
        FAILED,
    ),
    (
        "a held variant is unfinished",
        dev(A, variant("b", "dev", held=Hold("PathTaken", "x")), records=[OK]),
        PENDING,
    ),
    (
        "suspended before its release it does not count",
        dev(A, variant("b", "dev", suspended=True), records=[OK]),
        PASSED,
    ),
    (
        "suspended after its release it counts as what it was: unfinished",
        dev(A, variant("b", "dev", grant=grant("v1"), suspended=True), records=[OK]),
        PENDING,
    ),
    (
        "or failed",
        dev(
            A, replace(B, suspended=True), records=[OK, evidence_of("dev", FAILED, variants=("b",))]
        ),
        FAILED,
    ),
    (
        "released and held by something else it counts",
        dev(A, variant("b", "dev", grant=grant("v1"), held=Hold("x", "x")), records=[OK]),
        PENDING,
    ),
    ("nothing is left to count", dev(variant("a", "dev", suspended=True), records=[OK]), PENDING),
    ("no target is in it", dev(records=[OK]), PENDING),
    (
        "a verdict reached before stays when nothing is left to count",
        dev(variant("a", "dev", suspended=True), history=BEFORE),
        PASSED,
    ),
    ("or when no target is left", dev(history=BEFORE), PASSED),
    (
        "a target that joins later does not withdraw it",
        dev(A, variant("new", "dev"), history=BEFORE, records=[OK_A]),
        PASSED,
    ),
    (
        "not even by a rendering that fails",
        dev(A, variant("new", "dev", failed=BROKEN), history=BEFORE, records=[OK_A]),
        PASSED,
    ),
    ("missing evidence changes nothing any more", dev(A, history=BEFORE), PASSED),
    (
        "nor does evidence that is pending again",
        dev(A, history=BEFORE, records=[OK, evidence_of("dev", PENDING)]),
        PASSED,
    ),
    ("evidence that fails withdraws it", dev(A, history=BEFORE, records=[OK, BAD]), FAILED),
    (
        "new inputs are verified anew and the verdict stays",
        dev(variant("a", "dev", published("v1", 5, "new")), history=BEFORE, records=[OK]),
        PASSED,
    ),
    (
        "until that verification fails",
        dev(
            variant("a", "dev", replace(published("v1", 5, "new"), since=at(0))),
            history=BEFORE,
            records=[OK, evidence_of("dev", FAILED, when=6)],
        ),
        FAILED,
    ),
    (
        "a newcomer that fails does not withdraw it",
        dev(
            A,
            LATE,
            history=BEFORE,
            records=[OK, evidence_of("dev", FAILED, when=6, variants=("z",))],
        ),
        PASSED,
    ),
    (
        "nor does one that fails beside another newcomer",
        dev(
            A,
            LATE,
            replace(LATE, name="y"),
            history=BEFORE,
            records=[OK, evidence_of("dev", FAILED, when=6, variants=("y", "z"))],
        ),
        PASSED,
    ),
    (
        "who was there withdraws it beside a newcomer",
        dev(A, LATE, history=BEFORE, records=[OK, evidence_of("dev", FAILED, when=6)]),
        FAILED,
    ),
    (
        "who came before the stage was ready again carries the present stretch",
        dev(
            A,
            LATE,
            history={("dev", "v1"): RevisionHistory(at(-9), since=at(6))},
            records=[OK, evidence_of("dev", FAILED, when=7, variants=("z",))],
        ),
        FAILED,
    ),
    (
        "nobody can tell who carried what the stage has left",
        dev(
            A,
            LATE,
            history={("dev", "v1"): passed(1, 3)},
            records=[OK, evidence_of("dev", FAILED, when=7, variants=("z",))],
        ),
        FAILED,
    ),
]


@pytest.mark.parametrize(
    ("sentence", "policy_facts", "verdict"), ROWS, ids=map(itemgetter(0), ROWS)
)
def test_verdict(sentence, policy_facts, verdict):
    decision = evaluate_gates(policy_facts)
    assert decision.stages["dev"].verdict is verdict
    remembered = decision.history.get(("dev", "v1"))
    assert (remembered is not None and remembered.passed is not None) == (verdict is PASSED)


def test_empty_stages_say_so():
    assert reasons_of(evaluate_gates(dev()), "dev") == ["NoTargets"]
    asleep = evaluate_gates(dev(variant("a", "dev", suspended=True)))
    assert reasons_of(asleep, "dev")[0] == "NothingCounts"
    assert asleep.stages["dev"].counts == {VariantState.SUSPENDED: 1}


def test_clocks_start_with_what_the_verdict_rests_on_and_nothing_is_back_dated():
    policy_facts = dev(
        A, records=[evidence_of("dev", PASSED, when=-60), evidence_of("dev", PASSED, when=1)]
    )
    assert evaluate_gates(policy_facts).history == {("dev", "v1"): passed(1)}


SUSPENDED = decided(Action.SUSPEND, variants=("b",), when=7)
SKIPPED = decided(Action.SKIP, stage="dev", revision="v1", variants=("b",), when=8)
_LIFTED = {"stage": "dev", "revision": "v1", "variants": ("a",), "when": 6}
OVERRIDDEN = decided(Action.PUBLISH, OverridableGate.VERIFICATION, **_LIFTED)
WITHDRAWN = replace(evidence_of("dev", FAILED, when=2, by="bob"), withdrawn=at(9))
UNREADY = variant("b", "dev")
OK_B = evidence_of("dev", PASSED, when=4, variants=("b",))
LATER = variant("a", "dev", published("v1", 2))
OK_LATER = evidence_of("dev", PASSED, when=3)
RESTS_ON = [
    ("evidence", [OK], [A], {}, 1),
    (
        "evidence of the last variant",
        [OK_A, OK_B],
        [A, B],
        {},
        4,
    ),
    (
        "a report after a publication",
        [OK, evidence_of("dev", PASSED, when=3)],
        [variant("a", "dev", published("v1", 2))],
        {},
        3,
    ),
    ("minReady", [OK], [A], {"rollout": rolling(min_ready=6)}, 7),
    ("an override", [OVERRIDDEN], [A], {}, 6),
    ("the suspension of one that is not ready", [OK, SUSPENDED], [A, UNREADY], {}, 7),
    ("the skip of one that is not ready", [OK, SKIPPED], [A, UNREADY], {}, 8),
    ("the withdrawal of a failure", [OK, WITHDRAWN], [A], {}, 9),
    ("an offline target, which has no instant", [OK], [A, replace(UNREADY, offline=True)], {}, 500),
    ("a suspension by spec", [OK], [A, replace(UNREADY, suspended=True)], {}, 500),
]


@pytest.mark.parametrize(
    ("records", "variants", "fields", "begins"),
    [row[1:] for row in RESTS_ON],
    ids=[row[0] for row in RESTS_ON],
)
def test_a_soak_begins_with_the_latest_that_its_verdict_rests_on(records, variants, fields, begins):
    policy_facts = facts((stage("dev", **fields),), variants, *records, now=500)
    assert evaluate_gates(policy_facts).history == {("dev", "v1"): passed(begins)}


def test_a_soak_is_measured_by_the_clock_and_its_end_is_a_next_instant():
    waiting = facts((DEV, PROD), (A, variant("p", "prod", draft=draft("v1"))), OK)
    first = evaluate_gates(waiting)
    assert (first.next, reasons_of(first, "p")) == (at(61), ["SoakRunning"])
    early = evaluate_gates(later(waiting, 60.9))
    assert not early.variants["p"].release
    assert early.next == at(61)
    evaluation = evaluate_gates(later(waiting, 61))
    assert evaluation.variants["p"].publish
    assert evaluation.next is None


def test_before_it_is_recorded_a_soak_has_no_instants_that_move_with_the_clock():
    # No instant is known from which an offline target no longer counts.
    away = variant("b", "dev", offline=True)
    waiting = facts((DEV, PROD), (A, away, variant("p", "prod", draft=draft("v1"))), OK)
    early, late = evaluate_gates(waiting), evaluate_gates(replace(waiting, now=at(500)))
    [hold] = early.variants["p"].holds
    assert hold.message == "v1 is ready in stage dev; its soak of 1h starts with the next sweep"
    assert (hold.since, hold.until, early.next) == (None, None, None)
    assert early.variants == late.variants
    assert early.stages == late.stages
    assert not early.holds, "the pass that records it goes on"


def test_no_soak_is_an_instant_to_wait_for_where_after_cannot_open_by_itself():
    both = stage("prod", after("dev", "eu", soak=60))
    drafted = variant("p", "prod", draft=draft("v1"))
    eu = variant("e", "eu", published("v1"))
    rules, history = (DEV, stage("eu"), both), {("dev", "v1"): passed(5)}
    lost = facts(rules, (A, eu, drafted), OK, evidence_of("eu", FAILED), history=history)
    decision = evaluate_gates(lost)
    assert (decision.stages["prod"].gate, decision.stages["prod"].next) == (FAILED, None)
    waits = facts(rules, (A, eu, drafted), OK, history=history)
    assert evaluate_gates(waits).stages["prod"].next is None
    history["eu", "v1"] = passed(9)
    runs = facts(rules, (A, eu, drafted), OK, evidence_of("eu", PASSED), history=history)
    assert evaluate_gates(runs).stages["prod"].next == at(69)
    either = stage("prod", after("dev", "eu", require=Require.ANY, soak=60))
    soonest = replace(runs, stages=(DEV, stage("eu"), either))
    assert evaluate_gates(soonest).stages["prod"].next == at(65)


def test_a_withdrawal_starts_the_soak_anew():
    policy_facts = facts((DEV, PROD), (A, variant("p", "prod", draft=draft("v1"))), OK)
    policy_facts = later(policy_facts, 30, evidence_of("dev", FAILED, when=29))
    assert evaluate_gates(policy_facts).history == {}
    policy_facts = later(policy_facts, 40, evidence_of("dev", PASSED, when=39))
    assert evaluate_gates(later(policy_facts, 41)).next == at(99)
    assert not evaluate_gates(later(policy_facts, 71)).variants["p"].release
    assert evaluate_gates(later(policy_facts, 99)).variants["p"].publish


def test_a_soak_ends_when_the_stage_moves_on_and_what_was_earned_stays():
    drafted = variant("p", "prod", draft=draft("v1"))
    policy_facts = facts((DEV, PROD), (A, drafted), OK, revisions="v1 v2")
    moved = variant("a", "dev", published("v2", 80))
    enough = evaluate_gates(later(policy_facts, 90, variants=(moved, drafted)))
    assert enough.history["dev", "v1"] == passed(1, 80)
    assert enough.variants["p"].publish
    moved = variant("a", "dev", published("v2", 40))
    cut = evaluate_gates(later(policy_facts, 90, variants=(moved, drafted)))
    assert cut.history["dev", "v1"] == passed(1, 40)
    assert cut.stages["prod"].candidate == "v2"


def test_a_stage_that_moves_on_in_the_pass_that_saw_it_passed_soaks_no_more():
    drafted = variant("p", "prod", draft=draft("v1"))
    first = facts((DEV, PROD), (A, drafted), OK, revisions="v1 v2")
    assert evaluate_gates(first).history["dev", "v1"] == passed(1)
    moved = variant("a", "dev", published("v2", 1))
    decision = evaluate_gates(later(first, 90, variants=(moved, drafted)))
    assert decision.history["dev", "v1"] == passed(1, 1)
    assert not decision.variants["p"].publish


def test_the_stage_moves_on_with_its_first_variant():
    both = dev(A, B, records=[OK], revisions="v1 v2")
    policy_facts = later(both, 20, variants=(variant("a", "dev", published("v2", 15)), B))
    assert evaluate_gates(policy_facts).history["dev", "v1"] == passed(1, 15)


def test_answers_stand_when_the_revision_has_left():
    policy_facts = dev(A, records=[OK], revisions="v1 v2")
    moved = (variant("a", "dev", published("v2", 15)),)
    policy_facts = later(
        policy_facts, 20, evidence_of("dev", FAILED, "v1", when=16), variants=moved
    )
    decision = evaluate_gates(policy_facts)
    assert decision.stages["dev"].verdicts == {"v1": PASSED, "v2": PENDING}


def test_the_end_of_a_soak_of_a_queued_revision_is_a_next_instant():
    dev_variant = variant("d", "dev", published("v2", 5))
    prod_variant = variant("p", "prod", V1)
    policy_facts = facts(
        (DEV, PROD),
        (dev_variant, prod_variant),
        evidence_of("prod", PASSED, "v1"),
        evidence_of("dev", PASSED, "v2", when=6),
        revisions="v1 v2",
        history={("dev", "v1"): passed(-90, 5), ("prod", "v1"): passed(2)},
    )
    decision = evaluate_gates(later(policy_facts, 11))
    assert decision.stages["prod"].candidate == "v1"
    assert decision.stages["prod"].queued == ("v2",)
    assert decision.next == at(66)


def test_the_soak_of_what_a_stage_has_already_is_no_timer():
    policy_facts = facts(
        (DEV, PROD), (A, variant("p", "prod", V1)), OK, evidence_of("prod", PASSED)
    )
    assert evaluate_gates(policy_facts).next is None


def test_expiries_are_instants_at_which_something_changes():
    rule = ApprovalRule("signed-off", 2, frozenset({"ann", "bob"}), expires=at(30) - at(0))
    prod = stage("prod", after("dev"), requires=(rule,))
    policy_facts = facts(
        (DEV, prod), (A, variant("p", "prod", draft=draft("v1"))), OK, approved("ann")
    )
    assert evaluate_gates(later(policy_facts, 11)).next == at(31)
    rest = decided(Action.SUSPEND, stage="prod", expires=at(20))
    asleep = replace(policy_facts, records=replace(policy_facts.records, decisions=(rest,)))
    assert evaluate_gates(asleep).stages["prod"].next == at(20)
    early = evidence_of("dev", PASSED, when=40)
    ahead = replace(
        policy_facts, records=replace(policy_facts.records, evidence=(early,), approvals=())
    )
    assert evaluate_gates(ahead).next == at(40)


def test_stages_gather_the_holds_of_their_variants():
    variants = [variant(f"v{number}", "dev", V1) for number in range(5)]
    holds = evaluate_gates(dev(*variants)).stages["dev"].holds
    assert len(holds) == 1
    unreported = "check e2e is not reported for v1 yet"
    assert holds[0].message == f"5 variants, v0 first: {unreported}"
    assert holds[0].who == gate_wording.format_reporter("e2e", "dev")


def test_a_stage_that_waits_names_who_can_help_the_one_before():
    policy_facts = facts((DEV, PROD), (A, variant("p", "prod", draft=draft("v1"))))
    hold = evaluate_gates(policy_facts).stages["prod"].holds[0]
    assert (hold.reason, hold.who) == (
        "AfterPending",
        gate_wording.format_reporter("e2e", "dev"),
    )


def test_a_stage_that_was_taken_out_of_the_policy_is_forgotten():
    policy_facts = dev(A, records=[OK], history={("gone", "v1"): passed(1)})
    assert set(evaluate_gates(policy_facts).history) == {("dev", "v1")}


def test_independent_stages_go_in_parallel_and_a_chain_goes_in_one_pass_each():
    stages = (
        stage("eu", verification=()),
        stage("us", verification=()),
        stage("prod", after("eu", "us"), verification=()),
    )
    drafted = [variant(name, name, draft=draft("v1")) for name in ("eu", "us", "prod")]
    decision = evaluate_gates(facts(stages, drafted))
    assert [name for name, item in decision.variants.items() if item.publish] == ["eu", "us"]


def test_a_hold_of_a_stage_counts_each_variant_once():
    one = ApprovalRule("signed-off", 1, frozenset({"ann"}), ("sre",))
    rule = replace(DEV, requires=(one, replace(one, name="security")))
    variants = [variant(name, "dev", draft=draft("v1")) for name in "abc"]
    [hold] = evaluate_gates(facts((rule,), variants)).stages["dev"].holds
    missing = gate_wording.describe_missing_approvals(one, [])
    assert hold.message == f"3 variants, a first: {missing}"


def test_a_variant_behind_a_stage_that_publishes_now_waits_for_the_next_sweep():
    d = variant("d", "dev", draft=draft("v1"))
    decision = evaluate_gates(facts((DEV, PROD), (d, variant("p", "prod", draft=draft("v1")))))
    assert decision.variants["d"].publish
    assert [hold.who for hold in decision.variants["p"].holds] == [gate_wording.NEXT_SWEEP]


def test_the_end_of_a_check_of_an_older_revision_is_a_next_instant_too():
    """Its verdict there decides what the stages after may take."""
    timed = check_rule("e2e", timeout=timedelta(minutes=30))
    d = variant("d", "dev", published("v1"), draft=draft("v2"))
    p = variant("p", "prod", published("v1"))
    it = facts(
        (stage("dev", verification=(timed,), automatic=False), stage("prod", after("dev"))),
        (d, p), revisions="v1 v2",
    )  # fmt: skip
    assert evaluate_gates(it).next == at(30)
    assert evaluate_gates(it).stages["prod"].candidate == "v1"
    assert evaluate_gates(replace(it, now=at(30))).stages["prod"].candidate == "v2"
