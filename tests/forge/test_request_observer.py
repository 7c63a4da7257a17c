"""What a pass sees of the pull requests on a real Gitea."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from forge_fleet import ForgeFleet
from forge_proxy import Fault, proxying
from gitea_server import Gitea

from fanout.cli.startup import Program
from fanout.errors import Denied, RateLimited, Unavailable
from fanout.plan.observation.observed_request import RequestState, ReviewVerdict
from fanout.plan.observation.repository_state import RepositoryState
from fanout.reconcile.pass_scope import PassMode

pytestmark = pytest.mark.forge

STAGES = "drafts/default/_stages/default.monitoring"
HEAD = f"{STAGES}/dev"
REF = f"refs/heads/{HEAD}"


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """A company whose first drafts are written."""
    made = ForgeFleet.on(
        gitea, tmp_path / "fleet", {"ams": ("dev", "edge"), "ber": ("dev", "edge")}
    )
    assert made.sweep().code == 0
    return made


@pytest.fixture
def program(fleet: ForgeFleet) -> Iterator[Program]:
    with fleet.opened() as opened:
        yield opened


def open_request(fleet: ForgeFleet, head: str = HEAD, base: str = "main", by: str = "") -> int:
    opening = {"head": head, "base": base, "title": f"From {head} to {base}"}
    path = f"{fleet.path('edge')}/pulls"
    return int(fleet.gitea.post(path, opening, by=by or fleet.bot)["number"])


def read_state(program: Program) -> RepositoryState:
    """The state of the one downstream repository in a pass of a long-running program."""
    now = datetime.now(UTC).replace(microsecond=0)
    planned = program.reconciler.plan_pass(program.read_declared(), now, PassMode())
    (state,) = {id(it): it for it in planned.policies[0].repository_states}.values()
    return state


def read_forge(program: Program) -> Any:
    forge = read_state(program).forge
    assert forge is not None
    assert forge.failure is None
    return forge


def test_a_stage_shares_a_draft_where_there_is_a_forge(fleet):
    assert fleet.repos["edge"].drafts() == [HEAD.removeprefix("drafts/default/")]


def test_a_draft_without_a_request(fleet, program):
    forge = read_forge(program)
    assert (forge.host, forge.login) == (fleet.gitea.host, fleet.bot)
    assert (forge.requests, forge.foreign_requests, forge.branch) == ({}, {}, None)


def test_a_request_its_reviews_and_the_reviewed_packages(fleet, program):
    number = open_request(fleet)
    reviewed = fleet.repos["edge"].refs()[REF]
    fleet.review("edge", number, "ann")
    pushed = fleet.repos["edge"].commit(HEAD, {"sites/ams/note.txt": "by ann\n"}, by="ann")
    fleet.review("edge", number, "bob", "REQUEST_CHANGES")
    forge = read_forge(program)
    facts = forge.requests[REF]
    assert (facts.request.number, facts.request.state) == (number, RequestState.OPEN)
    assert [(it.reviewer, it.verdict, it.commit) for it in facts.reviews] == [
        ("ann", ReviewVerdict.APPROVED, reviewed),
        ("bob", ReviewVerdict.CHANGES_REQUESTED, pushed),
    ]
    repo = fleet.repos["edge"]
    assert facts.reviewed_trees == {
        commit: {
            path: repo.git("rev-parse", f"{commit}:{path}").strip()
            for path in ("sites/ams", "sites/ber")
        }
        for commit in (reviewed, pushed)
    }
    assert forge.branch.may_push
    assert not forge.repository.is_archived


def test_who_closed_a_request_and_that_it_is_open_again(fleet, program):
    number = open_request(fleet)
    fleet.close("edge", number, "ann")
    # Not on record and closed: nobody knows it.
    assert read_forge(program).requests == {}
    fleet.reopen("edge", number, "ann")
    assert read_forge(program).requests[REF].request.number == number


def test_a_request_to_another_branch_is_foreign(fleet, program):
    fleet.repos["edge"].commit("other", {"a.txt": "a\n"}, by="ann")
    foreign = open_request(fleet, base="other", by="ann")
    forge = read_forge(program)
    assert forge.requests == {}
    assert [it.number for it in forge.foreign_requests[REF]] == [foreign]
    number = open_request(fleet)
    forge = read_forge(program)
    assert forge.requests[REF].request.number == number
    assert [it.number for it in forge.foreign_requests[REF]] == [foreign]


def test_equal_observations_are_the_same_object(fleet, program):
    number = open_request(fleet)
    first = read_state(program)
    assert read_state(program) is first
    fleet.label("edge", number, "fanout/hold")
    second = read_state(program)
    assert second is not first
    assert second.forge is not None
    assert second.forge.requests[REF].request.labels == {"fanout/hold"}


FAILURES = [
    ("the right is missing", 403, Denied, "ForgeDenied", "the right"),
    ("the token has expired", 401, Denied, "ForgeDenied", "renew the secret gitea"),
    ("a 404 for a repository that Git lists", 404, Denied, "ForgeDenied", "access"),
    ("too many calls", 429, RateLimited, "RateLimited", ""),
    ("an error of the server", 502, Unavailable, "ForgeUnavailable", ""),
]


@pytest.mark.parametrize(
    ("status", "family", "reason", "remedy"),
    [row[1:] for row in FAILURES],
    ids=[row[0] for row in FAILURES],
)
def test_what_fails_is_the_failure_of_the_forge(gitea, tmp_path, status, family, reason, remedy):
    """Git is served, so drafts and publications are seen as ever."""
    with proxying(gitea.url) as proxy:
        fleet = ForgeFleet.on(gitea, tmp_path / "fleet", {"ams": ("dev", "edge")}, api=proxy.api)
        assert fleet.sweep().code == 0
        with fleet.opened() as program:
            proxy.fail(*[Fault(status=status)] * 9)
            state = read_state(program)
            assert state.failure is None
            assert set(state.stage_drafts) == {REF}
            assert state.forge is not None
            failure = state.forge.failure
            assert isinstance(failure, family)
            assert failure.reason == reason
            assert remedy in failure.remedy
