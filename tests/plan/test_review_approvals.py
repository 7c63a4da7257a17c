"""Reviews of pull requests as approvals: of whom, of which trees, and until when."""

from operator import itemgetter

import pytest
from forge_states import at, drafted, forge, published, request, review
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.record_objects import ApprovalSpec
from fanout.api.results import CheckResult, VariantResult
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.gate_facts import DraftFacts, Publication, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, StageRule
from fanout.gates.record_facts import ApprovalFacts
from fanout.plan.changes.publication_messages import build_approval_trailers
from fanout.plan.evidence.review_approvals import (
    find_requested_changes,
    find_review_approvals,
    find_standing_approvals,
)
from fanout.values import replace

ANN, BOB = "ann@example.com", "bob@example.com"
SIGNED = ApprovalRule(
    "signed",
    1,
    frozenset({ANN, BOB}),
    ("sre",),
    aliases={"git.example.com/ann": ANN, "git.example.com/ann-b": ANN, "git.example.com/bob": BOB},
)
PROD = StageRule("prod", requires=(SIGNED,))
REVIEWED = {"c1": {"sites/a": "tree-a"}, "c2": {"sites/a": "tree-b"}}


REVISIONS = {"c1": {"a": "v2"}, "c2": {"a": "v2"}, "c0": {"a": "v1"}, "c3": {"b": "v2"}}


def judge(*reviews, tree="tree-a", trees=REVIEWED, recorded=(), rule=SIGNED, released=0.0,
          since=None, has=None):  # fmt: skip
    """The result of the check for the draft of variant `a`."""
    state = forge(request(reviews, trees, revisions=REVISIONS))
    variant = drafted("a", state, tree=tree, released=released)
    if since is not None:
        assert variant.status_line.grant is not None
        grant = replace(variant.status_line.grant, since=at(since))
        variant = replace(variant, status_line=replace(variant.status_line, grant=grant))
    stage = StageRule("prod", requires=(rule,))
    approvals = find_review_approvals([variant], [stage])
    requested = find_requested_changes([variant], [stage])
    index = ApprovalIndex(
        [*recorded, *approvals], [stage], at(60), ActiveDecisions((), at(60)), requested
    )
    facts = VariantFacts("a", "prod", "a", published=has)
    return index.evaluate(rule, facts, DraftFacts("v2", "d1", tree))


