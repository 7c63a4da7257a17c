"""Why not the newer revision yet, and what became of the one that was to come?"""

from datetime import timedelta

import pytest
from gates.rolling import rolling
from gates.worlds import (
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
)

from fanout.api.gate_vocabulary import Action
from fanout.gates import gate_wording
from fanout.gates.gate_evaluator import evaluate_gates

DEV = stage("dev")
D_V2 = variant("d", "dev", published("v2", 4))
GOOD = (evidence_of("prod", PASSED, "v1"), evidence_of("dev", PASSED, "v2", when=5))
WAS = {("dev", "v1"): passed(-200, 4)}
SOAKS = {**WAS, ("dev", "v2"): passed(5)}
BACK = decided(Action.ROLLBACK, stage="prod", revision="v1", name="back")


def two(*records, soak=60.0, rule=None, history=SOAKS, p=None, revisions="v1 v2", **fields):
    """Dev has v2; prod, which waits for its soak, has v1 and is ready."""
    prod = stage("prod", after("dev", soak=soak), **(rule or {}))
    p = p or variant("p", "prod", published("v1"))
    values = {"history": history, "revisions": revisions, **fields}
    return facts((DEV, prod), (D_V2, p), *GOOD, *records, **values)


HOUR = timedelta(hours=1)
SIGNING = {"requires": (SIGNED,)}
DRAFTED = variant("p", "prod", published("v1", -5), draft=draft("v1", "new"))
NEW = frozenset({"tree-v1new"})
FLIES = variant("p", "prod", published("v1", 5))
ROWS = [
    ("it soaks in the stage before", two(),
     [("SoakRunning", "v2 soaks in stage dev for 1h",
       gate_wording.TIME_ALONE, at(65))]),
    ("its clock is not on record yet", two(history=WAS),
     [("SoakRunning", "v2 soaks in stage dev for 1h",
       gate_wording.TIME_ALONE, at(65))]),
    ("the policy pins the stage", two(rule={"pin": "v1"}),
     [("Pinned", "v2 waits: stage prod is pinned to v1 by the policy",
       gate_wording.AUTHOR, None)]),
    ("a person took the stage back", two(BACK),
     [("Pinned", "v2 waits: stage prod is rolled back to v1 by ann (back)",
       gate_wording.MAY_WITHDRAW, None)]),
    ("people have approved the one in hand",
     two(approved("ann", trees=NEW), soak=0, rule=SIGNING, p=DRAFTED),
     [("RevisionQueued", "v2 is queued: drafts of v1 have approvals and can still pass",
       "a reporter or approver of v1 (fanout report, approve or revoke)", None)]),
    ("policies in order wait for what is in flight",
     two(soak=0, p=FLIES, serialize=True, rule={"rollout": rolling(progress_deadline=30)}),
     [("Serialized", "v2 is queued (inFlight: Serialize): 1 variant in flight at v1 in stage prod",
       gate_wording.REPORTER, at(35))]),
    ("nothing is newer", two(revisions="v1"), []),
]  # fmt: skip


@pytest.mark.parametrize(("_", "it", "wanted"), ROWS, ids=[row[0] for row in ROWS])
def test_the_newest_revision_in_the_queue_says_what_it_waits_for(_, it, wanted):
    decision = evaluate_gates(it)
    view = decision.stages["prod"]
    assert view.candidate == "v1"
    holds = [hold for other in view.others for hold in other.holds]
    assert {other.revision for other in view.others} <= {"v2"}
    assert [(str(it.reason), it.until) for it in holds] == [(row[0], row[3]) for row in wanted]
    assert [(it.message, it.who) for it in holds] == [row[1:3] for row in wanted]
    assert view.next == next((row[3] for row in wanted), None)


def test_a_policy_in_order_waits_for_the_soak_of_the_stages_after_it():
    d = variant("d", "dev", published("v1"))
    p = variant("p", "prod", draft=draft("v1"))
    stages = (DEV, stage("prod", after("dev", soak=60)))
    history = {("dev", "v1"): passed(5)}
    beside = {"history": history, "revisions": "v1 v2", "serialize": True}
    view = evaluate_gates(facts(stages, (d, p), evidence_of("dev", PASSED, "v1"), **beside)).stages[
        "dev"
    ]
    [hold] = view.others[0].holds
    assert hold.message == "v2 is queued (inFlight: Serialize): stage prod waits for the soak of v1"
    assert (hold.reason, hold.until) == ("Serialized", at(65))


def test_a_revision_whose_soak_was_cut_short_is_reported_until_the_next_is_taken():
    d = variant("d", "dev", published("v3", 9))
    history = {("dev", "v2"): passed(5, 9)}
    good = evidence_of("dev", PASSED, "v3", when=9)
    beside = {"history": history, "revisions": "v1 v2 v3"}
    stages = (DEV, stage("prod", after("dev", soak=60)))
    old = variant("p", "prod", published("v1"))
    it = facts(stages, (d, old), GOOD[0], good, **beside)
    view = evaluate_gates(it).stages["prod"]
    assert (view.candidate, view.queued) == ("v3", ())
    [dropped] = view.others
    assert (dropped.revision, dropped.newer) == ("v2", False)
    assert dropped.holds[0].reason == "SoakCutShort"
    assert dropped.holds[0].message == (
        "soak of v2 in stage dev ended after 4m of 1h; v2 can no longer pass"
    )
    taken = variant("p", "prod", published("v3", 9))
    assert evaluate_gates(facts(stages, (d, taken), good, **beside)).stages["prod"].others == ()
