"""Approvals: distinct people, of the rule's, on exactly this tree, for as long as they last."""

from datetime import timedelta
from operator import itemgetter

import pytest
from gates.worlds import (
    PASSED,
    PENDING,
    SIGNED,
    approved,
    at,
    draft,
    facts,
    grant,
    published,
    stage,
    variant,
    with_spec,
)

from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.gate_evaluator import evaluate_gates
from fanout.values import replace

NOW = at(10)
ANN = approved("ann", name="by-ann")
BOB = approved("bob", name="by-bob")


NOT_ENTITLED = f"approval by {{}} does not count: not {gate_wording.format_approvers(SIGNED)}"


def missing(*names):
    return gate_wording.describe_missing_approvals(SIGNED, names)


ROWS = [
    ("nobody has approved", [], PENDING, missing()),
    ("one of two is not enough", [ANN], PENDING, missing("ann")),
    (
        "two people are",
        [ANN, BOB],
        PASSED,
        "signed-off: approved by ann, bob",
    ),
    ("one person twice is one person", [ANN, approved("ann")], PENDING, "1 of 2"),
    ("who is not of the rule's does not count", [ANN, approved("eve")], PENDING, "1 of 2"),
    (
        "who is not, or not any more, is told",
        [ANN, approved("eve")],
        PENDING,
        NOT_ENTITLED.format("eve"),
    ),
    (
        "another tree asks again",
        [ANN, approved("bob", trees=frozenset({"tree-v1-new"}))],
        PENDING,
        "1 of 2",
    ),
    (
        "one approval may list many trees",
        [ANN, approved("bob", trees=frozenset({"tree-x", "tree-v1"}))],
        PASSED,
        "",
    ),
    ("another revision does not count", [ANN, approved("bob", revision="v0")], PENDING, "1 of 2"),
    ("another stage does not count", [ANN, approved("bob", of="dev")], PENDING, "1 of 2"),
    ("another check does not count", [ANN, approved("bob", check="budget")], PENDING, "1 of 2"),
    ("an approval for this variant counts", [ANN, approved("bob", variants=("a",))], PASSED, ""),
    (
        "an approval for another variant does not",
        [ANN, approved("bob", variants=("b",))],
        PENDING,
        "",
    ),
    (
        "who approved may take it back",
        [ANN, BOB, approved("bob", revokes="by-bob")],
        PENDING,
        "1 of 2",
    ),
    (
        "so may anybody who could have approved",
        [ANN, BOB, approved("cid", revokes="by-bob")],
        PENDING,
        missing("ann"),
    ),
    ("nobody else may", [ANN, BOB, approved("eve", revokes="by-bob")], PASSED, ""),
    ("taking back is no approval", [ANN, approved("cid", revokes="by-eve")], PENDING, "1 of 2"),
    (
        "who took it back may approve again",
        [ANN, BOB, approved("bob", revokes="by-bob"), approved("bob")],
        PASSED,
        "",
    ),
    (
        "what is recorded later cannot be taken back before",
        [ANN, approved("bob", revokes="by-bob"), BOB],
        PASSED,
        "",
    ),
    (
        "taking back counts at once, also from a clock that runs ahead",
        [ANN, BOB, approved("bob", revokes="by-bob", at=at(900))],
        PENDING,
        "",
    ),
    (
        "one from the future does not count yet",
        [ANN, approved("bob", at=at(30))],
        PENDING,
        "",
    ),
]


def answer(approvals, rule=SIGNED, now=NOW, has=None):
    index = ApprovalIndex(
        approvals, [stage("prod", requires=(rule,))], now, ActiveDecisions((), now)
    )
    return index.evaluate(rule, variant("a", "prod", has), draft("v1"))


@pytest.mark.parametrize(
    ("sentence", "approvals", "verdict", "expected_sentence"), ROWS, ids=map(itemgetter(0), ROWS)
)
def test_approval(sentence, approvals, verdict, expected_sentence):
    view = answer(approvals)
    assert view.verdict is verdict
    assert expected_sentence in view.message


REMOVAL = replace(draft("v1"), revision="")  # the branch of a removal has no revision


def about_removals(approval):
    """The approval without its revision, if that is the one of the draft."""
    return with_spec(approval, revision=None) if approval.spec.revision == "v1" else approval


def answer_removal(approvals):
    rule = SIGNED
    index = ApprovalIndex(
        approvals, [stage("prod", requires=(rule,))], NOW, ActiveDecisions((), NOW)
    )
    return index.evaluate(rule, variant("a", "prod"), REMOVAL)


@pytest.mark.parametrize(
    ("sentence", "approvals", "verdict", "expected_sentence"), ROWS, ids=map(itemgetter(0), ROWS)
)
def test_an_approval_of_a_removal_counts_as_one_of_a_draft(
    sentence, approvals, verdict, expected_sentence
):
    view = answer_removal([about_removals(it) for it in approvals])
    assert view.verdict is verdict
    assert expected_sentence in view.message


def test_an_approval_of_a_draft_is_none_of_a_removal_with_the_same_tree():
    assert answer_removal([ANN, BOB]).verdict is PENDING
    assert answer([about_removals(it) for it in (ANN, BOB)]).verdict is PENDING


def test_an_approval_of_an_earlier_state_of_the_branch_is_reported():
    elsewhere = about_removals(approved("bob", trees=frozenset({"tree-other"})))
    view = answer_removal([about_removals(ANN), elsewhere])
    assert view.message == f"{missing('ann')}; approval by bob is for another tree of the branch"


