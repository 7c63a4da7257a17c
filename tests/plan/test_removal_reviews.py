"""Pull requests that remove packages: what a closing and a request for changes hold."""

from operator import itemgetter

import pytest
from forge_states import HOST, MAIN, REMOTE, at, commit_id, forge, request, review

from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.record_objects import DecisionSpec
from fanout.gates import gate_wording
from fanout.gates.gate_rules import ApprovalRule, StageRule
from fanout.gates.record_facts import DecisionFacts
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.pull_requests.removal_requests import RemovalReviews
from fanout.plan.records.policy_status import RequestLine
from fanout.plan.removal.removal_drafts import DraftedRemoval, RemovalDraftOwner, RemovalDraftPlan
from fanout.values import replace

OWNER = RemovalDraftOwner("default", "default", "monitoring")
REF = OWNER.find_ref("prod")
RULE = ApprovalRule(
    "signed", 1, frozenset({"ann", "bob"}), ("sre",), aliases={f"{HOST}/ann": "ann"}
)
PROD = StageRule("prod", requires=(RULE,))
REJECTED = "changes requested"
COMMAND = "fanout resume monitoring --stage prod --reason WHY"
LINK = request().request.url
A = "to remove sites/a"
# Of the reviewed commits: `c1` removes a, `c2` removes another package.
TREES = {"c1": {"sites/b": "tree-b"}, "c2": {"sites/a": "tree-a"}}


def ask(facts=None, line=None, decisions=(), stage="prod", present=True):
    """The reviews to the removal of `a`, and the removal."""
    shown = replace(forge(), requests={REF: facts} if facts is not None else {})
    refs = {REF: commit_id("c1")} if present else {}
    state = RepositoryState(remote=REMOTE, branch=MAIN, refs=refs, forge=shown)
    removal = DraftedRemoval(
        variant="a", stage=stage, repository="edge", repository_state=state, path="sites/a",
        tree="tree-a", reason="",
    )  # fmt: skip
    lines = {(state.identity, REF): line} if line is not None else {}
    reviews = RemovalReviews(owner=OWNER, lines=lines, decisions=decisions, stage_rules=[PROD])
    return reviews, removal


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
    said = (hold.reason, hold.message) if hold is not None else None
    assert said == ((Reason.REQUEST_CLOSED, sentence) if sentence else None)
    plan = RemovalDraftPlan(
        namespace="default", policy="monitoring", stage="prod", repository="edge",
        state=removal.repository_state, ref=REF, packages=(removal,),
    )  # fmt: skip
    assert [it.is_declined for it in reviews.mark_declined([plan])] == [bool(sentence)]


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
    said = (hold.reason, hold.message, hold.since) if hold is not None else None
    assert said == ((Reason.CHANGES_REQUESTED, sentence, at(1)) if is_held else None)
    assert not reviews.find_declined(removal)


def test_a_stage_without_approvers_has_nobody_who_may_hold():
    reviews, _ = ask()
    facts = request([review("ann", REJECTED)], TREES)
    shown = replace(forge(), requests={OWNER.find_ref("dev"): facts})
    state = RepositoryState(remote=REMOTE, branch=MAIN, refs={}, forge=shown)
    _, removal = ask(stage="dev")
    assert reviews.find_requested_changes(replace(removal, repository_state=state)) is None
