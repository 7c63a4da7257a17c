"""What one variant may do now: its state, its release, its publication, and what is in its way."""

from dataclasses import replace
from operator import itemgetter

import pytest
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
    facts,
    grant,
    passed,
    published,
    reasons_of,
    said,
    stage,
    variant,
)

from fanout.gates.evaluate import evaluate
from fanout.gates.model import Action, Hold, Override, State

DEV = stage("dev")
PROD = stage("prod", after("dev"))
SIGNED_PROD = stage("prod", after("dev"), requires=(SIGNED,))
BY_HAND = stage("prod", after("dev"), automatic=False)
READY_DEV = variant("d", "dev", published("v1"))
OK = said("dev", PASSED)
PUBLISH, SUSPEND, RESUME = Action.PUBLISH, Action.SUSPEND, Action.RESUME
V1 = {"revision": "v1", "stage": "prod"}
HELD = Hold("PathTaken", "somebody else's")


def prod(*records, rule=PROD, has=None, open_draft="v1", now=10.0, world=None, **fields):
    """Prod's variant p behind dev, which is published at v1 and has what the records say."""
    p = variant("p", "prod", has, draft=draft(open_draft) if open_draft else None, **fields)
    return facts((DEV, rule), (READY_DEV, p), *records, now=now, **(world or {}))


#   sentence, world, state, release, publish, reasons
ROWS = [
    ("dev passed: released and published at once", prod(OK), "Proposed", 1, 1, []),
    ("dev pending: the draft waits", prod(), "Drafted", 0, 0, ["AfterPending"]),
    ("dev failed", prod(said("dev", FAILED)), "Drafted", 0, 0, ["AfterFailed"]),
    ("no draft stands yet", prod(OK, open_draft=""), "Drafted", 0, 0, ["NoDraft"]),
    (
        "a draft that is out of date does not go",
        prod(OK, world={"revisions": "v0 v1"}, open_draft="v0"),
        "Drafted",
        0,
        0,
        ["NoDraft"],
    ),
    (
        "automation is an administrator's to switch on",
        prod(OK, rule=BY_HAND),
        "Drafted",
        0,
        0,
        ["AutomationOff"],
    ),
    (
        "between sweeps automation publishes nothing",
        prod(OK, world={"sweep": False}),
        "Drafted",
        0,
        0,
        ["SweepAwaited"],
    ),
    (
        "nor what it released before",
        prod(OK, world={"sweep": False}, grant=grant("v1")),
        "Proposed",
        0,
        0,
        ["SweepAwaited"],
    ),
    ("a release on record goes on", prod(OK, grant=grant("v1")), "Proposed", 0, 1, []),
    (
        "a release is for one digest: other inputs ask again",
        prod(OK, grant=grant("v1", "old")),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "a release does not outlive the gate that gave it",
        prod(said("dev", FAILED), grant=grant("v1")),
        "Released",
        0,
        0,
        ["AfterFailed"],
    ),
    (
        "released, and approvals are missing",
        prod(OK, approved("ann"), rule=SIGNED_PROD),
        "Released",
        1,
        0,
        ["ApprovalMissing"],
    ),
    (
        "approved by two",
        prod(OK, approved("ann"), approved("bob"), rule=SIGNED_PROD),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "approved before its gate opens: the gate holds",
        prod(approved("ann"), approved("bob"), rule=SIGNED_PROD),
        "Drafted",
        0,
        0,
        ["AfterPending"],
    ),
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
        prod(OK, decided(PUBLISH, **V1), world={"sweep": False}),
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
        prod(decided(PUBLISH, Override.AFTER, **V1), rule=BY_HAND),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "`requires` lifted",
        prod(OK, decided(PUBLISH, Override.REQUIRES, **V1), rule=SIGNED_PROD),
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
    ("with its policy's spec", prod(OK, world={"suspended": True}), "Suspended", 0, 0, None),
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
    ("held", prod(OK, held=HELD), "Held", 0, 0, ["PathTaken"]),
    (
        "its rendering failed",
        prod(OK, failed=Hold("RenderFailed", "line 3")),
        "Failed",
        0,
        0,
        ["RenderFailed"],
    ),
    (
        "published, and nobody has answered",
        prod(OK, has=published("v1"), open_draft=""),
        "Verifying",
        0,
        0,
        ["VerificationPending"],
    ),
    (
        "published, and a check is under way",
        prod(OK, said("prod", PENDING), has=published("v1"), open_draft=""),
        "Verifying",
        0,
        0,
        ["VerificationPending"],
    ),
    (
        "published and verified",
        prod(OK, said("prod", PASSED), has=published("v1"), open_draft=""),
        "Ready",
        0,
        0,
        [],
    ),
    (
        "published and failed",
        prod(OK, said("prod", FAILED), has=published("v1"), open_draft=""),
        "Failed",
        0,
        0,
        ["VerificationFailed"],
    ),
    (
        "without verification it is ready on publication",
        prod(OK, rule=replace(PROD, verification=()), has=published("v1"), open_draft=""),
        "Ready",
        0,
        0,
        [],
    ),
    (
        "published, verified and suspended: it stays what it was",
        prod(OK, said("prod", PASSED), decided(SUSPEND), has=published("v1"), open_draft=""),
        "Ready",
        0,
        0,
        ["Suspended"],
    ),
    (
        "published with other inputs: it goes again through the gate",
        prod(OK, said("prod", PASSED), has=published("v1", 0, "old")),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "the draft of what is in force already is no draft",
        prod(OK, said("prod", PASSED), has=published("v1")),
        "Ready",
        0,
        0,
        [],
    ),
    (
        "automation never goes back",
        prod(OK, has=published("v2"), world={"revisions": "v1"}),
        "Drafted",
        0,
        0,
        ["WouldGoBack"],
    ),
    (
        "a person may",
        prod(OK, decided(PUBLISH, **V1), has=published("v2"), world={"revisions": "v1"}),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "verification lifted: it counts as ready",
        prod(
            OK,
            said("prod", FAILED),
            decided(PUBLISH, Override.VERIFICATION, when=2, **V1),
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
            decided(PUBLISH, Override.VERIFICATION, when=2, **V1),
            said("prod", FAILED, when=3),
            has=published("v1"),
            open_draft="",
        ),
        "Failed",
        0,
        0,
        ["VerificationFailed"],
    ),
    (
        "the rule allows no revision",
        prod(OK, world={"revisions": ""}),
        "Held",
        0,
        0,
        ["NoRevision"],
    ),
    (
        "the rule allows no revision: what is published stays verified",
        prod(OK, said("prod", PASSED), has=published("v1"), world={"revisions": ""}),
        "Ready",
        0,
        0,
        ["NoRevision"],
    ),
]