def test_an_approval_lasts_until_it_expires_and_not_an_instant_longer():
    rule = replace(SIGNED, expires=timedelta(minutes=9))
    before, then = (answer([ANN, BOB], rule, now) for now in (at(9.99), at(10)))
    assert (before.verdict, before.until) == (PASSED, at(10))
    assert (then.verdict, then.until) == (PENDING, None)


def test_a_future_approval_says_when_it_counts():
    view = answer([ANN, approved("bob", at=at(30))])
    assert (view.reason, view.until) == ("FromTheFuture", at(25))


def test_an_approval_of_other_drafts_is_mentioned():
    other = {"trees": frozenset({"tree-before"})}
    view = answer([approved("ann", **other), approved("eve", **other), BOB])
    hint = "approval by ann is for other drafts of v1"
    assert view.message == f"{missing('bob')}; {hint}"
    assert hint not in answer([approved("ann", **other), ANN]).message
    assert hint not in answer([approved("ann", **other, variants=("q",))]).message


def test_an_approval_before_the_last_publication_does_not_count():
    assert answer([ANN, BOB], has=published("v1", 0)).verdict is PASSED
    moved = answer([ANN, BOB], has=published("v1", 5))
    assert moved.verdict is PENDING
    assert moved.message == missing()


def test_the_permitted_approvers_are_named():
    assert answer([]).who == gate_wording.format_approvers(SIGNED)
    nobody_may = replace(SIGNED, subjects=frozenset())
    nobody = answer([], nobody_may)
    assert nobody.who == gate_wording.format_approvers(nobody_may)
    assert nobody.message == gate_wording.describe_missing_approvals(nobody_may, [])


ANN_TWICE = replace(
    SIGNED,
    subjects=frozenset({"ann@example.com", "bob@example.com", "git.example.com/cid"}),
    aliases={"git.example.com/ann": "ann@example.com", "git.example.com/bob": "bob@example.com"},
)
AT_GIT = [approved(f"git.example.com/{it}", name=f"{it}-at-git") for it in ("ann", "bob", "cid")]
BY_ADDRESS = approved("ann@example.com", name="ann-by-address")

NAMES = [
    ("a person counts once, whatever the name", [BY_ADDRESS, AT_GIT[0]], PENDING,
     missing("git.example.com/ann")),
    ("two people count by any of their names", [BY_ADDRESS, AT_GIT[1]], PASSED,
     "signed-off: approved by ann@example.com, git.example.com/bob"),
    ("a login counts for the person who has it alone", [AT_GIT[0], AT_GIT[2]], PASSED, ""),
    ("a login of another host is nobody's",
     [BY_ADDRESS, approved("git.example.org/bob")], PENDING,
     NOT_ENTITLED.format("git.example.org/bob")),
    ("a person takes back by one name what they approved by another",
     [BY_ADDRESS, AT_GIT[1], approved("git.example.com/ann", revokes="ann-by-address")], PENDING,
     missing("git.example.com/bob")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("approvals", "verdict", "expected_sentence"),
    [row[1:] for row in NAMES],
    ids=map(itemgetter(0), NAMES),
)
def test_names_of_a_person(approvals, verdict, expected_sentence):
    view = answer(approvals, ANN_TWICE)
    assert view.verdict is verdict
    assert expected_sentence in view.message


SEPARATED = replace(ANN_TWICE, at_least=1, separation=True)
OWN = [
    ("what a person committed they do not approve by another name", {"ann@example.com"}, True, 0,
     False, "approval by git.example.com/ann does not count: they changed the draft"),
    ("what another person committed they do", {"ann@example.com"}, True, 1, True, ""),
    ("who is known by login alone may have committed it", {"ann@example.com"}, True, 2, False,
     ("approval by git.example.com/cid does not count: their commit address is not in"
      " PromotionPolicy.approvers")),
    ("where nobody has committed, a login alone counts", {"eve@example.com"}, False, 2, True, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("authors", "has_commits", "who", "counts", "expected_sentence"),
    [row[1:] for row in OWN],
    ids=map(itemgetter(0), OWN),
)
def test_an_approval_by_an_author_of_the_draft_does_not_count(
    authors, has_commits, who, counts, expected_sentence
):
    index = ApprovalIndex(
        [AT_GIT[who]], [stage("prod", requires=(SEPARATED,))], NOW, ActiveDecisions((), NOW)
    )
    changed = replace(draft("v1"), authors=frozenset(authors), has_commits=has_commits)
    view = index.evaluate(SEPARATED, variant("a", "prod"), changed)
    assert (view.verdict is PASSED) is counts
    assert expected_sentence in view.message


def test_the_counted_approvers_are_named():
    assert answer([BY_ADDRESS, AT_GIT[1]], ANN_TWICE).approvers == (
        "ann@example.com",
        "git.example.com/bob",
    )
    assert answer([BY_ADDRESS], ANN_TWICE).approvers == ()


RELEASES = [
    ("a release before the approval is renewed", 5, 8, True),
    ("one after it is not", 8, 5, False),
    ("one in the pass that found an approval of a clock that runs ahead is not", 10, 12, False),
    ("one of an earlier pass is renewed for such an approval too", 9, 12, True),
]


@pytest.mark.parametrize(
    ("released", "approved_at", "renewed"),
    [row[1:] for row in RELEASES],
    ids=map(itemgetter(0), RELEASES),
)
def test_a_publication_is_dated_no_earlier_than_its_approvals(released, approved_at, renewed):
    one = replace(SIGNED, at_least=1)
    held = variant("p", "prod", draft=draft("v1"), grant=grant("v1", when=released))
    policy_facts = facts(
        [stage("prod", requires=(one,))], [held], approved("ann", at=at(approved_at)), now=10
    )
    evaluation = evaluate_gates(policy_facts).variants["p"]
    assert (evaluation.release, evaluation.publish) == (renewed, True)
