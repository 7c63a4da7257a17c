"""The sentences of events, as people read them."""

from operator import itemgetter

import pytest

from fanout.api.reasons import EventReason as Reason
from fanout.api.reasons import NotificationEvent as Event
from fanout.present.notifications.notification_conditions import describe_transition
from fanout.present.policy_events import describe_actions

SENTENCES = [
    (describe_transition(Event.APPROVAL_AWAITED, "v2", "prod", ["ams", "ber"], "S"),
     "2 drafts of v2 wait for approvals in stage prod (ams and 1 more): S"),
    (describe_transition(Event.APPROVAL_AWAITED, "v2", "", ["ams"], ""),
     "1 draft of v2 waits for approvals (ams)"),
    (describe_transition(Event.MERGE_CONFLICT, "v2", "dev", ["ams"], "S"),
     "1 draft of v2 has undecided merge conflicts in stage dev (ams): S"),
    (describe_transition(Event.MERGE_CONFLICT, "v2", "dev", ["a", "b", "c"], "S"),
     "3 drafts of v2 have undecided merge conflicts in stage dev (a and 2 more): S"),
    (describe_transition(Event.POLICY_STOPPED, "", "", [], "no such repository"),
     "stopped by an error: no such repository"),
    (describe_transition(Event.ROLLOUT_DONE, "v2", "", [], ""),
     "the rollout of v2 is complete"),
    (describe_transition(Event.STAGE_HALTED, "v2", "prod", [], "1 variant failed v2"),
     "stage prod is halted at v2: 1 variant failed v2"),
    (describe_transition(Event.STAGE_HALTED, "v2", "", [], "S"),
     "the variant is halted at v2: S"),
    (describe_transition(
        Event.STAGE_HALTED, "v2", "prod", [],
        "stage prod is halted: 1 variant failed v2 (ams), maxFailures: 0",
     ),
     "stage prod is halted at v2: 1 variant failed v2 (ams), maxFailures: 0"),
    (describe_transition(Event.STAGE_PASSED, "v2", "dev", [], ""), "stage dev passed v2"),
    (describe_transition(Event.VARIANT_FAILED, "v2", "dev", ["ams"], "e2e failed"),
     "1 variant failed v2 in stage dev (ams): e2e failed"),
    (describe_actions(Reason.DRAFTS_WRITTEN, 1, "v2", "dev", ""),
     "1 draft of v2 written in stage dev"),
    (describe_actions(Reason.PUBLISHED, 2, "v2", "", ""), "2 variants published at v2"),
    (describe_actions(Reason.PACKAGES_REMOVED, 2, "", "dev", ""),
     "2 packages removed in stage dev"),
    (describe_actions(Reason.REQUESTS_MERGED, 1, "", "dev", ""),
     "1 pull request merged in stage dev"),
    (describe_actions(Reason.PUSH_FAILED, 1, "", "prod", "the branch moved"),
     "1 action failed in stage prod: the branch moved"),
    (describe_actions(Reason.PUSH_FAILED, 2, "", "prod", "the branch moved"),
     "2 actions failed in stage prod; the first: the branch moved"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
