"""Memo of policies that a pass has evaluated, which says who may get a first record."""

from pathlib import Path
from typing import NamedTuple

import pytest
from fleet import Fleet

from fanout.controller.cluster_operation import PolicyErrorMemo
from fanout.declared.declared_objects import (
    DeclarationFailure,
    DeclaredObjects,
    key_of,
)
from fanout.errors import FanoutError, InvalidInput, Unavailable
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.pass_results import PassPlan
from fanout.reconcile.pass_scope import PassMode
from fanout.values import replace

KEY = RecordsKey("default", "monitoring")
NONE, SOME = PolicyRecords(head=""), PolicyRecords(head="4ead")
REWOUND = InvalidInput("the records were put back", reason="RecordsRewound")


class Round(NamedTuple):
    """Plan of a pass, and what was declared for it."""

    pass_plan: PassPlan
    declared: DeclaredObjects

    def failed(self, error: FanoutError) -> "Round":
        policies = tuple(replace(it, error=error) for it in self.pass_plan.policies)
        return self._replace(pass_plan=replace(self.pass_plan, policies=policies))

    def without_policies(self) -> "Round":
        return Round(
            replace(self.pass_plan, policies=()), replace(self.declared, policies=(), variants=())
        )


@pytest.fixture
def evaluated(tmp_path: Path) -> Round:
    with Fleet.build(tmp_path).opened() as program:
        declared, now = program.read_declared(), program.settings.now()
        return Round(program.reconciler.plan_pass(declared, now, PassMode()), declared)


def test_a_policy_is_open_for_records_from_its_first_pass_on(evaluated: Round):
    memo = PolicyErrorMemo()
    obstacle = memo.find_obstacle(KEY, NONE)
    assert obstacle is not None
    assert "monitoring" in str(obstacle)
    assert memo.update(*evaluated)
    assert memo.find_obstacle(KEY, NONE) is None
    assert not memo.update(*evaluated)


def test_records_that_a_failed_pass_kept_out_are_taken_in_after_the_next(evaluated: Round):
    memo = PolicyErrorMemo()
    memo.update(*evaluated)
    memo.fail(Unavailable("the records repository has no answer"))
    assert memo.find_obstacle(KEY, NONE) is not None
    assert memo.update(*evaluated), "somebody has to take in what waited meanwhile"
    assert memo.find_obstacle(KEY, NONE) is None


def test_no_record_follows_on_records_that_no_pass_has_compared(evaluated: Round):
    memo = PolicyErrorMemo()
    assert memo.find_obstacle(KEY, SOME) is not None
    assert memo.update(*evaluated.failed(Unavailable("no answer"))), "some have waited for it"
    assert memo.find_obstacle(KEY, SOME) is None, "records are taken in whatever hangs"
    deleted = RecordsKey("default", "deleted")
    assert memo.find_obstacle(deleted, SOME) is None


def test_no_record_follows_on_records_that_a_pass_found_put_back(evaluated: Round):
    memo = PolicyErrorMemo()
    memo.update(*evaluated.failed(REWOUND))
    assert memo.find_obstacle(KEY, SOME) is REWOUND
    assert not memo.update(*evaluated.failed(REWOUND))
    assert memo.update(*evaluated.failed(Unavailable("no answer"))), "they were restored"
    assert memo.find_obstacle(KEY, SOME) is None


def test_a_policy_that_is_gone_is_forgotten(evaluated: Round):
    memo = PolicyErrorMemo()
    memo.update(*evaluated)
    gone = evaluated.without_policies()
    memo.update(*gone)
    obstacle = memo.find_obstacle(KEY, NONE)
    assert obstacle is not None
    assert obstacle.reason == "NotFound"
    assert memo.update(*evaluated), "its records may have waited"


def test_a_policy_that_another_pass_left_out_is_kept(evaluated: Round):
    memo = PolicyErrorMemo()
    memo.update(*evaluated)
    memo.update(replace(evaluated.pass_plan, policies=()), evaluated.declared)
    assert memo.find_obstacle(KEY, NONE) is None


@pytest.mark.parametrize("is_unread", [False, True], ids=["has an error", "may be in a file"])
def test_a_policy_that_may_be_declared_is_kept(evaluated: Round, is_unread: bool):
    memo = PolicyErrorMemo()
    memo.update(*evaluated)
    plan, declared = evaluated.without_policies()
    left_out = tuple(key_of(it) for it in evaluated.declared.policies)
    unread = (DeclarationFailure("policies/a.yaml"),)
    more = {"unread": unread} if is_unread else {"left_out": left_out}
    memo.update(plan, replace(declared, **more))
    assert memo.find_obstacle(KEY, NONE) is None


def test_records_that_were_found_put_back_stay_so_when_their_policy_goes(evaluated: Round):
    memo = PolicyErrorMemo()
    memo.update(*evaluated.failed(REWOUND))
    memo.update(*evaluated.without_policies())
    assert memo.find_obstacle(KEY, SOME) is REWOUND
