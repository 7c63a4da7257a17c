"""The sentences of the gates, as people read them."""

import re
from datetime import UTC, datetime, timedelta
from operator import itemgetter

import pytest

from fanout.api.admission_policies import VERBS_BY_ACTION
from fanout.api.gate_vocabulary import Action, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates import gate_wording as wording
from fanout.gates.gate_rules import ApprovalRule

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
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
    # Suspensions and decisions.
    (wording.describe_suspension("stage prod", "ann", "freeze"),
     "stage prod is suspended by ann: freeze"),
    (wording.describe_suspension("the policy", "ann", ""), "the policy is suspended by ann"),
    (wording.describe_spec_suspension("stage prod"), "stage prod is suspended by its spec"),
    (wording.describe_decision_without_revision("d1", "ann"),
     "decision d1 by ann names no revision and has no effect"),
    (wording.describe_future_decision("d1", "ann"),
     "decision d1 by ann is dated in the future and does not count yet"),
    (wording.describe_waiting_decision("d1", "v2", "v1", is_allowed=True),
     "decision d1 to publish v2 waits: the candidate is v1"),
    (wording.describe_waiting_decision("d1", "v2", "v1", is_allowed=False),
     "decision d1 to publish v2 waits: spec.upstream does not allow v2"),
    (wording.describe_other_draft("d1", "ann", "v2"),
     "decision d1 by ann covers other drafts of v2, not this one"),
    (wording.describe_skip("v2", "ann", "rebuilt"), "skipped for v2 by ann: rebuilt"),
    (wording.describe_rollback("v1", "ann", "outage"), "rolled back to v1 by ann: outage"),
    (wording.describe_policy_pin("v2", "prod", "v1"),
     "v2 waits: stage prod is pinned to v1 by the policy"),
    (wording.describe_decided_pin("v2", "prod", "v1", "d1", "ann"),
     "v2 waits: stage prod is rolled back to v1 by ann (d1)"),
    # Upstream stages and soak.
    (wording.describe_unrecorded_soak("v2", "dev", HOUR),
     "v2 is ready in stage dev; its soak of 1h starts with the next sweep"),
    (wording.describe_running_soak("v2", "dev", HOUR), "v2 soaks in stage dev for 1h"),
    (wording.describe_unstarted_soak("v2", "dev", HOUR),
     "v2 is not ready in stage dev; its soak of 1h has not started"),
    (wording.describe_ended_soak("v2", "dev", HOUR, DAY, is_returning=True),
     "soak of v2 in stage dev ended after 1h of 24h; it restarts when the stage is ready again"),
    (wording.describe_ended_soak("v2", "dev", HOUR, DAY, is_returning=False),
     "soak of v2 in stage dev ended after 1h of 24h; v2 can no longer pass"),
    (wording.describe_upstream_failure("v2", "dev"), "v2 failed in stage dev"),
    (wording.describe_upstream_wait("v2", "dev"), "v2 has not passed stage dev yet"),
    (wording.describe_passed_over("v2", "dev"), "stage dev moved on before v2 passed"),
    (wording.describe_starvation("prod", ["v2", "v3"], HOUR),
     "stage prod starves: 2 revisions (v2, v3) left upstream stages before the soak of 1h"),
    (wording.describe_shared_object("ConfigMap/ca", "site1", "dev"),
     "ConfigMap/ca changed; site1 in stage dev is not ready with the new version"),
    # Candidates and their order.
    (wording.describe_approved_candidate("v2", "v1"),
     "v2 is queued: drafts of v1 have approvals and can still pass"),
    (wording.describe_serialized_revision("v2", "v1", 1, "prod"),
     "v2 is queued (inFlight: Serialize): 1 variant in flight at v1 in stage prod"),
    (wording.describe_serialized_soak("v2", "v1", ["prod"]),
     "v2 is queued (inFlight: Serialize): stage prod waits for the soak of v1"),
    (wording.describe_serialized_soak("v2", "v1", ["eu", "us"]),
     "v2 is queued (inFlight: Serialize): stage eu, stage us wait for the soak of v1"),
    (wording.describe_serialized_variant("site1", "v1"),
     "site1 goes first (inFlight: Serialize): it is not ready at v1 yet"),
    (wording.describe_downgrade("v1"),
     "its published revision is newer than v1; automation never downgrades"),
    (wording.describe_missing_draft("v2"), "its draft for v2 is missing or out of date"),
    # Automation, windows and expressions.
    (wording.describe_automation_off("stage prod"), "automatic promotion is off for stage prod"),
    (wording.describe_automation_off("stage prod", ["base"]),
     "automatic promotion is off for stage prod in PromotionPolicy base"),
    (wording.describe_conflicts(1), "1 undecided merge conflict in its draft"),
    (wording.describe_conflicts(2), "2 undecided merge conflicts in its draft"),
    (wording.describe_closed_window("publication is closed", opens=True), "publication is closed"),
    (wording.describe_closed_window("publication is closed", opens=False),
     "publication is closed; it does not open again"),
    (wording.describe_false_condition("a > 1"), "propagateWhen is false: a > 1"),
    (wording.describe_condition_error("a.b", "no such key"), "propagateWhen a.b: no such key"),
    (wording.describe_condition_value("stage.ready", 3),
     "propagateWhen stage.ready yields 3, expected true or false"),
    # Checks.
    (wording.describe_passed_check("e2e", "ci"), "check e2e passed: reported by ci"),
    (wording.describe_failed_check("e2e", "ci"), "check e2e failed: reported by ci"),
    (wording.describe_pending_check("e2e", "ci"), "check e2e is pending: reported by ci"),
    (wording.describe_failed_check("e2e", "ci", "U"), "check e2e failed: reported by ci (U)"),
    (wording.describe_contradiction("e2e", "ci", "ann", "U"),
     "check e2e is contradictory: passed by ci, failed by ann (U)"),
    (wording.describe_contradiction("e2e", "ci", "ann"),
     "check e2e is contradictory: passed by ci, failed by ann"),
    (wording.describe_unreported_check("e2e", "v2"), "check e2e is not reported for v2 yet"),
    (wording.describe_upcoming_report("e2e", "ci"),
     "check e2e: the report by ci is dated ahead and counts from then on"),
    (wording.describe_future_report("e2e", "ci"),
     "check e2e: the report by ci is dated in the future and does not count yet"),
    (wording.describe_ignored_evidence("S", "e1", "ci", wording.EVIDENCE_WITHOUT_SUBJECT),
     "S; evidence e1 by ci does not count: it names no revision and no commit"),
    (wording.describe_other_subject("v1", ""), "is about v1"),
    (wording.describe_other_subject("", "0123456789abcdef"),
     "is about commit 0123456789ab, where the package differs from the published one"),
    (wording.describe_early_evidence("v2", "published"), "was recorded before v2 was published"),
    (wording.describe_settling_check("e2e", HOUR),
     "check e2e starts 1h after publication (settle)"),
    (wording.describe_stale_answer("S", HOUR), "S; the answer is older than 1h (freshFor)"),
    (wording.describe_timeout("S", HOUR), "S; no answer within 1h (timeout)"),
    (wording.describe_unqueried_check("e2e"), "check e2e has not been queried yet"),
    (wording.describe_pending_reading("e2e", "503"), "check e2e: 503"),
    (wording.describe_other_reading("e2e", "v1", "v2"), "check e2e reports on v1, not on v2"),
    (wording.describe_other_reading("e2e", "", "v2"),
     "check e2e reports on no revision, not on v2"),
    (wording.describe_answer("e2e", Verdict.PASSED, ""), "check e2e passed"),
    (wording.describe_answer("e2e", Verdict.FAILED, "503"), "check e2e failed: 503"),
    (wording.describe_overridden_check("e2e", "ann"), "check e2e is overridden by ann"),
    (wording.describe_unrepeated_check("e2e", "v1"),
     "check e2e is not required again for a rollback to v1"),
    (wording.describe_min_ready(HOUR), "checks passed; they must stay so for 1h (minReady)"),
    (wording.describe_exceeded_deadline(HOUR),
     "not ready within 1h (progressDeadline); a later pass still counts"),
    # Approvals.
    (wording.describe_approval("signed-off", ["ann", "bob"]), "signed-off: approved by ann, bob"),
    (wording.describe_missing_approvals(SIGNED, []), "signed-off: 0 of 2 approvals"),
    (wording.describe_missing_approvals(SIGNED, ["ann"]), "signed-off: 1 of 2 approvals (by ann)"),
    (wording.describe_missing_approvals(LONE, []),
     "signed-off: 0 of 2 approvals; only 1 approver declared"),
    (wording.describe_requested_changes("ok", [("bob", "U1"), ("cid", "U2")]),
     "ok: bob requested changes (U1), cid requested changes (U2)"),
    (wording.describe_requested_changes("ok", [(it, "U") for it in NAMES]),
     "ok: a requested changes (U), b requested changes (U), c requested changes (U) and 2 more"),
    (wording.describe_own_approval(["ann"]),
     "approval by ann does not count: they changed the draft"),
    (wording.describe_unknown_authors(["ann"]),
     "approval by ann does not count: their commit address is not in PromotionPolicy.approvers"),
    (wording.describe_unauthorized_approval(["eve"], SIGNED),
     "approval by eve does not count: not an approver of group sre"),
    (wording.describe_other_approval(["ann"], "v2"), "approval by ann is for other drafts of v2"),
    # Stages and their rollout.
    (wording.describe_halt("prod", "v2", ["a"], 0),
     "stage prod is halted: 1 variant failed v2 (a), maxFailures: 0"),
    (wording.describe_limit(1, 1), "in-flight limit reached (1 of 1)"),
    (wording.describe_earlier_group(2, "site1", "v2"),
     "group 2 goes first: site1 is not ready at v2"),
    (wording.describe_offline("site1", released=False),
     "target site1 is offline; its variant does not count"),
    (wording.describe_offline("site1", released=True),
     "target site1 is offline; its variant keeps its state and counts"),
    (wording.describe_empty_stage("prod"), "no target is in stage prod; the stage cannot pass"),
    (wording.describe_nothing_counts("prod", "v2"),
     "no variant of stage prod counts for v2: all are suspended, offline or skipped"),
    (wording.describe_unknown_stage("t", "", ["dev", "prod"], is_control_flow=False),
     "target t is in no stage; choose one of: dev, prod"),
    (wording.describe_unknown_stage("t", "moon", ["dev"], is_control_flow=False),
     "target t is in stage moon, which the policy does not declare; choose one of: dev"),
    (wording.describe_unknown_stage("t", "join", ["dev"], is_control_flow=True),
     "target t is in stage join, which is a control-flow stage; choose one of: dev"),
    (wording.describe_group(1, "site1", "S"), "site1: S"),
    (wording.describe_group(5, "site1", "S"), "5 variants, site1 first: S"),
    (wording.describe_stuck("prod", "S"), "rollout is stuck; stage prod: S"),
    (wording.describe_stuck("prod", "stage prod is halted"),
     "rollout is stuck; stage prod is halted"),
    # Removal.
    (
        wording.describe_removal_of_all(2, is_deleted=False),
        "no target exists any more; 2 variants would be removed",
    ),
    (
        wording.describe_removal_of_all(1, is_deleted=True),
        "the policy was deleted; 1 variant would be removed",
    ),
    (wording.describe_removal_limit(5, 9, 3),
     "5 of 9 variants would be removed (removalLimit: 3)"),
    (wording.describe_removed_edits(["the package a", "the draft b"]),
     "removal would delete edits of the package a and the draft b"),
    (wording.describe_later_stages(["a"]), "variants of later stages are removed first: a"),
    # Forecasts.
    (wording.describe_impossible_stages(["eu", "us"], "v2"), "stage eu, stage us cannot pass v2"),
    (wording.describe_pinned_stage("prod", "v1"), "stage prod is pinned to v1"),
    (wording.describe_superseded("prod", "v2"),
     "stage prod takes v2, which is newer; automation never downgrades"),
    (wording.describe_uncounted_stage("prod"), "no variant counts in stage prod"),
    (wording.describe_rolled_back_variants(["a"], "v2", "S"), "a does not take v2: S"),
    (wording.describe_rolled_back_variants(["a", "b"], "v2", "S"), "a, b do not take v2: S"),
    (wording.assume_free_variants(1), "1 held variant freed immediately"),
    (wording.assume_decided_conflicts(["a"]),
     "merge conflicts of 1 variant are decided immediately (a)"),
    (wording.assume_required_checks(["signed-off"]),
     "required checks pass immediately: signed-off"),
    (wording.assume_mended_failures(2), "2 failed variants fixed or skipped immediately"),
    (wording.assume_observed_duration(HOUR, 3),
     "a variant is ready 1h after publication, as 3 variants before"),
    (wording.assume_passing_checks(["e2e"]),
     "checks pass immediately, as no duration is known: e2e"),
]  # fmt: skip

