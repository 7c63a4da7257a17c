"""Memo of policies that a pass has evaluated, which says who may get a first record."""

from pathlib import Path

import pytest
from fleet import Fleet

from fanout.cli.watched_cluster import PolicyErrorMemo
from fanout.errors import Unavailable
from fanout.plan.records.policy_records import RecordsKey
from fanout.reconcile.pass_results import PassPlan
from fanout.reconcile.pass_scope import PassMode

KEY = RecordsKey("default", "monitoring")


@pytest.fixture
def pass_plan(tmp_path: Path) -> PassPlan:
    with Fleet.build(tmp_path).opened() as program:
        declared, now = program.read_declared(), program.settings.now()
        return program.reconciler.plan_pass(declared, now, PassMode())


def test_a_policy_is_open_for_records_from_its_first_pass_on(pass_plan: PassPlan):
    memo = PolicyErrorMemo()
    obstacle = memo.find_obstacle(KEY)
    assert obstacle is not None
    assert "monitoring" in str(obstacle)
    assert memo.update(pass_plan)
    assert memo.find_obstacle(KEY) is None
    assert not memo.update(pass_plan)


def test_records_that_a_failed_pass_kept_out_are_taken_in_after_the_next(pass_plan: PassPlan):
    memo = PolicyErrorMemo()
    memo.update(pass_plan)
    memo.fail(Unavailable("the records repository has no answer"))
    assert memo.find_obstacle(KEY) is not None
    assert memo.update(pass_plan), "somebody has to take in what waited meanwhile"
    assert memo.find_obstacle(KEY) is None
