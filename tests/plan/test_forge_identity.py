"""Accounts that have several names, wherever what they did is compared with what fanout did."""

import pytest
from forge_states import MAIN, REF, REMOTE, forge, request, review, status

from fanout.plan.evidence.review_approvals import find_rejections, find_standing_approvals
from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.observed_request import RequestState, find_newest_statuses
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.pull_requests.request_holds import is_closed_by_person
from fanout.values import replace

APP = ForgeIdentity("fanout[bot]", frozenset({"fanout"}))
TOKEN = ForgeIdentity("project_7_bot_1a2b", frozenset({"fanout token"}))
STRICT = ForgeIdentity("Fanout", ignores_case=False)
NAMES = [
    ("as it is written", APP, "fanout[bot]", True),
    ("as another API writes it", APP, "fanout", True),
    ("in another case", APP, "Fanout[Bot]", True),
    ("another bot", APP, "other[bot]", False),
    ("a longer name", APP, "fanout2", False),
    ("nobody is named", APP, "", False),
    ("the bot user of a token", TOKEN, "Project_7_bot_1a2b", True),
    ("the name of the token", TOKEN, "fanout token", True),
    ("a host that minds the case", STRICT, "fanout", False),
    ("and the very name there", STRICT, "Fanout", True),
    ("no account is known", ForgeIdentity(), "", False),
]


@pytest.mark.parametrize(
    ("description", "account", "name", "expected"), NAMES, ids=[it[0] for it in NAMES]
)
def test_an_account_is_known_by_its_names(description, account, name, expected):
    assert account.is_named(name) is expected, description


@pytest.mark.parametrize(
    ("closed_by", "expected"),
    [("FANOUT", False), ("fanout[bot]", False), ("ann", True), ("", True)],
)
def test_a_request_that_fanout_closed_is_not_declined_by_whatever_name(closed_by, expected):
    facts = request()
    facts = replace(
        facts, request=replace(facts.request, state=RequestState.CLOSED), closed_by=closed_by
    )
    shown = replace(forge(facts), account=APP)
    state = RepositoryState(remote=REMOTE, branch=MAIN, refs={}, forge=shown)
    assert is_closed_by_person(state, REF) is expected


def test_reviews_of_one_person_are_one_in_any_case():
    reviews = [review("Ann", "changes requested"), review("ann", minute=2)]
    assert find_rejections(reviews) == []
    assert [it.reviewer for it in find_standing_approvals(reviews)] == ["ann"]


def test_statuses_of_one_account_are_one_in_any_case():
    assert [it.creator for it in find_newest_statuses([status(creator="CI"), status()])] == ["CI"]
