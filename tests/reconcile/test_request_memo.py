"""When what was read about a head branch still holds."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fanout.api.promotion_policy import MergeStyle
from fanout.plan.observation.branch_rules import BranchFacts, RequiredStatus
from fanout.plan.observation.observed_request import (
    ObservedRequest,
    ObservedReview,
    RepositoryFacts,
    RepositoryName,
    RequestFacts,
    RequestMatch,
    RequestState,
    ReviewVerdict,
)
from fanout.reconcile.pull_requests.request_memo import (
    BranchMemo,
    HeadMemo,
    HostMemo,
    OtherRequestMemo,
    RequestMemos,
    SettingsMemo,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
NAME = RepositoryName("Ada", "edge")
REF, COMMIT, BASE = "refs/heads/drafts/default/a", "c" * 40, "b" * 40


def request(**fields: Any) -> ObservedRequest:
    values = {
        "number": 7, "url": "https://git.example.com/Ada/edge/pulls/7", "state": RequestState.OPEN,
        "is_draft": False, "title": "T", "text": "", "author": "bot",
        "labels": frozenset({"b", "a"}), "head_repository": NAME,
        "head_branch": "drafts/default/a", "head_commit": COMMIT, "base_branch": "main",
        "updated": NOON, **fields,
    }  # fmt: skip
    return ObservedRequest(**values)


def head_memo(read: float = 60, **fields: Any) -> HeadMemo:
    """What was read `read` seconds after the last change."""
    review = ObservedReview("ann", ReviewVerdict.APPROVED, COMMIT, NOON, is_dismissed=False)
    values = {
        "facts": RequestFacts(request=request(), reviews=(review,)),
        "listed_commit": COMMIT, "base_commit": BASE, "read": NOON + timedelta(seconds=read),
        **fields,
    }  # fmt: skip
    return HeadMemo(**values)


def facts_of(**fields: Any) -> RequestFacts:
    return RequestFacts(request=request(**fields))


ROWS = [
    ("nothing changed", head_memo(), {}, True),
    ("it is on record", head_memo(), {"number": 7}, True),
    ("read three seconds after the change", head_memo(3), {}, True),
    ("read two seconds after the change", head_memo(2), {}, False),
    ("read in the second of the change", head_memo(0), {}, False),
    ("the branch has another commit", head_memo(), {"listed_commit": "d" * 40}, False),
    ("the branch was deleted", head_memo(), {"listed_commit": ""}, False),
    ("it was deleted before", head_memo(listed_commit=""), {"listed_commit": ""}, True),
    ("the target branch moved", head_memo(), {"base_commit": "d" * 40}, False),
    ("the Repository names another branch", head_memo(), {"base_branch": "trunk"}, False),
    ("another request is on record", head_memo(), {"number": 8}, False),
    (
        "the host still shows the head before a push",
        head_memo(facts=facts_of(head_commit="d" * 40)),
        {},
        False,
    ),
    (
        "a closed one keeps the head that it had",
        head_memo(facts=facts_of(head_commit="d" * 40, state=RequestState.CLOSED)),
        {},
        True,
    ),
    ("other people's requests are there", head_memo(foreign_requests=(request(),)), {}, False),
    ("another one was closed in its place", head_memo(), {"earlier": (3,)}, False),
    ("there is none", head_memo(facts=None), {}, True),
    ("there was none, and one is on record", head_memo(facts=None), {"number": 7}, False),
]


@pytest.mark.parametrize(
    ("memo", "listed", "is_current"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_changed_head_is_read_again(memo, listed, is_current):
    values = {"listed_commit": COMMIT, "base_commit": BASE, "base_branch": "main"}
    recorded = {"number": None, "earlier": ()}
    assert memo.is_current(**{**values, **recorded, **listed}) is is_current


def test_facts_of_an_unchanged_request_are_not_read_again():
    memo = head_memo()
    moved = request(base_branch="trunk")
    facts = memo.find_facts(moved, ())
    assert facts is not None
    assert (facts.request, facts.reviews) == (moved, memo.facts.reviews if memo.facts else ())
    assert memo.find_facts(request(updated=NOON + timedelta(seconds=1)), ()) is None
    assert memo.find_facts(request(number=8), ()) is None
    assert memo.find_facts(moved, (3,)) is None, "reviews of another request belong to it now"
    assert head_memo(1).find_facts(moved, ()) is None


def test_a_search_marks_what_it_shows():
    host = HostMemo(login="bot")
    memo = host.repository(NAME)
    memo.heads[REF] = head_memo()
    later = NOON + timedelta(minutes=5)
    host.mark_changed([RequestMatch(RepositoryName("ada", "edge"), 7, NOON)])
    assert memo.heads[REF] == head_memo()
    host.mark_changed([RequestMatch(RepositoryName("ada", "other"), 7, later)])
    assert memo.heads[REF] == head_memo()
    host.mark_changed([RequestMatch(NAME, 7, later), RequestMatch(NAME, 8, later)])
    assert memo.heads[REF].find_facts(request(), ()) is None
    assert memo.unread_numbers == {8}


def test_stored_memos_are_read_by_the_next_process(tmp_path):
    memos = RequestMemos(tmp_path, "1")
    host = memos.host("account")
    host.login, host.searched, host.has_changed = "bot", NOON, True
    memo = host.repository(NAME)
    closed = facts_of(closed=NOON, state=RequestState.CLOSED, head_repository=None)
    memo.heads = {
        REF: head_memo(),
        f"{REF}b": head_memo(facts=closed),
        f"{REF}c": head_memo(facts=None),
    }
    memo.unread_numbers = {3}
    rules = BranchFacts(
        is_protected=True,
        required_statuses=frozenset({RequiredStatus("fanout", "fanout-app")}),
        required_approvals=None,
        may_push=None,
        requires_signatures=None,
        allowed_styles=frozenset({MergeStyle.REBASE}),
    )
    styles = frozenset({MergeStyle.SQUASH})
    repository = RepositoryFacts(NAME, False, styles)
    memo.settings = SettingsMemo(repository=repository, branch=rules, base_branch="main", read=NOON)
    memo.rules = BranchMemo(branch=None, base_branch="main", read=NOON)
    memo.others = {
        12: OtherRequestMemo(
            head_commit=COMMIT, base_commit=BASE, changed_paths=frozenset({"b", "a"}), status=""
        )
    }
    memo.listing_digest = "d"
    memos.store("account")
    other = RequestMemos(tmp_path, "1").host("account")
    assert (other.login, other.searched) == ("bot", NOON)
    assert other.repositories == host.repositories
    assert RequestMemos(tmp_path, "2").host("account") == HostMemo()
    assert RequestMemos(tmp_path, "1").host("another account") == HostMemo()
