"""Memo of policies that a pass has evaluated, which says who may get a first record."""

from pathlib import Path

import pytest
from fleet import Fleet

from fanout.controller.cluster_operation import PolicyErrorMemo
from fanout.errors import FanoutError, InvalidInput, Unavailable
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.pass_results import PassPlan
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

KEY = RecordsKey("default", "monitoring")
NONE, SOME = PolicyRecords(head=""), PolicyRecords(head="4ead")
REWOUND = InvalidInput("the records were put back", reason="RecordsRewound")


@pytest.fixture
def pass_plan(tmp_path: Path) -> PassPlan:
    with Fleet.build(tmp_path).opened() as program:
        declared, now = program.read_declared(), program.settings.now()
        return program.reconciler.plan_pass(declared, now, PassMode())


def test_a_policy_is_open_for_records_from_its_first_pass_on(pass_plan: PassPlan):
    memo = PolicyErrorMemo()
    obstacle = memo.find_obstacle(KEY, NONE)
    assert obstacle is not None
    assert "monitoring" in str(obstacle)
    assert memo.update(pass_plan)
    assert memo.find_obstacle(KEY, NONE) is None
    assert not memo.update(pass_plan)


def test_records_that_a_failed_pass_kept_out_are_taken_in_after_the_next(pass_plan: PassPlan):
    memo = PolicyErrorMemo()
    memo.update(pass_plan)
    memo.fail(Unavailable("the records repository has no answer"))
    assert memo.find_obstacle(KEY, NONE) is not None
    assert memo.update(pass_plan), "somebody has to take in what waited meanwhile"
    assert memo.find_obstacle(KEY, NONE) is None


def failed(pass_plan: PassPlan, error: FanoutError) -> PassPlan:
    return replace(pass_plan, policies=[replace(it, error=error) for it in pass_plan.policies])


def test_no_record_follows_on_records_that_no_pass_has_compared(pass_plan: PassPlan):
    memo = PolicyErrorMemo()
    assert memo.find_obstacle(KEY, SOME) is not None
    assert memo.update(failed(pass_plan, Unavailable("no answer"))), "some have waited for it"
    assert memo.find_obstacle(KEY, SOME) is None, "records are taken in whatever hangs"
    deleted = RecordsKey("default", "deleted")
    assert memo.find_obstacle(deleted, SOME) is None


def test_no_record_follows_on_records_that_a_pass_found_put_back(pass_plan: PassPlan):
    memo = PolicyErrorMemo()
    memo.update(failed(pass_plan, REWOUND))
    assert memo.find_obstacle(KEY, SOME) is REWOUND
    assert not memo.update(failed(pass_plan, REWOUND))
    assert memo.update(failed(pass_plan, Unavailable("no answer"))), "they were restored"
    assert memo.find_obstacle(KEY, SOME) is None