ACTORS = [
    (wording.format_approvers(SIGNED), "an approver of group sre"),
    (wording.format_approvers(LONE), "ann"),
    (wording.format_approvers(NOBODY), "an administrator (PromotionPolicy.approvers: sre)"),
    (wording.format_reviewers(["bob"]), "bob (approve, or dismiss the review)"),
    (wording.format_reporter("e2e", "prod"), "a reporter of check e2e of stage prod"),
    (wording.format_awaited_reporter("ci"),
     ("ci (fanout report, when it has a result) or whoever may withdraw records (fanout"
      " withdraw)")),
    (wording.format_repeated_reporter("ci"),
     "ci (fanout report, when it has run again) or any promoter (fanout retry)"),
    (wording.format_contradictor("ci"),
     ("ci (fanout report, when it has run again) or whoever may withdraw records"
      " (fanout withdraw)")),
    (wording.format_check_source("e2e", "http"), "the source of check e2e (http)"),
    (wording.format_decider("ann"), "ann (record the decision again, with --revision)"),
    (wording.format_withdrawer("ann", "d1"), "ann (fanout withdraw d1)"),
    (wording.format_clock_owner("ci", wording.MAY_WITHDRAW),
     "ci (correct the clock) or whoever may withdraw records (fanout withdraw)"),
    (wording.format_spec_owner(wording.AUTHOR), "the policy's author (spec.suspend)"),
    (wording.format_automation_actor(),
     "an administrator (PromotionPolicy.autoPromotion) or any promoter (fanout promote)"),
    (wording.format_queue_actor("v1"),
     "a reporter or approver of v1 (fanout report, approve or revoke)"),
    (wording.format_halt_actor("prod"),
     "any promoter of stage prod (fanout retry, skip or rollback), or a fixed revision"),
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
