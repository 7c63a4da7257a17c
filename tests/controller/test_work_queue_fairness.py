"""Turns of policies that write thousands of drafts, by what passes did."""

from controller.test_run_loop import report

from fanout.controller.work_queue import RoundFairness, Trigger, TriggerKey
from fanout.errors import Conflict, Denied
from fanout.plan.actions import ActionKind, ActionResult, PlanAction, undone_result
from fanout.plan.changes.next_drafts import DraftLimit
from fanout.values import replace

POLL = TriggerKey(Trigger.POLL)
RECORDS = TriggerKey(Trigger.RECORDS)
AGAIN_A, AGAIN_B = (TriggerKey(Trigger.FOLLOW_UP, "platform", it) for it in "ab")
CHANGED_A, CHANGED_B = (TriggerKey(Trigger.DECLARED, "platform", it) for it in "ab")


def wrote(fairness: RoundFairness, number: int, repository: str = "edge", error=None) -> None:
    """Let a pass over policy a write drafts, or fail."""
    action = PlanAction(
        kind=ActionKind.WRITE_DRAFT, namespace="platform", policy="a", repository=repository
    )
    outcome = ActionResult(action, is_done=True) if error is None else undone_result(action, error)
    fairness.update(replace(report(None), outcomes=(outcome,) * number), {AGAIN_A.subject})


def test_follow_ups_let_others_pass_for_one_round():
    fairness = RoundFairness(None)
    assert fairness.choose_keys([AGAIN_A, CHANGED_B]) == [CHANGED_B]
    assert fairness.choose_keys([AGAIN_A, CHANGED_B]) == [AGAIN_A, CHANGED_B]


def test_policies_that_had_a_round_leave_their_follow_ups_to_a_later_round():
    fairness = RoundFairness(None)
    assert fairness.choose_keys([AGAIN_A, CHANGED_B]) == [CHANGED_B]
    assert fairness.choose_keys([AGAIN_A, AGAIN_B]) == [AGAIN_A]
    assert fairness.choose_keys([AGAIN_A, AGAIN_B]) == [AGAIN_A, AGAIN_B]


def test_a_key_for_all_policies_ends_the_turns():
    fairness = RoundFairness(None)
    assert fairness.choose_keys([AGAIN_A, CHANGED_B]) == [CHANGED_B]
    assert fairness.choose_keys([AGAIN_A, AGAIN_B, POLL]) == [AGAIN_A, AGAIN_B, POLL]
    assert fairness.choose_keys([AGAIN_A, AGAIN_B]) == [AGAIN_A, AGAIN_B]


def test_a_change_takes_the_follow_up_of_its_policy_along():
    assert RoundFairness(None).choose_keys([AGAIN_A, CHANGED_A]) == [AGAIN_A, CHANGED_A]


def test_a_key_for_all_policies_is_served_with_all_keys():
    assert RoundFairness(None).choose_keys([AGAIN_A, POLL]) == [AGAIN_A, POLL]


def test_records_pass():
    assert RoundFairness(None).choose_keys([AGAIN_A, RECORDS]) == [RECORDS]


def test_a_change_of_a_policy_that_wrote_its_share_lets_others_pass_too():
    fairness = RoundFairness(2)
    wrote(fairness, 2)
    assert fairness.choose_keys([AGAIN_A, CHANGED_A, CHANGED_B]) == [CHANGED_B]
    assert fairness.choose_keys([AGAIN_A, CHANGED_A]) == [AGAIN_A, CHANGED_A]


def test_a_policy_that_is_gone_lets_nobody_pass():
    fairness = RoundFairness(2)
    wrote(fairness, 2)
    fairness.update(report(None), set())
    assert fairness.choose_keys([CHANGED_A, CHANGED_B]) == [CHANGED_A, CHANGED_B]


def test_alone_it_need_not_wait():
    fairness = RoundFairness(2)
    wrote(fairness, 2)
    assert fairness.choose_keys([AGAIN_A, CHANGED_A]) == [AGAIN_A, CHANGED_A]


def test_a_policy_that_wrote_less_has_finished():
    fairness = RoundFairness(2)
    wrote(fairness, 2)
    wrote(fairness, 1)
    assert fairness.choose_keys([AGAIN_B, CHANGED_A]) == [CHANGED_A]


def test_drafts_of_a_repository_whose_push_failed_come_last_until_one_succeeds():
    fairness = RoundFairness(2)
    wrote(fairness, 1, error=Denied("no right"))
    assert fairness.limit == DraftLimit(2, frozenset([("platform", "edge")]))
    wrote(fairness, 1, "core")
    assert fairness.limit == DraftLimit(2, frozenset([("platform", "edge")]))
    wrote(fairness, 1)
    assert fairness.limit == DraftLimit(2)


def test_a_lost_race_is_no_failure():
    fairness = RoundFairness(2)
    wrote(fairness, 1, error=Conflict("it moved", reason="RemoteMoved"))
    assert fairness.limit == DraftLimit(2)


def test_without_a_share_there_is_no_limit():
    fairness = RoundFairness(None)
    wrote(fairness, 5)
    assert fairness.limit is None
