"""Pull requests that remove packages: what closings, requests for changes and approvals hold."""

from datetime import timedelta
from operator import itemgetter

import pytest
from forge_states import HOST, MAIN, REMOTE, at, commit_id, forge, request, review

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.gate_rules import ApprovalRule, StageRule
from fanout.gates.record_facts import DecisionFacts, RecordFacts
from fanout.plan.changes.package_removal import PackageRemoval
from fanout.plan.changes.planned_sets import PlannedSet, SetOwner
from fanout.plan.evidence.review_approvals import index_removal_approvals
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import RepositoryState, SetState
from fanout.plan.pull_requests.removal_requests import RemovalReviews
from fanout.plan.records.policy_status import RequestLine
from fanout.values import replace

OWNER = SetOwner("default", "default", "monitoring")
REF = OWNER.find_ref("prod")
RULE = ApprovalRule(
    "signed", 1, frozenset({"ann", "bob"}), ("sre",), aliases={f"{HOST}/ann": "ann"}
)
PROD = StageRule("prod", requires=(RULE,))
REJECTED = "changes requested"
COMMAND = "fanout resume monitoring --stage prod --reason WHY"
LINK = request().request.url
A = "to remove sites/a"
# Of the reviewed commits: `c1` removes a, `c2` removes another package, `c3` is older than a.
TREES = {"c1": {"sites/b": "tree-b"}, "c2": {"sites/a": "tree-a"}, "c3": {"sites/b": "tree-b"}}


def ask(facts=None, line=None, decisions=(), stage="prod", present=True):
    """The reviews to the removal of `a`, and the removal."""
    shown = replace(forge(), requests={REF: facts} if facts is not None else {})
    refs = {REF: commit_id("c1")} if present else {}
    state = RepositoryState(remote=REMOTE, branch=MAIN, refs=refs, forge=shown)
    removal = PackageRemoval(
        variant="a", stage=stage, repository="edge", repository_state=state, path="sites/a",
        tree="tree-a", reason="",
    )  # fmt: skip
    lines = {(state.identity, REF): line} if line is not None else {}
    return review_by([PROD], [state], lines, decisions), removal


def review_by(rules, states, lines=None, decisions=()):
    return RemovalReviews(
        owner=OWNER, lines=lines or {}, decisions=decisions, stage_rules=rules,
        approvals=index_removal_approvals(RecordFacts(), states, rules, at(30)),
    )  # fmt: skip


def closed(by: str = "ann", state: RequestState = RequestState.CLOSED):
    facts = request()
    shown = replace(facts.request, state=state, closed=at(5))
    return replace(facts, request=shown, closed_by=by)


def resume(minute: float, stage: str = "", *variants: str) -> DecisionFacts:
    spec = DecisionSpec(action=Action.RESUME, stage=stage, variants=variants)
    return DecisionFacts("d1", at(minute), "ann", spec, 0)


ON_RECORD = RequestLine(
    number=7, state="closed", url=LINK, declined={"sites/a": "tree-a"}, closed=at(5),
    closed_by=f"{HOST}/ann",
)  # fmt: skip
BY_ANN = f"{HOST}/ann closed pull request 7 ({LINK}) {A}; reopen it or run `{COMMAND}`"
CLOSINGS = [
    ("as the forge shows it", {"facts": closed()}, BY_ANN),
    ("as it is on record", {"line": ON_RECORD}, BY_ANN),
    ("by nobody that the forge names", {"facts": closed("")},
     f"a person closed pull request 7 ({LINK}) {A}; reopen it or run `{COMMAND}`"),
    ("by a deletion of the branch", {"facts": request(), "present": False},
     f"a person deleted the branch of pull request 7 ({LINK}) {A}; run `{COMMAND}`"),
    ("by fanout it is none", {"facts": closed("fanout")}, ""),
    ("after a merge it is none", {"facts": closed("", RequestState.MERGED)}, ""),
    ("of one that is open again it is none", {"facts": request(), "line": ON_RECORD}, ""),
    ("of another package it is none",
     {"line": replace(ON_RECORD, declined={"sites/b": "tree-b"})}, ""),
    ("resumed earlier", {"facts": closed(), "decisions": [resume(4)]}, BY_ANN),
    ("resumed", {"facts": closed(), "decisions": [resume(6)]}, ""),
    ("on record, and resumed", {"line": ON_RECORD, "decisions": [resume(6, "prod")]}, ""),
    ("resumed for the variant", {"facts": closed(), "decisions": [resume(6, "prod", "a")]}, ""),
    ("resumed for another stage", {"facts": closed(), "decisions": [resume(6, "dev")]}, BY_ANN),
    ("resumed for another variant",
     {"facts": closed(), "decisions": [resume(6, "prod", "b")]}, BY_ANN),
]  # fmt: skip


@pytest.mark.parametrize(("_", "given", "sentence"), CLOSINGS, ids=map(itemgetter(0), CLOSINGS))
def test_a_closing(_, given, sentence):
    reviews, removal = ask(**given)
    hold = reviews.find_hold(removal)
    shown = (hold.reason, hold.message) if hold is not None else None
    assert shown == ((Reason.REQUEST_CLOSED, sentence) if sentence else None)
    plan = PlannedSet(
        namespace="default", policy="monitoring", stage="prod", repository="edge",
        state=removal.repository_state, ref=REF, removals=(removal,),
    )  # fmt: skip
    assert [it.is_declined for it in reviews.complete_plans([plan])] == [bool(sentence)]


