"""What hosts make of merges: errors of the call, what is recorded, and holds of later passes."""

from datetime import timedelta

import pytest
from forge_states import HOST, REF, at, commit_id, drafted, forge, request

from fanout.api.promotion_policy import MergeMethod, MergeStyle
from fanout.errors import Waiting
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Merged,
    MergeRoute,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import GuardedMerge, RepositoryName
from fanout.plan.pull_requests.merge_holds import find_refusal_hold
from fanout.plan.pull_requests.request_holds import (
    HOLD_LABEL,
    RequestHoldInputs,
    RequestSettings,
    find_request_hold,
)
from fanout.plan.pull_requests.request_records import apply_result
from fanout.plan.records.policy_status import RequestLine
from fanout.reconcile.pull_requests.request_execution import check_merge
from fanout.values import replace

HEAD = commit_id("c1")
EDGE = RepositoryName("org", "edge")
MERGE = GuardedMerge(7, HEAD, MergeStyle.REBASE)
NOT_NOW = "pull request 7 of org/edge cannot be merged now: blocked"
QUEUED = Accepted(MergeRoute.QUEUE, 3, "AWAITING_CHECKS")
OUTCOMES = [
    (
        QUEUED,
        "MergeAccepted",
        "pull request 7 of org/edge is in the merge queue at position 3 (AWAITING_CHECKS)",
    ),
    (
        Accepted(MergeRoute.AUTO_MERGE),
        "MergeAccepted",
        "pull request 7 of org/edge is set to be merged automatically",
    ),
    (Refused(RefusalKind.NOT_NOW, "blocked"), "ForgeRefuses", NOT_NOW),
    (
        Refused(RefusalKind.STYLE_FORBIDDEN, "no"),
        "MergeStyleForbidden",
        (
            "org/edge does not allow to merge by Rebase; allow it in the repository's settings, or"
            " set mergeStyle"
        ),
    ),
    (
        Refused(RefusalKind.SIGNATURE_REQUIRED, "blocked"),
        "SignatureRequired",
        f"{NOT_NOW}; set mergeStyle to Squash, or remove the rule that requires signatures",
    ),
    (
        Refused(RefusalKind.QUEUE_REQUIRED, "blocked"),
        "ForgeRefuses",
        f"{NOT_NOW}; allow fanout's account to merge past the merge queue",
    ),
]


@pytest.mark.parametrize(("outcome", "reason", "sentence"), OUTCOMES)
def test_a_merge_that_has_not_taken_place_says_why(outcome, reason, sentence):
    with pytest.raises(Waiting) as error:
        check_merge(EDGE, MERGE, outcome)
    assert (str(error.value.reason), str(error.value)) == (reason, sentence)


def test_a_merge_that_has_taken_place_is_no_error():
    check_merge(EDGE, MERGE, Merged("1" * 40))


def hold_of(accepted: Accepted | None, *, labels: tuple[str, ...] = (), line=None, merge="Direct"):
    facts = request()
    shown = replace(facts.request, accepted=accepted, labels=frozenset(labels))
    state = drafted("a", forge(replace(facts, request=shown))).repository_state
    lines = {(state.identity, REF): line} if line is not None else {}
    inputs = RequestHoldInputs(RequestSettings(merge=MergeMethod(merge)), lines, at(1))
    return find_request_hold(state, REF, HEAD, "edge", inputs)


REFUSED = RequestLine(
    number=7, state="open", head=HEAD, refused=at(0), refused_since=at(0),
    refusal_reason="ForgeRefuses", refusal="blocked",
)  # fmt: skip


def test_an_accepted_merge_is_a_wait_in_the_words_of_the_host():
    hold = hold_of(QUEUED)
    assert (hold.reason, hold.message, hold.who, hold.until) == (
        "MergeAccepted",
        "its pull request 7 is in the merge queue at position 3 (AWAITING_CHECKS)",
        HOST,
        None,
    )
    assert hold_of(None) is None


def test_a_label_goes_before_an_accepted_merge_and_that_before_an_old_refusal():
    assert hold_of(QUEUED, labels=(HOLD_LABEL,)).reason == "RequestHeld"
    assert hold_of(QUEUED, line=REFUSED).reason == "MergeAccepted"
    assert hold_of(QUEUED, merge="Manual").reason == "MergeAccepted"
    assert hold_of(None, merge="Manual").reason == "MergeAwaited"


RETRIES = [
    ("a refusal that lasts has no instant", REFUSED, None),
    ("one that may end in a moment has", replace(REFUSED, retryable=True), timedelta(minutes=1)),
    (
        "one that was said twice has none any more",
        replace(REFUSED, retryable=True, refused=at(1)),
        None,
    ),
]


@pytest.mark.parametrize(("description", "line", "pause"), RETRIES, ids=[it[0] for it in RETRIES])
def test_refusals_have_an_instant_where_the_host_says_so(description, line, pause):
    hold = find_refusal_hold(request(), line)
    assert hold.since == at(0), description
    assert hold.until == (pause and at(0) + pause)


def test_a_refusal_is_of_one_head():
    later = RequestLine(number=7, state="open", head=commit_id("c2"), status="success: ")
    line = apply_result(replace(REFUSED, retryable=True), later)
    assert (line.refused, line.retryable, line.refusal) == (None, False, "")
