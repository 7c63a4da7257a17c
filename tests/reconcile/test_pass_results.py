"""When a deleted policy has nothing left downstream."""

from datetime import UTC, datetime

import pytest
from reconcile.builders import repository_state, resolved

from fanout.errors import Unavailable
from fanout.plan.actions import ActionKind, PlanAction
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.records.policy_records import PolicyRecords
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.reconcile.removal.orphaned_variants import OrphanLocations
from fanout.values import replace

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SILENT = replace(repository_state(), failure=Unavailable("no answer"))


def result(*, deleted: bool = True, **fields) -> PolicyResult:
    policy = resolved()
    if deleted:
        declaration = policy.upstream_policy
        assert declaration is not None
        meta = declaration.metadata.model_copy(update={"deletion_timestamp": NOW})
        declaration = declaration.model_copy(update={"metadata": meta})
        policy = replace(policy, upstream_policy=declaration)
    records = PolicyRecords(head="", records=())
    return PolicyResult(resolved_policy=policy, policy_state=records, **fields)


def plan(*actions: PlanAction) -> PolicyPlan:
    status = RecordedStatus()
    return PolicyPlan(
        namespace="platform",
        name="monitoring",
        steps=(),
        actions=actions,
        recorded=status,
        planned=status,
    )


RECORD = PlanAction(
    kind=ActionKind.RECORD, namespace="platform", policy="monitoring", stage="", variant=""
)
GONE = OrphanLocations("a", "dev", None, ())
RESULTS = [
    ("nothing is left", result(), plan(), True),
    ("nobody deleted it", result(deleted=False), plan(), False),
    ("a variant is left", result(orphans=(GONE,)), plan(), False),
    ("something is yet to be recorded", result(), plan(RECORD), False),
    ("an error stops it", result(error=Unavailable("no records")), plan(), False),
    ("a repository does not respond", result(repository_states=(SILENT,)), plan(), False),
    ("its repositories are read", result(repository_states=(repository_state(),)), plan(), True),
]


@pytest.mark.parametrize(
    ("item", "planned", "is_complete"),
    [row[1:] for row in RESULTS],
    ids=[row[0] for row in RESULTS],
)
def test_a_deletion_is_complete_when(item, planned, is_complete):
    pass_plan = PassPlan(now=NOW, policies=(item,), plans=(planned,))
    assert bool(pass_plan.completed_deletions) == is_complete
