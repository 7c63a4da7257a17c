"""What people decide: publications by hand through the same gates, overrides, suspensions."""

from datetime import timedelta
from operator import itemgetter

import pytest
from gates.worlds import (
    BY_HAND,
    FAILED,
    OK,
    PASSED,
    PROD,
    SIGNED,
    SIGNED_PROD,
    after,
    approved,
    at,
    decided,
    draft,
    evidence_of,
    facts,
    prod,
    published,
    reasons_of,
    stage,
    variant,
)

from fanout.api.gate_vocabulary import Action, OverridableGate, VariantState
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

PUBLISH, SUSPEND, RESUME = Action.PUBLISH, Action.SUSPEND, Action.RESUME
V1 = {"revision": "v1", "stage": "prod"}

#   sentence, world, state, release, publish, reasons
ROWS = [
    (
        "a person promotes where automation is off",
        prod(OK, decided(PUBLISH, **V1), rule=BY_HAND),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "also between sweeps",
        prod(OK, decided(PUBLISH, **V1), policy_fields={"sweep": False}),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "the same gates bind a person",
        prod(decided(PUBLISH, **V1), rule=BY_HAND),
        "Drafted",
        0,
        0,
        ["AfterPending"],
    ),
    (
        "and the same requires",
        prod(OK, decided(PUBLISH, **V1), rule=SIGNED_PROD),
        "Released",
        1,
        0,
        ["ApprovalMissing"],
    ),
    (
        "`after` lifted",
        prod(decided(PUBLISH, OverridableGate.AFTER, **V1), rule=BY_HAND),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "`requires` lifted",
        prod(OK, decided(PUBLISH, OverridableGate.REQUIRES, **V1), rule=SIGNED_PROD),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "for another revision it covers nothing",
        prod(OK, decided(PUBLISH, stage="prod", revision="v0"), rule=BY_HAND),
        "Drafted",
        0,
        0,
        ["AutomationOff"],
    ),
    (
        "for another variant neither",
        prod(OK, decided(PUBLISH, variants=("x",), **V1), rule=BY_HAND),
        "Drafted",
        0,
        0,
        ["AutomationOff"],
    ),
    (
        "for this variant it does",
        prod(OK, decided(PUBLISH, variants=("p",), **V1), rule=BY_HAND),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "for the whole policy it does",
        prod(OK, decided(PUBLISH, revision="v1"), rule=BY_HAND),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "after it has expired it covers nothing",
        prod(OK, decided(PUBLISH, expires=at(10), **V1), rule=BY_HAND),
        "Drafted",
        0,
        0,
        ["AutomationOff"],
    ),
    (
        "a decision from the future does not count yet",
        prod(OK, decided(PUBLISH, when=30, **V1), rule=BY_HAND),
        "Drafted",
        0,
        0,
        ["AutomationOff"],
    ),
    (
        "one decision, one change: new inputs of a promoted revision ask again",
        prod(OK, decided(PUBLISH, **V1), rule=BY_HAND, has=published("v1", 5, "old")),
        "Drafted",
        0,
        0,
        ["AutomationOff"],
    ),
    (
        "suspended by spec",
        prod(OK, suspended=True),
        "Suspended",
        0,
        0,
        ["Suspended"],
    ),
    (
        "by a decision",
        prod(OK, decided(SUSPEND, variants=("p",))),
        "Suspended",
        0,
        0,
        None,
    ),
    ("with its stage", prod(OK, decided(SUSPEND, stage="prod")), "Suspended", 0, 0, None),
    (
        "its stage's spec",
        prod(OK, rule=replace(PROD, suspended=True)),
        "Suspended",
        0,
        0,
        None,
    ),
    ("with its policy", prod(OK, decided(SUSPEND)), "Suspended", 0, 0, None),
    (
        "with its policy's spec",
        prod(OK, policy_fields={"suspended": True}),
        "Suspended",
        0,
        0,
        None,
    ),
    (
        "the last word wins",
        prod(OK, decided(SUSPEND, stage="prod"), decided(RESUME, stage="prod")),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "each for exactly what it names",
        prod(OK, decided(SUSPEND, stage="prod"), decided(RESUME)),
        "Suspended",
        0,
        0,
        None,
    ),
    (
        "a decision does not lift what a spec says",
        prod(OK, decided(RESUME, variants=("p",)), suspended=True),
        "Suspended",
        0,
        0,
        None,
    ),
    (
        "a suspension that expired is over",
        prod(OK, decided(SUSPEND, expires=at(9))),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "a clock that runs ahead suspends at once",
        prod(OK, decided(SUSPEND, when=30)),
        "Suspended",
        0,
        0,
        None,
    ),
    (
        "and does not resume",
        prod(OK, decided(SUSPEND), decided(RESUME, when=30)),
        "Suspended",
        0,
        0,
        None,
    ),
    (
        "a person's promotion does not beat a suspension",
        prod(OK, decided(SUSPEND), decided(PUBLISH, **V1)),
        "Suspended",
        0,
        0,
        None,
    ),
    (
        "published, verified and suspended: it stays what it was",
        prod(OK, evidence_of("prod", PASSED), decided(SUSPEND), has=published("v1"), open_draft=""),
        "Ready",
        0,
        0,
        ["Suspended"],
    ),
    (
        "a person may",
        prod(OK, decided(PUBLISH, **V1), has=published("v2"), policy_fields={"revisions": "v1"}),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "verification lifted: it counts as ready",
        prod(
            OK,
            evidence_of("prod", FAILED),
            decided(PUBLISH, OverridableGate.VERIFICATION, when=2, **V1),
            has=published("v1"),
            open_draft="",
        ),
        "Ready",
        0,
        0,
        [],
    ),
    (
        "but what fails after the decision was not known to it",
        prod(
            OK,
            decided(PUBLISH, OverridableGate.VERIFICATION, when=2, **V1),
            evidence_of("prod", FAILED, when=3),
            has=published("v1"),
            open_draft="",
        ),
        "Failed",
        0,
        0,
        ["VerificationFailed"],
    ),
]


