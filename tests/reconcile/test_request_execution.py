"""Calls about one pull request: what their outcomes are, and what is recorded of them."""

import pytest
from forge_double import ForgeDouble, change_of
from forge_states import REF, REMOTE, at, commit_id

from fanout.api.promotion_policy import MergeStyle
from fanout.errors import Conflict, RateLimited, Unavailable
from fanout.plan.actions import ActionKind
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Merged,
    MergeRoute,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import (
    GuardedMerge,
    RequestDraft,
    RequestEdit,
    RequestPart,
)
from fanout.reconcile.pull_requests.request_execution import RequestOutcome, execute_requests
from fanout.values import replace

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
    assert line is not None
    assert (line.state, line.refusal_reason, line.retryable) == recorded
    assert (line.refused is not None) is bool(line.refusal_reason)
    assert (line.accepted is not None) is isinstance(answer, Accepted)


DOWN = Unavailable("it is down", reason="ForgeUnavailable")
REFUSED = Unavailable("drafts are not offered", reason="ForgeRefuses", remedy="use another plan")
STALE = "pull request 7 of org/edge is not as observed"
LIMITED = RateLimited("60 calls a minute", until=at(6))
EVERYTHING = RequestEdit(title="T", is_draft=False, text="New.", base_branch="main")
EDITS = [
    ("all is done", {}, None, None),
    (
        "all is one call, which fails",
        DOWN,
        None,
        "it was changed, but its title, draft flag, text, target branch failed: it is down",
    ),
    (
        "the draft flag alone fails",
        {RequestPart.DRAFT_FLAG: REFUSED},
        None,
        "it was changed, but its draft flag failed: drafts are not offered; use another plan",
    ),
    ("the labels alone fail", {}, DOWN, "it was changed, but its labels failed: it is down"),
    (
        "two fail for different reasons",
        {RequestPart.TEXT: REFUSED},
        LIMITED,
        (
            "it was changed, but its text failed: drafts are not offered; use another plan; its"
            " labels failed: 60 calls a minute"
        ),
    ),
    ("everything fails alike", DOWN, DOWN, "it is down"),
]


@pytest.mark.parametrize(
    ("description", "edit", "labels", "sentence"), EDITS, ids=[it[0] for it in EDITS]
)
def test_a_part_that_fails_hides_no_other(description, edit, labels, sentence):
    forge = ForgeDouble(edit_failures=edit, label_error=labels)
    outcome = outcome_of(forge, edit=EVERYTHING, added_labels=("fanout",))
    error = outcome.errors.get(ActionKind.UPDATE_REQUEST)
    assert (error and str(error)) == sentence, description
    assert forge.calls == ["edit title, draft flag, text, target branch", "labels fanout"]


def test_a_limit_is_no_failure_where_nothing_else_failed():
    forge = ForgeDouble(edit_failures={RequestPart.TEXT: LIMITED}, label_error=LIMITED)
    outcome = outcome_of(forge, edit=EVERYTHING, added_labels=("fanout",))
    error = outcome.errors[ActionKind.UPDATE_REQUEST]
    assert isinstance(error, RateLimited)
    assert error.until == at(6)
    assert error.problem == "it was changed, but its text, labels failed: 60 calls a minute"


OPENING = RequestDraft("drafts/default/a", "main", "T", "Text.", is_draft=True)


def test_a_request_that_is_opened_without_its_labels_gets_its_reviewers():
    forge = ForgeDouble(label_error=DOWN)
    outcome = outcome_of(
        forge, request=None, opening=OPENING, added_labels=("fanout",), reviewers=("ann",)
    )
    error = outcome.errors[ActionKind.OPEN_REQUEST]
    assert str(error) == "it was opened, but its labels failed: it is down"
    assert forge.calls == ["label fanout/hold", "open", "labels fanout", "reviewers ann"]
    assert outcome.line is not None
    assert (outcome.line.number, outcome.line.state) == (7, "open")


CHANGED = "somebody wrote this meanwhile"
GUARDS = [
    (
        "the host keeps versions",
        True,
        CHANGED,
        ["edit title, draft flag, text, target branch"],
        None,
    ),
    (
        "it does not, and nobody wrote",
        False,
        "",
        ["request", "edit title, draft flag, text, target branch"],
        None,
    ),
    (
        "it does not, and somebody wrote",
        False,
        CHANGED,
        ["request", "edit title, draft flag, target branch"],
        f"it was changed, but its text failed: {STALE}",
    ),
]


@pytest.mark.parametrize(
    ("description", "keeps", "present", "calls", "sentence"), GUARDS, ids=[it[0] for it in GUARDS]
)
def test_a_text_of_a_person_is_not_overwritten(description, keeps, present, calls, sentence):
    forge = ForgeDouble(keeps_text_versions=keeps)
    forge.present = replace(forge.present, text=present)
    outcome = outcome_of(forge, edit=EVERYTHING)
    error = outcome.errors.get(ActionKind.UPDATE_REQUEST)
    assert (error and str(error)) == sentence, description
    assert forge.calls == calls


def test_an_edit_without_texts_compares_nothing():
    forge = ForgeDouble(keeps_text_versions=False)
    outcome_of(forge, edit=RequestEdit(is_draft=False))
    assert forge.calls == ["edit draft flag"]