REVIEWS = [
    ("by an approver", [review("ann", REJECTED)], True),
    ("beside a later comment", [review("ann", REJECTED), review("ann", "commented", minute=2)],
     True),
    ("beside an approval of somebody else", [review("ann", REJECTED), review("bob", minute=2)],
     True),
    ("of a commit that is gone", [review("ann", REJECTED, head="c9")], True),
    ("of a commit that had the package it does not", [review("ann", REJECTED, head="c2")], False),
    ("by somebody else it does not", [review("eve", REJECTED)], False),
    ("dismissed it does not", [review("ann", REJECTED, dismissed=True)], False),
    ("until the person approves", [review("ann", REJECTED), review("ann", minute=2)], False),
]  # fmt: skip


@pytest.mark.parametrize(("_", "reviews", "is_held"), REVIEWS, ids=map(itemgetter(0), REVIEWS))
def test_a_request_for_changes_holds(_, reviews, is_held):
    reviews, removal = ask(request(reviews, TREES))
    hold = reviews.find_hold(removal)
    sentence = gate_wording.describe_requested_changes("signed", [(f"{HOST}/ann", LINK)])
    shown = (hold.reason, hold.message, hold.since) if hold is not None else None
    assert shown == ((Reason.CHANGES_REQUESTED, sentence, at(1)) if is_held else None)
    assert not reviews.find_declined(removal)


UNKNOWN = f"approval by {HOST}/eve does not count: not an approver of group sre"
ELSEWHERE = f"approval by {HOST}/ann is for another tree of the branch"
APPROVALS = [
    ("nobody approved", [], {}, "signed: 0 of 1 approval"),
    ("an approver approved the branch", [review("ann")], {}, ""),
    ("an approver approved a commit that had the package", [review("ann", head="c2")], {},
     f"signed: 0 of 1 approval; {ELSEWHERE}"),
    ("an approver approved a commit before the package was there", [review("ann", head="c3")], {},
     f"signed: 0 of 1 approval; {ELSEWHERE}"),
    ("an approver approved a commit that nobody has", [review("ann", head="c9")], {},
     f"signed: 0 of 1 approval; {ELSEWHERE}"),
    ("somebody else approved", [review("eve")], {},
     f"signed: 0 of 1 approval; {UNKNOWN}"),
    ("the approval was dismissed", [review("ann", dismissed=True)], {}, "signed: 0 of 1 approval"),
    ("one of two approved", [review("ann")], {"at_least": 2},
     f"signed: 1 of 2 approvals (by {HOST}/ann)"),
    ("two approved", [review("ann"), review("bob")],
     {"at_least": 2, "aliases": {f"{HOST}/ann": "ann", f"{HOST}/bob": "bob"}}, ""),
    ("the approval has expired", [review("ann")], {"expires": timedelta(minutes=20)},
     "signed: 0 of 1 approval"),
    ("the approval has not expired", [review("ann")], {"expires": timedelta(minutes=40)}, ""),
]  # fmt: skip


def ask_about_branch(facts, rule=RULE, editors=(), removed=("sites/a",)) -> Hold | None:
    """The hold of the removal of `a`, whose branch has the packages."""
    _, removal = ask(facts)
    branch = SetState(
        ref=REF, commit=commit_id("c1"), tree="tree-of-c1", timestamp=0, base="b",
        policy="default/monitoring", stage="prod",
        removed_trees=dict.fromkeys(removed, "t"),
        editors=frozenset(editors),
    )  # fmt: skip
    state = replace(removal.repository_state, sets={REF: branch})
    reviews = review_by([StageRule("prod", requires=(rule,))], [state])
    hold: Hold | None = reviews.find_hold(replace(removal, repository_state=state))
    return hold


@pytest.mark.parametrize(
    ("_", "given", "rule", "sentence"), APPROVALS, ids=map(itemgetter(0), APPROVALS)
)
def test_a_removal_waits_for_the_approvals_of_its_stage(_, given, rule, sentence):
    hold = ask_about_branch(request(given, TREES), replace(RULE, **rule))
    shown = (hold.reason, hold.message, hold.who) if hold is not None else None
    advice = f"{sentence}; approve pull request 7 ({LINK})"
    expected = (Reason.APPROVAL_MISSING, advice, "an approver of group sre")
    assert shown == (expected if sentence else None)


def test_an_approval_dated_ahead_counts_later():
    hold = ask_about_branch(request([review("ann", minute=90)], TREES))
    assert hold is not None
    assert (hold.reason, hold.until) == (Reason.FROM_THE_FUTURE, at(85))


def test_a_removal_without_a_request_waits_for_approvals_too():
    hold = ask_about_branch(None)
    assert hold is not None
    assert hold.reason == Reason.APPROVAL_MISSING


def test_a_package_joins_the_branch_before_it_is_reviewed():
    assert ask_about_branch(request([], TREES), removed=("sites/b",)) is None


def test_an_editor_of_the_branch_does_not_approve_it():
    separate = replace(RULE, separation=True)
    given = request([review("ann")], TREES)
    assert ask_about_branch(given, separate) is None
    assert ask_about_branch(given, separate, editors=["ann"]) is not None
    # Nothing tells by address whether a login is one of them.
    assert ask_about_branch(given, separate, editors=["x@example.com"]) is None


def test_a_stage_without_approvers_has_nobody_who_may_hold():
    reviews, _ = ask()
    facts = request([review("ann", REJECTED)], TREES)
    shown = replace(forge(), requests={OWNER.find_ref("dev"): facts})
    state = RepositoryState(remote=REMOTE, branch=MAIN, refs={}, forge=shown)
    _, removal = ask(stage="dev")
    assert reviews.find_requested_changes(replace(removal, repository_state=state)) is None
