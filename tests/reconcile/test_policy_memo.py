"""The memo of policies that had nothing to do: what may change and what ends it."""

from datetime import timedelta

import pytest
from gates.worlds import facts
from reconcile.builders import EDGE_URL, NOW, resolved, tags

from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Unavailable
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.gates.gate_facts import DependencyFacts
from fanout.plan.policy_plan import PolicyPlan
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.memo.policy_memo import PassInputs, PolicyMemo
from fanout.reconcile.ownership.path_ownership import PathOwnershipIndex
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.values import replace

KEY = ("platform", "monitoring", True)
OTHER = RecordsKey("platform", "logging")
DECLARED = DeclaredObjects()
STATE = PolicyRecords(head="a" * 40)
NOTHING = PolicyPlan(
    namespace="platform",
    name="monitoring",
    steps=(),
    actions=(),
    recorded=RecordedStatus(),
    planned=RecordedStatus(),
)


def pass_inputs(**fields):
    values = {
        "declared": DECLARED,
        "publish": True,
        "listings": {EDGE_URL: tags("v1")},
        "policy_states": {OTHER: PolicyRecords(head="b" * 40, status={"variant/x": {"path": "x"}})},
    }
    return PassInputs(**{**values, **fields})


def policy_inputs(**fields):
    policy = resolved("ams")
    ownership = PathOwnershipIndex.build([], [], {}, ()).for_policy(policy, {})
    values = {
        "resolved_policy": policy,
        "policy_state": STATE,
        "path_ownership": ownership,
        "listings": {},
        "promotions": (),
        "is_sweep": True,
    }
    return PolicyInputs(**{**values, **fields})


def result(next_check=None, **fields):
    policy_facts = replace(facts([], []), now=NOW)
    decision = replace(evaluate_gates(policy_facts), next=next_check)
    return PolicyResult(
        resolved_policy=resolved("ams"),
        policy_state=STATE,
        facts=policy_facts,
        decision=decision,
        **fields,
    )


def memo(stored, plan=NOTHING):
    made = PolicyMemo()
    made.begin_pass([KEY])
    made.store(policy_inputs(), pass_inputs(), stored, plan)
    return made


def find(made, inputs=None, seen=None, later=timedelta()):
    made.begin_pass([KEY])
    return made.find_result(inputs or policy_inputs(), seen or pass_inputs(), NOW + later)


EQUAL = [
    ("nothing changed", {}),
    ("an equal listing", {"listings": {EDGE_URL: tags("v1")}}),
    (
        "another record of another policy",
        {
            "policy_states": {
                OTHER: PolicyRecords(head="c" * 40, status={"variant/x": {"path": "x"}})
            }
        },
    ),
]
CHANGED = [
    ("other files, though equal", {"declared": DeclaredObjects()}),
    ("drafts alone", {"publish": False}),
    ("another tag", {"listings": {EDGE_URL: tags("v1", "v2")}}),
    ("a tag that moved", {"listings": {EDGE_URL: tags(v1="e" * 40)}}),
    ("one more repository", {"listings": {EDGE_URL: tags("v1"), "other": tags()}}),
    ("a repository that does not answer", {"listings": {EDGE_URL: Unavailable("no answer")}}),
    ("a policy less", {"policy_states": {}}),
    ("another policy at a path", {"policy_states": {OTHER: PolicyRecords(head="c" * 40)}}),
]


@pytest.mark.parametrize("seen", [row[1] for row in EQUAL], ids=[row[0] for row in EQUAL])
def test_a_result_is_reused_where_the_pass_saw_the_same(seen):
    stored = result()
    assert find(memo(stored), seen=pass_inputs(**seen)) is stored


@pytest.mark.parametrize("seen", [row[1] for row in CHANGED], ids=[row[0] for row in CHANGED])
def test_a_result_is_not_reused_where_the_pass_saw_something_else(seen):
    assert find(memo(result()), seen=pass_inputs(**seen)) is None


OWN_INPUTS = [
    ("a record of its own", {"policy_state": PolicyRecords(head="d" * 40)}),
    ("no sweep", {"is_sweep": False}),
    ("a dependency", {"depends_on": (DependencyFacts("other", ready=True),)}),
]


@pytest.mark.parametrize("own", [row[1] for row in OWN_INPUTS], ids=[row[0] for row in OWN_INPUTS])
def test_a_result_is_not_reused_with_other_inputs_of_its_policy(own):
    assert find(memo(result()), policy_inputs(**own)) is None


HOUR = timedelta(hours=1)
CLOCKS = [
    ("before its next check", NOW + HOUR, HOUR / 2, True),
    ("at its next check", NOW + HOUR, HOUR, False),
    ("much later without one", None, 1000 * HOUR, True),
    ("after the clock was set back", None, -HOUR, False),
]


@pytest.mark.parametrize(
    ("next_check", "later", "reused"), [row[1:] for row in CLOCKS], ids=[row[0] for row in CLOCKS]
)
def test_a_result_holds_until_its_next_check(next_check, later, reused):
    assert (find(memo(result(next_check)), later=later) is not None) == reused


def test_a_result_with_work_or_a_failure_is_not_kept():
    status = replace(RecordedStatus(), revisions={"v1": "a" * 40})
    assert find(memo(result(), replace(NOTHING, planned=status))) is None
    assert find(memo(result(), None)) is None
    assert find(memo(result(error=Unavailable("no answer")))) is None


def test_a_policy_that_is_gone_is_forgotten():
    made = memo(result())
    made.begin_pass([])
    assert made.is_complete()
    assert find(made) is None
