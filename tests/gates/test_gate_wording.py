"""Sentences and actors of the gates that several places say, as people read them."""

import re
from datetime import UTC, datetime
from operator import itemgetter

import pytest

from fanout.api.admission_policies import VERBS_BY_ACTION
from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates import gate_wording as wording
from fanout.gates.gate_rules import ApprovalRule

SIGNED = ApprovalRule("signed-off", 2, frozenset({"ann", "bob"}), ("sre",))
LONE = ApprovalRule("signed-off", 2, frozenset({"ann"}))
NOBODY = ApprovalRule("signed-off", 1, frozenset(), ("sre",))
NAMES = ["a", "b", "c", "d", "e"]

FUTURE = Hold(Reason.FROM_THE_FUTURE, "S", "ci", until=datetime(2026, 3, 2, tzinfo=UTC))
SOAKING = Hold(Reason.SOAK_RUNNING, "S", wording.TIME_ALONE, until=FUTURE.until)
UNANSWERED = Hold(Reason.VERIFICATION_PENDING, "S", "ci", until=FUTURE.until)

SENTENCES = [
    (wording.describe_hold(Hold(Reason.HALTED, "Halt")), "Halt"),
    (wording.describe_hold(UNANSWERED), "S"),
    (wording.describe_hold(FUTURE), "S; it counts from 2026-03-02T00:00:00Z"),
    (wording.describe_hold(SOAKING), "S; opens automatically at 2026-03-02T00:00:00Z"),
    (wording.label_stage("prod"), "stage prod"),
    (wording.label_stage(""), "the variant"),
    (wording.format_names(NAMES), "a, b, c and 2 more"),
    (wording.describe_spec_suspension("stage prod"), "stage prod is suspended by its spec"),
    (wording.describe_automation_off("stage prod"), "automatic promotion is off for stage prod"),
    (wording.describe_automation_off("stage prod", ["base"]),
     "automatic promotion is off for stage prod in PromotionPolicy base"),
    (wording.describe_failed_check("e2e", "ci"), "check e2e failed: reported by ci"),
    (wording.describe_failed_check("e2e", "ci", "U"), "check e2e failed: reported by ci (U)"),
    (wording.describe_missing_approvals(SIGNED, []), "signed-off: 0 of 2 approvals"),
    (wording.describe_missing_approvals(SIGNED, ["ann"]), "signed-off: 1 of 2 approvals (by ann)"),
    (wording.describe_missing_approvals(LONE, []),
     "signed-off: 0 of 2 approvals; only 1 approver declared"),
    (wording.describe_requested_changes("ok", [("bob", "U1"), ("cid", "U2")]),
     "ok: bob requested changes (U1), cid requested changes (U2)"),
    (wording.describe_requested_changes("ok", [(it, "U") for it in NAMES]),
     "ok: a requested changes (U), b requested changes (U), c requested changes (U) and 2 more"),
]  # fmt: skip

ACTORS = [
    (wording.format_approvers(SIGNED), "an approver of group sre"),
    (wording.format_approvers(LONE), "ann"),
    (wording.format_approvers(NOBODY), "an administrator (PromotionPolicy.approvers: sre)"),
    (wording.format_reviewers(["bob"]), "bob (approve, or dismiss the review)"),
    (wording.format_reporter("e2e", "prod"), "a reporter of check e2e of stage prod"),
    (wording.format_clock_owner("ci", wording.MAY_WITHDRAW),
     "ci (correct the clock) or whoever may withdraw records (fanout withdraw)"),
    (wording.format_automation_actor(),
     "an administrator (PromotionPolicy.autoPromotion) or any promoter (fanout promote)"),
    (wording.format_budget_actor(wording.TIME_ALONE),
     f"nobody (opens automatically) or {wording.MAY_OVERRIDE} (fanout promote --override budget)"),
    (wording.format_stage_actor(["dev"]), "a promoter or reporter of stage dev"),
    (wording.format_removal_actor("edge", "--all-gone"),
     "whoever may remove variants: run `fanout remove edge --all-gone --reason WHY`"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("worded", "expected"), [*SENTENCES, *ACTORS], ids=map(itemgetter(1), [*SENTENCES, *ACTORS])
)
def test_wording(worded, expected):
    assert worded == expected


# Actions that the commands of actors record, and who may: a phrase for each set of verbs.
ACTIONS = {
    "promote": Action.PUBLISH,
    "resume": Action.RESUME,
    "retry": Action.RETRY,
    "rollback": Action.ROLLBACK,
    "withdraw": Action.WITHDRAW,
    "remove": Action.CONFIRM_REMOVAL,
}
PERSONS = {
    frozenset({"promote"}): "any promoter",
    frozenset({"suspend"}): "any promoter",
    frozenset({"promote", "override"}): "whoever may override gates",
    frozenset({"report", "promote", "suspend"}): "whoever may withdraw records",
    frozenset({"remove"}): "whoever may remove variants",
}
NAMED = re.compile(
    r"(any promoter|whoever may [a-z ]+?)(?: of stage \w+)?(?: \(|: run `)"
    r"fanout (\w+)((?: [^\s)`,]+)*)"
)


def test_a_command_is_for_those_whom_the_admission_policies_let_run_it():
    constants = [it for it in vars(wording).values() if isinstance(it, str)]
    withdrawal = "whoever may withdraw records: run `fanout withdraw web d1 --reason WHY`"
    texts = {*constants, *(text for text, _ in ACTORS), withdrawal}
    named = [match for text in texts for match in NAMED.findall(text)]
    assert {verb for _, verb, _ in named} == set(ACTIONS)
    for person, verb, arguments in named:
        override = {"override"} if "--override" in arguments else set()
        assert PERSONS[frozenset({*VERBS_BY_ACTION[ACTIONS[verb]], *override})] == person, verb
