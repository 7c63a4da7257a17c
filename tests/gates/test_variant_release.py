"""What one variant may do now: its state, its release, its publication, and what is in its way."""

from operator import itemgetter

import pytest
from gates.worlds import (
    BY_HAND,
    DEV,
    FAILED,
    OK,
    PASSED,
    PENDING,
    PROD,
    READY_DEV,
    SIGNED_PROD,
    approved,
    draft,
    evidence_of,
    facts,
    grant,
    passed,
    prod,
    published,
    reasons_of,
    variant,
)

from fanout.api.gate_vocabulary import VariantState
from fanout.api.results import Hold
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

HELD = Hold("PathTaken", "somebody else's")
UNWRITTEN = replace(draft("v1"), publish_hold=Hold("NoDraft", "it is written by this pass"))

#   sentence, world, state, release, publish, reasons
ROWS = [
    ("dev passed: released and published at once", prod(OK), "Proposed", 1, 1, []),
    ("dev pending: the draft waits", prod(), "Drafted", 0, 0, ["AfterPending"]),
    ("dev failed", prod(evidence_of("dev", FAILED)), "Drafted", 0, 0, ["AfterFailed"]),
    ("no draft stands yet", prod(OK, open_draft=""), "Drafted", 0, 0, ["NoDraft"]),
    (
        "a draft that is out of date does not go",
        prod(OK, policy_fields={"revisions": "v0 v1"}, open_draft="v0"),
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
        prod(OK, policy_fields={"sweep": False}),
        "Drafted",
        0,
        0,
        ["SweepAwaited"],
    ),
    (
        "nor what it released before",
        prod(OK, policy_fields={"sweep": False}, grant=grant("v1")),
        "Proposed",
        0,
        0,
        ["SweepAwaited"],
    ),
    (
        "a draft that is written only when released goes in the next pass",
        prod(OK, open_draft=UNWRITTEN),
        "Proposed",
        1,
        0,
        ["NoDraft"],
    ),
    (
        "its release is on record, and it is not written yet",
        prod(OK, open_draft=UNWRITTEN, grant=grant("v1")),
        "Proposed",
        0,
        0,
        ["NoDraft"],
    ),
    (
        "it is not released: what it waits for is the gate",
        prod(open_draft=UNWRITTEN),
        "Drafted",
        0,
        0,
        ["AfterPending"],
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
        prod(evidence_of("dev", FAILED), grant=grant("v1")),
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
        prod(OK, evidence_of("prod", PENDING), has=published("v1"), open_draft=""),
        "Verifying",
        0,
        0,
        ["VerificationPending"],
    ),
    (
        "published and verified",
        prod(OK, evidence_of("prod", PASSED), has=published("v1"), open_draft=""),
        "Ready",
        0,
        0,
        [],
    ),
    (
        "published and failed",
        prod(OK, evidence_of("prod", FAILED), has=published("v1"), open_draft=""),
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
        "published with other inputs: it goes again through the gate",
        prod(OK, evidence_of("prod", PASSED), has=published("v1", 0, "old")),
        "Proposed",
        1,
        1,
        [],
    ),
    (
        "the draft of what is in force already is no draft",
        prod(OK, evidence_of("prod", PASSED), has=published("v1")),
        "Ready",
        0,
        0,
        [],
    ),
    (
        "automation never goes back",
        prod(OK, has=published("v2"), policy_fields={"revisions": "v1"}),
        "Drafted",
        0,
        0,
        ["WouldGoBack"],
    ),
    (
        "the rule allows no revision",
        prod(OK, policy_fields={"revisions": ""}),
        "Held",
        0,
        0,
        ["NoRevision"],
    ),
    (
        "the rule allows no revision: what is published stays verified",
        prod(OK, evidence_of("prod", PASSED), has=published("v1"), policy_fields={"revisions": ""}),
        "Ready",
        0,
        0,
        ["NoRevision"],
    ),
]


@pytest.mark.parametrize(
    ("sentence", "policy_fields", "state", "release", "publish", "reasons"),
    ROWS,
    ids=map(itemgetter(0), ROWS),
)
def test_variant(sentence, policy_fields, state, release, publish, reasons):
    decision = evaluate_gates(policy_fields)
    p = decision.variants["p"]
    assert (p.state, p.release, p.publish) == (state, bool(release), bool(publish))
    if reasons is not None:
        assert reasons_of(decision, "p") == reasons


def test_a_draft_that_is_written_for_other_inputs_is_not_published():
    policy_facts = prod(OK)
    stale = replace(policy_facts.variants[1], draft=draft("v1", current=False))
    p = evaluate_gates(replace(policy_facts, variants=(READY_DEV, stale))).variants["p"]
    assert (p.state, p.publish) == (VariantState.DRAFTED, False)


def test_a_variant_in_no_stage_is_held_and_blocks_nobody():
    policy_facts = prod(OK)
    lost = variant("lost", "moon", draft=draft("v1"))
    nowhere = variant("nowhere", "")
    decision = evaluate_gates(
        replace(policy_facts, variants=(*policy_facts.variants, lost, nowhere))
    )
    for name in ("lost", "nowhere"):
        assert decision.variants[name].state is VariantState.HELD
        assert reasons_of(decision, name) == ["NotInStage"]
    assert decision.variants["p"].publish
    assert [hold.reason for hold in decision.holds] == ["NotInStage"]


def test_history_is_enough_when_dev_has_moved_on():
    policy_facts = facts(
        (DEV, PROD),
        (variant("d", "dev", published("v2", 6)), variant("p", "prod", draft=draft("v1"))),
        revisions="v1 v2",
        history={("dev", "v1"): passed(1)},
    )
    decision = evaluate_gates(policy_facts)
    assert decision.variants["p"].publish
    assert decision.history["dev", "v1"] == passed(1, 6)
