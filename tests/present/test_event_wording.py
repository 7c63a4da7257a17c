"""The sentences of events, as people read them."""

from operator import itemgetter

import pytest

from fanout.api.notifications import NotificationEvent as Event
from fanout.present.notifications import event_wording as wording

SENTENCES = [
    (wording.describe_transition(Event.APPROVAL_AWAITED, "v2", "prod", ["ams", "ber"], "S"),
     "2 drafts of v2 wait for approvals in stage prod (ams and 1 more): S"),
    (wording.describe_transition(Event.APPROVAL_AWAITED, "v2", "", ["ams"], ""),
     "1 draft of v2 waits for approvals (ams)"),
    (wording.describe_transition(Event.MERGE_CONFLICT, "v2", "dev", ["ams"], "S"),
     "1 draft of v2 has undecided merge conflicts in stage dev (ams): S"),
    (wording.describe_transition(Event.MERGE_CONFLICT, "v2", "dev", ["a", "b", "c"], "S"),
     "3 drafts of v2 have undecided merge conflicts in stage dev (a and 2 more): S"),
    (wording.describe_transition(Event.POLICY_STOPPED, "", "", [], "no such repository"),
     "stopped by an error: no such repository"),
    (wording.describe_transition(Event.ROLLOUT_DONE, "v2", "", [], ""),
     "the rollout of v2 is complete"),
    (wording.describe_transition(Event.STAGE_HALTED, "v2", "prod", [], "1 variant failed v2"),
     "stage prod is halted at v2: 1 variant failed v2"),
    (wording.describe_transition(Event.STAGE_HALTED, "v2", "", [], "S"),
     "the variant is halted at v2: S"),
    (wording.describe_transition(
        Event.STAGE_HALTED, "v2", "prod", [],
        "stage prod is halted: 1 variant failed v2 (ams), maxFailures: 0",
     ),
     "stage prod is halted at v2: 1 variant failed v2 (ams), maxFailures: 0"),
    (wording.describe_transition(Event.STAGE_PASSED, "v2", "dev", [], ""), "stage dev passed v2"),
    (wording.describe_transition(Event.VARIANT_FAILED, "v2", "dev", ["ams"], "e2e failed"),
     "1 variant failed v2 in stage dev (ams): e2e failed"),
    (wording.describe_drafts_written(1, "v2", "dev"), "1 draft of v2 written in stage dev"),
    (wording.describe_published(2, "v2", ""), "2 variants published at v2"),
    (wording.describe_removed(2, "dev"), "2 packages removed in stage dev"),
    (wording.describe_merged_requests(1, "dev"), "1 pull request merged in stage dev"),
    (wording.describe_failed_actions(1, "the branch moved", "prod"),
     "1 action failed in stage prod: the branch moved"),
    (wording.describe_failed_actions(2, "the branch moved", "prod"),
     "2 actions failed in stage prod; the first: the branch moved"),
]  # fmt: skip


@pytest.mark.parametrize(("worded", "expected"), SENTENCES, ids=map(itemgetter(1), SENTENCES))
def test_wording(worded, expected):
    assert worded == expected