@pytest.mark.parametrize(
    ("sentence", "more", "state", "release", "publish", "reasons"),
    ROWS,
    ids=map(itemgetter(0), ROWS),
)
def test_variant(sentence, more, state, release, publish, reasons):
    decision = evaluate_gates(more)
    p = decision.variants["p"]
    assert (p.state, p.release, p.publish) == (state, bool(release), bool(publish))
    if reasons is not None:
        assert reasons_of(decision, "p") == reasons


def test_a_spent_decision_overrides_no_gate_for_new_inputs():
    rule = stage("prod", after("dev"))
    lift = decided(PUBLISH, OverridableGate.AFTER, **V1)
    policy_facts = prod(lift, rule=rule, has=published("v1", 5, "old"))
    p = evaluate_gates(policy_facts).variants["p"]
    assert (p.state, [hold.reason for hold in p.holds]) == (VariantState.DRAFTED, ["AfterPending"])


GONE_BACK = [
    ("to what it had before", published("v2", 5), "v1"),
    ("to what it had at the very instant of the publication", published("v1", 1, "old"), "v1"),
]


@pytest.mark.parametrize(("_", "has", "candidate"), GONE_BACK, ids=map(itemgetter(0), GONE_BACK))
def test_a_decision_before_the_last_publication_publishes_no_more(_, has, candidate):
    policy_facts = prod(OK, decided(PUBLISH, **V1), has=has, policy_fields={"revisions": candidate})
    held = evaluate_gates(replace(policy_facts, stages=(policy_facts.stages[0], BY_HAND)))
    assert held.variants["p"].publish is False
    assert held.variants["p"].release is False
    automatic = evaluate_gates(policy_facts).variants["p"]
    assert automatic.publish is (has.revision == "v1")


SEEN, OTHER = {"trees": frozenset({"tree-v1"})}, {"trees": frozenset({"tree-v1-old"})}
ABOUT = [
    ("the draft that there was to see", SEEN, None, True),
    ("a draft that was rewritten since", OTHER, None, False),
    ("the step to the revision, where no draft was there yet", {}, None, True),
    ("the step from another revision, where no draft was there yet", {}, "v0", True),
    ("new inputs of the revision that is in force, which were there to see", SEEN, "v1", True),
    ("those that came later", OTHER, "v1", False),
    ("those that came later, where no draft was there", {}, "v1", False),
]