@pytest.mark.parametrize(
    ("sentence", "world", "state", "release", "publish", "reasons"),
    ROWS,
    ids=map(itemgetter(0), ROWS),
)
def test_variant(sentence, world, state, release, publish, reasons):
    decision = evaluate(world)
    p = decision.variants["p"]
    assert (p.state.value, p.release, p.publish) == (state, bool(release), bool(publish))
    if reasons is not None:
        assert reasons_of(decision, "p") == reasons


def test_a_draft_that_is_written_for_other_inputs_is_not_published():
    world = prod(OK)
    stale = replace(world.variants[1], draft=draft("v1", current=False))
    p = evaluate(replace(world, variants=(READY_DEV, stale))).variants["p"]
    assert (p.state, p.publish) == (State.DRAFTED, False)


def test_a_spent_decision_lifts_nothing_for_new_inputs():
    rule = stage("prod", after("dev"))
    lift = decided(PUBLISH, Override.AFTER, **V1)
    world = prod(lift, rule=rule, has=published("v1", 5, "old"))
    p = evaluate(world).variants["p"]
    assert (p.state, [hold.reason for hold in p.holds]) == (State.DRAFTED, ["AfterPending"])


def test_a_decision_without_a_revision_says_that_it_covers_nothing():
    decision = evaluate(prod(OK, decided(PUBLISH, stage="prod", name="d1"), rule=BY_HAND))
    assert decision.variants["p"].release is False
    hold = decision.holds[0]
    assert (hold.reason, "d1 of ann names no revision" in hold.sentence) == ("DecisionWaits", True)


def test_a_decision_for_what_is_not_the_candidate_says_that_it_waits():
    decision = evaluate(
        prod(OK, decided(PUBLISH, stage="prod", revision="v2"), world={"revisions": "v1 v2"})
    )
    assert "DecisionWaits" in reasons_of(decision, "prod")


def test_a_variant_in_no_stage_is_held_and_blocks_nobody():
    world = prod(OK)
    lost = variant("lost", "moon", draft=draft("v1"))
    nowhere = variant("nowhere", "")
    decision = evaluate(replace(world, variants=(*world.variants, lost, nowhere)))
    for name in ("lost", "nowhere"):
        assert decision.variants[name].state is State.HELD
        assert reasons_of(decision, name) == ["NotInStage"]
    assert decision.variants["p"].publish
    assert [hold.reason for hold in decision.holds] == ["NotInStage"]


def hand_written(*records, automatic=False, **fields):
    rule = stage("", verification=(), automatic=automatic)
    return facts((rule,), [variant("solo", "", draft=draft("v1"), **fields)], *records)


def test_a_variant_written_by_hand_is_its_own_stage():
    off = evaluate(hand_written()).variants["solo"]
    assert (off.state, off.publish) == (State.DRAFTED, False)
    assert evaluate(hand_written(automatic=True)).variants["solo"].publish
    by_hand = decided(PUBLISH, variants=("solo",), revision="v1")
    assert evaluate(hand_written(by_hand)).variants["solo"].publish
    asleep = evaluate(hand_written(by_hand, decided(SUSPEND, variants=("solo",))))
    assert asleep.variants["solo"].state is State.SUSPENDED


def test_history_is_enough_when_dev_has_moved_on():
    world = facts(
        (DEV, PROD),
        (variant("d", "dev", published("v2", 6)), variant("p", "prod", draft=draft("v1"))),
        revisions="v1 v2",
        history={("dev", "v1"): passed(1)},
    )
    decision = evaluate(world)
    assert decision.variants["p"].publish
    assert decision.history["dev", "v1"] == passed(1, 6)
