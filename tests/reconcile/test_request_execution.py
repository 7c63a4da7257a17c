"""Calls about one pull request: what their outcomes are, and what is recorded of them."""

import pytest
from forge_double import ForgeDouble, change_of
from forge_states import REF, REMOTE, at, commit_id

from fanout.api.promotion_policy import MergeStyle
from fanout.errors import Conflict, Unavailable
from fanout.plan.actions import ActionKind
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Merged,
    MergeRoute,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import GuardedMerge
from fanout.reconcile.pull_requests.request_execution import RequestOutcome, execute_requests

MERGE = GuardedMerge(7, commit_id("c1"), "draft", MergeStyle.MERGE)


def outcome_of(forge: ForgeDouble, **fields: object) -> RequestOutcome:
    outcomes = execute_requests(forge, [change_of(**fields)], lambda *_: None, at(5))  # type: ignore[arg-type]
    return outcomes[REMOTE.key, REF]


MERGES = [
    ("merged", Merged("1" * 40), None, ("merged", "", False)),
    (
        "accepted: on no branch, and no refusal",
        Accepted(MergeRoute.QUEUE, 2),
        "MergeAccepted",
        ("open", "", False),
    ),
    (
        "refused for now",
        Refused(RefusalKind.NOT_NOW, "base branch was modified", is_retryable=True),
        "ForgeRefuses",
        ("open", "ForgeRefuses", True),
    ),
    (
        "refused by a rule",
        Refused(RefusalKind.SIGNATURE_REQUIRED, "unsigned"),
        "SignatureRequired",
        ("open", "SignatureRequired", False),
    ),
    (
        "a head that moved is no refusal",
        Conflict("head out of date", reason="RemoteMoved"),
        "RemoteMoved",
        ("open", "", False),
    ),
    (
        "an answer that was lost is none either",
        Unavailable("it is down", reason="ForgeUnavailable"),
        "ForgeUnavailable",
        ("open", "", False),
    ),
]


@pytest.mark.parametrize(
    ("description", "answer", "reason", "recorded"), MERGES, ids=[it[0] for it in MERGES]
)
def test_a_merge_is_recorded_as_what_the_host_made_of_it(description, answer, reason, recorded):
    outcome = outcome_of(ForgeDouble(merge_outcome=answer), merge=MERGE)
    error = outcome.errors.get(ActionKind.MERGE_REQUEST)
    assert (error and str(error.reason)) == reason, description
    line = outcome.line
    assert (line.state, line.refusal_reason, line.retryable) == recorded
    assert (line.refused is not None) is bool(line.refusal_reason)