@pytest.mark.parametrize(
    ("_", "trees", "revision", "expected"), ABOUT, ids=map(itemgetter(0), ABOUT)
)
def test_a_decision_to_publish_is_about(_, trees, revision, expected):
    has = published(revision, 0, "old") if revision else None
    said_so = decided(PUBLISH, name="d1", **V1, **trees)
    p = evaluate_gates(prod(OK, said_so, rule=BY_HAND, has=has)).variants["p"]
    assert (p.release, p.publish) == (expected, expected)
    if not expected:
        assert "decision d1 by ann covers other drafts of v1, not this one" in p.holds[0].message


def test_a_decision_without_trees_does_not_accept_an_adopting_draft():
    about = replace(draft("v1"), adopts=True)
    for trees, held in ((frozenset(), ["AdoptionAwaits"]), (frozenset({about.tree}), [])):
        policy_facts = prod(OK, decided(PUBLISH, trees=trees, **V1), rule=BY_HAND)
        d, p = policy_facts.variants
        policy_facts = replace(policy_facts, variants=(d, replace(p, draft=about)))
        decision = evaluate_gates(policy_facts)
        assert (reasons_of(decision, "p"), decision.variants["p"].publish) == (held, not held)


def test_a_decision_before_a_removal_publishes_no_more():
    removed = prod(OK, decided(PUBLISH, **V1), rule=BY_HAND, removed=at(2))
    assert evaluate_gates(removed).variants["p"].publish is False
    again = prod(OK, decided(PUBLISH, when=3, **V1), rule=BY_HAND, removed=at(2))
    assert evaluate_gates(again).variants["p"].publish is True


def test_a_decision_without_a_revision_says_that_it_covers_nothing():
    decision = evaluate_gates(prod(OK, decided(PUBLISH, stage="prod", name="d1"), rule=BY_HAND))
    assert decision.variants["p"].release is False
    hold = decision.holds[0]
    assert hold.reason == "DecisionWaits"
    assert hold.message == "decision d1 by ann names no revision and has no effect"


def test_a_decision_for_what_is_not_the_candidate_says_that_it_waits():
    decision = evaluate_gates(
        prod(
            OK, decided(PUBLISH, stage="prod", revision="v2"), policy_fields={"revisions": "v1 v2"}
        )
    )
    assert "DecisionWaits" in reasons_of(decision, "prod")


def hand_written(*records, automatic=False, **fields):
    rule = stage("", verification=(), automatic=automatic)
    return facts((rule,), [variant("solo", "", draft=draft("v1"), **fields)], *records)


def test_a_variant_written_by_hand_is_its_own_stage():
    off = evaluate_gates(hand_written()).variants["solo"]
    assert (off.state, off.publish) == (VariantState.DRAFTED, False)
    assert evaluate_gates(hand_written(automatic=True)).variants["solo"].publish
    by_hand = decided(PUBLISH, variants=("solo",), revision="v1")
    assert evaluate_gates(hand_written(by_hand)).variants["solo"].publish
    asleep = evaluate_gates(hand_written(by_hand, decided(SUSPEND, variants=("solo",))))
    assert asleep.variants["solo"].state is VariantState.SUSPENDED


ENDS = [
    ("an approval that ends", approved("ann"), None),
    ("a decision to publish that ends", decided(PUBLISH, expires=at(40), **V1), None),
    ("a suspension that ends", decided(SUSPEND, stage="prod", expires=at(40)), at(40)),
]


@pytest.mark.parametrize(("_", "record", "then"), ENDS, ids=map(itemgetter(0), ENDS))
def test_the_next_instant_is_one_that_opens_something(_, record, then):
    rule = replace(SIGNED_PROD, requires=(replace(SIGNED, expires=timedelta(minutes=30)),))
    assert evaluate_gates(prod(OK, record, rule=rule)).stages["prod"].next == then