REJECTED, COMMENTED = "changes requested", "commented"
BY_ANN = ("git.example.com/ann",)
NOT_ENTITLED = f"approval by {{}} does not count: not {gate_wording.format_approvers(SIGNED)}"
ROWS = [
    ("an approving review approves", [review("ann")], BY_ANN),
    ("a login is the same in any case", [review("Ann")], BY_ANN),
    ("a comment is no approval", [review("ann", COMMENTED)], ()),
    ("a review of another tree is none", [review("ann", head="c2")], (),
     "approval by git.example.com/ann is for other drafts of v2"),
    ("a review of a commit that is gone is none", [review("ann", head="c9")], ()),
    ("a review of no commit is none", [review("ann", head="")], ()),
    ("a dismissed one does not count", [review("ann", dismissed=True)], ()),
    ("a later request for changes of another revision takes it back",
     [review("ann"), review("ann", REJECTED, minute=2, head="c0")], ()),
    ("also one that somebody has dismissed",
     [review("ann"), review("ann", REJECTED, minute=2, dismissed=True)], ()),
    ("an earlier one does not", [review("ann", REJECTED), review("ann", minute=2)], BY_ANN),
    ("that of somebody in no group does not",
     [review("ann"), review("eve", REJECTED, minute=2)], BY_ANN),
    ("a later comment does not",
     [review("ann"), review("ann", COMMENTED, minute=2)], BY_ANN),
    ("a dismissal of the last review brings no earlier one back",
     [review("ann"), review("ann", minute=2, dismissed=True)], ()),
    ("who approves again after that counts",
     [review("ann", dismissed=True), review("ann", minute=2)], BY_ANN),
    ("a later approval of another tree takes nothing back",
     [review("ann"), review("ann", minute=2, head="c2")], BY_ANN),
    ("somebody in no group does not count", [review("eve")], (),
     NOT_ENTITLED.format("git.example.com/eve")),
    ("an address at another host is not meant", [review("ann@example.com")], (),
     NOT_ENTITLED.format("git.example.com/ann@example.com")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reviews", "approvers", "hints"),
    [(row[1], row[2], row[3:]) for row in ROWS],
    ids=map(itemgetter(0), ROWS),
)
def test_a_review(reviews, approvers, hints):
    result = judge(*reviews)
    sentence = gate_wording.describe_missing_approvals(SIGNED, ())
    if approvers:
        sentence = f"signed: approved by {', '.join(approvers)}"
    assert (result.verdict is Verdict.PASSED, result.approvers) == (bool(approvers), approvers)
    assert result.message == "; ".join([sentence, *hints])


LINK = "https://git.example.com/org/edge/pulls/7"
BY_BOB = "git.example.com/bob"
REFUSALS = [
    ("alone", [review("bob", REJECTED)], "bob"),
    ("whoever else approves", [review("ann", minute=2), review("bob", REJECTED)], "bob"),
    ("after an approval of the same person", [review("bob"), review("bob", REJECTED, minute=2)],
     "bob"),
    ("by another login of the person", [review("ann"), review("ann-b", REJECTED, minute=2)],
     "ann-b"),
    ("of an earlier draft of the revision", [review("ann"), review("bob", REJECTED, head="c2")],
     "bob"),
    ("of a commit that is gone", [review("ann"), review("bob", REJECTED, head="c9")], "bob"),
    ("of no commit", [review("ann"), review("bob", REJECTED, head="")], "bob"),
    ("also beside a later comment",
     [review("ann"), review("bob", REJECTED), review("bob", COMMENTED, minute=2)], "bob"),
    ("of an earlier revision it does not",
     [review("ann"), review("bob", REJECTED, head="c0")], ""),
    ("of a commit without this package it does not",
     [review("ann"), review("bob", REJECTED, head="c3")], ""),
    ("dismissed it does not", [review("ann"), review("bob", REJECTED, dismissed=True)], ""),
    ("until the person approves",
     [review("ann"), review("bob", REJECTED), review("bob", minute=2)], ""),
    ("also by another login", [review("ann", REJECTED), review("ann-b", minute=2)], ""),
    ("also where that approval is of another tree",
     [review("ann"), review("bob", REJECTED), review("bob", minute=2, head="c2")], ""),
    ("also where that approval is dismissed",
     [review("ann"), review("bob", REJECTED), review("bob", minute=2, dismissed=True)], ""),
    ("by somebody in no group it does not", [review("ann"), review("eve", REJECTED)], ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("reviews", "login"), [row[1:] for row in REFUSALS], ids=map(itemgetter(0), REFUSALS)
)
def test_a_request_for_changes_holds_the_check(reviews, login):
    result = judge(*reviews)
    if not login:
        assert result.verdict is Verdict.PASSED
        return
    person = f"git.example.com/{login}"
    assert (result.verdict, result.reason) == (Verdict.PENDING, Reason.CHANGES_REQUESTED)
    assert result.message.startswith(f"signed: {person} requested changes ({LINK})")
    assert person in result.who
    assert result.approvals == ()


def test_a_request_for_changes_is_named_beside_missing_approvals():
    two = ApprovalRule("signed", 2, SIGNED.subjects, ("sre",), aliases=SIGNED.aliases)
    result = judge(review("ann"), review("bob", REJECTED), rule=two)
    requested = gate_wording.describe_requested_changes("signed", [(BY_BOB, LINK)])
    assert result.message == f"{requested}; 1 of 2 approvals (by git.example.com/ann)"


def test_an_approval_on_record_ends_the_request_for_changes_of_the_same_person():
    def recorded(by, minute, revision="v2"):
        spec = ApprovalSpec(stage="prod", check="signed", revision=revision)
        return ApprovalFacts("r1", at(minute), by, spec, frozenset({"tree-of-before"}))

    reviews = (review("ann"), review("bob", REJECTED, minute=5))
    assert judge(*reviews, recorded=[recorded(BOB, 6)]).verdict is Verdict.PASSED
    assert judge(*reviews, recorded=[recorded(BOB, 4)]).verdict is Verdict.PENDING
    assert judge(*reviews, recorded=[recorded(ANN, 6)]).verdict is Verdict.PENDING
    assert judge(*reviews, recorded=[recorded(BOB, 6, "v1")]).verdict is Verdict.PENDING


def test_of_a_commit_that_is_gone_the_first_release_of_the_revision_decides():
    """The draft was written anew since, for the same revision or for another one."""
    reviews = (review("ann", minute=20), review("bob", REJECTED, minute=5, head="c9"))
    assert judge(*reviews, released=4).verdict is Verdict.PENDING
    assert judge(*reviews, released=10).verdict is Verdict.PASSED
    assert judge(*reviews, released=10, since=4).verdict is Verdict.PENDING
    assert judge(*reviews, released=10, since=6).verdict is Verdict.PASSED
    assert judge(*reviews, released=None).verdict is Verdict.PENDING


def test_a_request_for_changes_of_before_the_publication_is_over():
    reviews = (review("ann", minute=20), review("bob", REJECTED, minute=5))
    has = Publication("v2", "d0", "tree-0", at(10))
    assert judge(*reviews, has=has).verdict is Verdict.PASSED
    assert judge(*reviews, has=replace(has, at=at(4))).verdict is Verdict.PENDING


def test_reviews_and_records_of_one_person_are_one():
    spec = ApprovalSpec(stage="prod", check="signed", revision="v2")
    recorded = ApprovalFacts("r1", at(3), ANN, spec, frozenset({"tree-a"}))
    two = ApprovalRule("signed", 2, SIGNED.subjects, ("sre",), aliases=SIGNED.aliases)
    one = judge(review("ann"), recorded=[recorded], rule=two)
    assert one.verdict is not Verdict.PASSED
    assert one.message == gate_wording.describe_missing_approvals(two, [ANN])
    both = judge(review("bob"), recorded=[recorded], rule=two)
    assert both.approvers == (ANN, "git.example.com/bob")


def test_a_review_of_an_earlier_revision_is_not_reported():
    """Before the release of this revision the branch had another one."""
    missing = gate_wording.describe_missing_approvals(SIGNED, ())
    assert judge(review("ann", head="c2"), released=5).message == missing
    assert judge(review("ann", head="c2"), released=None).message == missing


def test_a_review_is_of_the_trees_at_their_paths_only():
    trees = {"c1": {"sites/a": "tree-b", "sites/b": "tree-a", "sites/c": "tree-c"}}
    state = forge(request([review("ann")], trees))
    variants = [
        drafted("a", state, tree="tree-a"),
        drafted("b", state, tree="tree-b"),
        drafted("c", state, tree="tree-c"),
    ]
    approved, others = find_review_approvals(variants, [PROD])
    assert (approved.spec.variants, approved.trees) == (("c",), frozenset({"tree-c"}))
    assert (others.spec.variants, others.trees) == (("a", "b"), frozenset())
    assert (approved.by, approved.at, approved.spec.check) == (
        "git.example.com/ann",
        at(1),
        "signed",
    )


def test_reviews_need_a_forge_a_request_and_a_check():
    reviewed = drafted("a", forge(request([review("ann")], REVIEWED)))
    assert find_review_approvals([reviewed], [StageRule("prod")]) == ()
    assert find_review_approvals([reviewed], [StageRule("dev", requires=(SIGNED,))]) == ()
    assert find_review_approvals([drafted("a", forge())], [PROD]) == ()
    assert find_review_approvals([drafted("a", None)], [PROD]) == ()
    assert len(find_review_approvals([reviewed], [PROD])) == 1


def test_a_merge_by_a_person_has_the_approvals_of_what_was_merged():
    state = forge(request([review("ann")], REVIEWED))
    draft = drafted("a", state, tree="tree-b")  # somebody has committed to the branch since
    merged = published("a", state, tree="tree-a").published
    for variant in (draft, replace(draft, draft=None)):
        recovered = replace(variant, published=merged, is_unrecorded=True)
        [approval] = find_review_approvals([recovered], [PROD])
        assert (approval.spec.revision, approval.trees) == ("v2", frozenset({"tree-a"}))


REVIEWS = st.lists(
    st.builds(
        review,
        st.sampled_from(["ann", "bob"]),
        st.sampled_from(["approved", REJECTED, COMMENTED]),
        minute=st.integers(0, 1000),
        head=st.sampled_from(["c1", "c2"]),
        dismissed=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda it: it.instant,
)


@given(REVIEWS, st.randoms())
def test_reviews_count_by_their_instants_in_any_order(reviews, random):
    shuffled = list(reviews)
    random.shuffle(shuffled)
    standing = find_standing_approvals(reviews)
    assert sorted(find_standing_approvals(shuffled), key=str) == sorted(standing, key=str)


@given(REVIEWS, st.sampled_from([review("ann", REJECTED, minute=2000),
                                 review("ann", minute=2000, dismissed=True)]))  # fmt: skip
def test_a_last_no_takes_back_all_of_that_person_and_of_nobody_else(reviews, last):
    before, after = (find_standing_approvals(it) for it in (reviews, [*reviews, last]))
    assert after == [it for it in before if it.reviewer != "ann"]


@given(REVIEWS)
def test_comments_change_nothing(reviews):
    opinions = [it for it in reviews if it.verdict.value != COMMENTED]
    assert find_standing_approvals(reviews) == find_standing_approvals(opinions)


@given(REVIEWS)
def test_a_dismissal_never_lets_more_count(reviews):
    standing = find_standing_approvals(reviews)
    for number, item in enumerate(reviews):
        dismissed = [*reviews]
        dismissed[number] = replace(item, is_dismissed=True)
        assert all(it in standing for it in find_standing_approvals(dismissed))


def test_a_publication_names_who_approved_it():
    checks = [
        CheckResult("signed", Verdict.PASSED, "", approvers=("git.example.com/bob", ANN)),
        CheckResult("again", Verdict.PASSED, "", approvers=(ANN,)),
        CheckResult("ci", Verdict.PASSED, ""),
    ]
    evaluations = [
        VariantResult(name=name, stage="prod", state=VariantState.PROPOSED, checks=tuple(checks))
        for name in ("a", "b")
    ]
    assert build_approval_trailers(evaluations) == (
        "Fanout-Approved-By: ann@example.com",
        "Fanout-Approved-By: git.example.com/bob",
    )
    assert build_approval_trailers([]) == ()
