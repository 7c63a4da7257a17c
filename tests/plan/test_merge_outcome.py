"""What hosts make of merges: errors of the call, what is recorded, and holds of later passes."""

from datetime import timedelta

import pytest
from forge_states import HOST, REF, at, commit_id, drafted, forge, request

from fanout.api.promotion_policy import MergeMethod, MergeStyle
from fanout.errors import Waiting
from fanout.plan.observation.branch_rules import BranchFacts
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Mergeability,
    MergeabilityKind,
    Merged,
    MergeRoute,
    RefusalKind,
    Refused,
)
from fanout.plan.observation.observed_request import (
    GuardedMerge,
    RepositoryFacts,
    RepositoryName,
)
from fanout.plan.pull_requests.merge_holds import find_merge_hold, find_refusal_hold
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
MERGE = GuardedMerge(7, HEAD, "draft", MergeStyle.REBASE)
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
        f"{NOT_NOW}; let the host sign its merges, or remove the rule that requires signatures",
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
    assert hold is not None
    assert hold.since == at(0), description
    assert hold.until == (pause and at(0) + pause)


def test_the_last_answer_of_the_forge_is_on_record():
    answer = RequestLine(number=7, state="open", accepted=at(2))
    accepted = apply_result(replace(REFUSED, retryable=True), answer)
    assert accepted is not None
    assert (accepted.refused, accepted.refusal, accepted.accepted) == (None, "", at(2))
    assert apply_result(accepted, RequestLine(number=7, state="open")) == accepted
    again = apply_result(accepted, REFUSED)
    assert again is not None
    assert (again.refusal, again.accepted) == ("blocked", None)
    later = RequestLine(number=7, state="open", head=commit_id("c2"), status="success: ")
    begun = apply_result(accepted, later)
    assert begun is not None
    assert begun.accepted is None


def test_a_refusal_is_of_one_head():
    later = RequestLine(number=7, state="open", head=commit_id("c2"), status="success: ")
    line = apply_result(replace(REFUSED, retryable=True), later)
    assert line is not None
    assert (line.refused, line.retryable, line.refusal) == (None, False, "")


PASSED = RequestLine(number=7, state="open", head=HEAD, status="success: the gates are open")
PENDING = replace(PASSED, status="pending: soaks")
NOW = "its pull request 7 cannot be merged now: "
DEMANDS = "whoever can meet what the forge asks for; each pass asks it again"
MERGEABILITIES = [
    ("nothing to hold", "clean", "clean", PASSED, True, None),
    ("a draft is made ready before it is merged", "draft", "draft", PASSED, True, None),
    ("a rule is not met", "blocked", "blocked", PASSED, True, (f"{NOW}blocked", DEMANDS)),
    ("its own pending status may be all that blocks it", "blocked", "blocked", PENDING, True, None),
    ("as where none is set yet", "blocked", "blocked", None, True, None),
    (
        "as where it was set at another head",
        "blocked",
        "blocked",
        replace(PASSED, head=commit_id("c0")),
        True,
        None,
    ),
    (
        "behind, whatever its status",
        "behind",
        "need_rebase",
        PENDING,
        True,
        (f"{NOW}its head lacks commits of the branch (need_rebase)", DEMANDS),
    ),
    (
        "a conflict",
        "conflict",
        "dirty",
        None,
        True,
        (f"{NOW}it conflicts with the branch (dirty)", DEMANDS),
    ),
    (
        "an unknown word is a hold",
        "other",
        "title_regex",
        None,
        True,
        (f"{NOW}title_regex", DEMANDS),
    ),
    ("an attempt makes the host compute", "checking", "unchecked", PASSED, True, None),
    (
        "no attempt does",
        "checking",
        "unknown",
        PASSED,
        False,
        (f"{NOW}the forge is computing whether it can be (unknown)", "the next pass"),
    ),
]


def hold_by_mergeability(kind: str, words: str, line: RequestLine | None, *, checks: bool):
    facts = request()
    mergeability = Mergeability(MergeabilityKind(kind), words)
    shown = replace(facts.request, mergeability=mergeability)
    observed = replace(forge(replace(facts, request=shown)), checks_when_merging=checks)
    state = drafted("a", observed).repository_state
    lines = {(state.identity, REF): line} if line is not None else {}
    inputs = RequestHoldInputs(RequestSettings(), lines, at(9))
    hold = find_request_hold(state, REF, HEAD, "edge", inputs)
    return hold, inputs.is_asked_again(state, REF, hold)


@pytest.mark.parametrize(
    ("description", "kind", "words", "line", "checks", "expected"),
    MERGEABILITIES,
    ids=[it[0] for it in MERGEABILITIES],
)
def test_a_refusal_that_the_host_foretells_is_a_hold(
    description, kind, words, line, checks, expected
):
    hold, is_asked_again = hold_by_mergeability(kind, words, line, checks=checks)
    assert (hold and (hold.message, hold.who)) == expected, description
    assert hold is None or (hold.reason, hold.until) == ("ForgeRefuses", None)
    assert not is_asked_again


def test_a_refusal_is_asked_about_again_when_the_host_would_merge():
    refused = replace(PASSED, refused=at(0), refusal_reason="ForgeRefuses", refusal="reviews")
    hold, is_asked_again = hold_by_mergeability("blocked", "blocked", refused, checks=True)
    assert (hold.message, is_asked_again) == (f"{NOW}blocked", False)
    hold, is_asked_again = hold_by_mergeability("clean", "clean", refused, checks=True)
    assert (hold.message, is_asked_again) == ("reviews", True)


SETTINGS = RepositoryFacts(EDGE, False, frozenset(MergeStyle))
RULES = BranchFacts(is_protected=True, may_push=False)
STYLES = [
    ("no rule", RULES, "Merge", None),
    (
        "another style is allowed alone",
        replace(RULES, allowed_styles=frozenset({MergeStyle.SQUASH, MergeStyle.REBASE})),
        "Merge",
        (
            "MergeStyleForbidden",
            (
                "the branch main forbids merging by Merge; set mergeStyle to one that it allows"
                " (Rebase, Squash), or allow Merge in its rules"
            ),
        ),
    ),
    (
        "this style is",
        replace(RULES, allowed_styles=frozenset({MergeStyle.SQUASH})),
        "Squash",
        None,
    ),
    ("the styles are hidden", replace(RULES, allowed_styles=None), "Merge", None),
    (
        "a linear history",
        replace(RULES, requires_linear_history=True),
        "Merge",
        (
            "MergeStyleForbidden",
            (
                "the branch main requires a linear history, which forbids merging by Merge; set"
                " mergeStyle to Squash or Rebase, or remove the rule"
            ),
        ),
    ),
    ("a rebase is linear", replace(RULES, requires_linear_history=True), "Rebase", None),
    ("nobody knows", replace(RULES, requires_linear_history=None), "Merge", None),
    (
        "signatures",
        replace(RULES, requires_signatures=True),
        "Rebase",
        (
            "SignatureRequired",
            (
                "the branch main takes signed commits only, and fanout signs none; set mergeStyle"
                " to Squash, or remove the rule"
            ),
        ),
    ),
    ("the host signs a squash", replace(RULES, requires_signatures=True), "Squash", None),
    ("signatures are hidden", replace(RULES, requires_signatures=None), "Rebase", None),
    (
        "a queue",
        replace(RULES, requires_queue=True),
        "Merge",
        (
            "ForgeRefuses",
            (
                "the branch main requires its merge queue; add the pull requests to it by hand, or"
                " let fanout's account merge past it"
            ),
        ),
    ),
]


@pytest.mark.parametrize(
    ("description", "rules", "style", "expected"), STYLES, ids=[it[0] for it in STYLES]
)
def test_a_style_that_a_rule_forbids_is_told_before_any_merge(description, rules, style, expected):
    observed = replace(forge(request()), branch=rules, repository=SETTINGS)
    hold = find_merge_hold(observed, request(), None, MergeStyle(style))
    assert (hold and (hold.reason, hold.message)) == expected, description
    assert hold is None or (hold.who, hold.until) == ("an administrator", None)


def test_rules_that_were_read_long_ago_forbid_no_style():
    rules = replace(RULES, requires_linear_history=True)
    observed = replace(forge(request()), branch=rules)
    assert find_merge_hold(observed, request(), None, MergeStyle.MERGE) is None


BLOCKED = Mergeability(MergeabilityKind.BLOCKED, "blocked")
REQUIREMENTS = [
    ("nothing else is required", RULES, ""),
    ("one approval", replace(RULES, required_approvals=1), "; the branch main requires 1 approval"),
    (
        "several rules",
        replace(RULES, required_approvals=2, requires_code_owners=True, ignores_last_pusher=True,
                requires_resolved_conversations=True),
        ("; the branch main requires 2 approvals, approvals of code owners, an approval by others"
         " than the last to push, resolved conversations"),
    ),
    (
        "some are hidden",
        replace(RULES, required_approvals=None, requires_code_owners=True,
                requires_signatures=None),
        ("; the branch main requires approvals of code owners; it is hidden whether main requires"
         " approvals, signed commits"),
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("description", "rules", "words"), REQUIREMENTS, ids=[it[0] for it in REQUIREMENTS]
)
def test_a_blocked_merge_names_the_rules_that_may_block_it(description, rules, words):
    facts = request()
    facts = replace(facts, request=replace(facts.request, mergeability=BLOCKED))
    hold = find_merge_hold(replace(forge(facts), branch=rules), facts, PASSED, MergeStyle.MERGE)
    assert hold is not None
    assert hold.message == f"{NOW}blocked{words}", description
