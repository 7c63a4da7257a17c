"""What one GraphQL query shows of repositories on the tests' GitHub, beside what REST shows."""

from datetime import UTC, datetime

import pytest
from github_place import BOT, NAME, Place
from github_repository import Rules

from fanout.forge.github_batch import REPOSITORIES, build_query
from fanout.plan.observation.merge_outcome import Accepted, MergeRoute
from fanout.plan.observation.observed_request import CommitStatus, RepositoryName, StatusState

pytest.importorskip("graphql")

from github_graphql import SCHEMA, count_nodes
from graphql import parse, validate


def poll(place: Place, *names: RepositoryName):
    return place.forge.poll_requests(names or (NAME,))


def fill(place: Place) -> None:
    """Give the site a request with everything that belongs to one."""
    opened, github = place.open(), place.site.github
    github.review(place.site.repository.pulls[1], "ann", "CHANGES_REQUESTED")
    place.site.pass_time(seconds=1)
    github.dismiss(github.review(place.site.repository.pulls[1], "bob"))
    place.site.ask("POST", "/issues/1/labels", {"labels": ["fanout/hold"]})
    pending = CommitStatus(
        "fanout", StatusState.PENDING, "", datetime.now(UTC), "soak", "https://x"
    )
    place.forge.set_status(NAME, opened.head_commit, pending)
    ci = github.app("ci")
    for name, conclusion in (("e2e", "failure"), ("lint", "neutral"), ("unit", None)):
        place.site.pass_time(seconds=1)
        github.check(place.site.repository, opened.head_commit, ci, name, conclusion)


def test_a_poll_shows_what_rest_shows(place):
    fill(place)
    place.seen(place.forge.open_requests(NAME)[0])  # computes whether it can be merged
    _, polled, instant = poll(place)
    shown = polled[NAME]
    [request] = shown.requests
    assert request == place.forge.request(NAME, 1)
    assert request.author == BOT
    assert shown.reviews[1] == tuple(place.forge.reviews(NAME, 1))
    by_name = {it.context: it for it in place.forge.statuses(NAME, request.head_commit)}
    assert {
        it.context: (it.state, it.creator, it.instant) for it in shown.statuses[request.head_commit]
    } == {name: (it.state, it.creator, it.instant) for name, it in by_name.items()}
    assert instant is not None


def test_polled_requests_are_read_without_a_call(place):
    fill(place)
    forge, polled, _ = poll(place)
    calls = len(place.site.github.calls)
    [request] = forge.open_requests(NAME)
    assert forge.reviews(NAME, 1)
    assert forge.statuses(NAME, request.head_commit)
    assert len(place.site.github.calls) == calls
    assert polled.keys() == {NAME}
    # A person has pushed meanwhile: of the new head nothing was polled.
    commit = place.site.disk.commit("draft", {"c.txt": "c\n"})
    assert forge.statuses(NAME, commit) == ()
    assert len(place.site.github.calls) > calls


def test_a_query_is_for_fifty_repositories(place):
    names = [NAME]
    for number in range(REPOSITORIES + 1):
        place.site.github.repository(f"acme/r{number}")
        names.append(RepositoryName("acme", f"r{number}"))
    calls = len(place.site.github.calls)
    _, polled, _ = poll(place, *names)
    assert polled.keys() == set(names)
    assert place.site.github.calls[calls:] == ["POST /graphql 200"] * 2


def test_the_query_for_fifty_repositories_is_within_the_limit_of_nodes():
    names = [RepositoryName("acme", f"r{number}") for number in range(REPOSITORIES)]
    document, variables = build_query(names)
    assert not validate(SCHEMA, parse(document))
    nodes, _ = count_nodes(parse(document), dict(variables))
    assert nodes < 500_000


def test_a_repository_that_is_hidden_leaves_the_others(place):
    fill(place)
    hidden = place.site.github.repository("other/secret", is_private=True)
    names = (RepositoryName("other", "secret"), NAME, RepositoryName("acme", "gone"))
    _, polled, _ = poll(place, *names)
    assert polled.keys() == {NAME}
    assert hidden.is_private


def test_a_repository_with_more_requests_than_a_query_shows_is_left_out(place):
    for number in range(31):
        place.site.disk.git("branch", f"d{number}", "draft")
        place.site.open(head=f"d{number}")
    forge, polled, _ = poll(place)
    assert polled == {}
    assert len(forge.open_requests(NAME)) == 31


def test_more_reviews_than_a_query_shows_are_read_by_rest(place):
    place.open()
    for _ in range(101):
        place.site.github.review(place.site.repository.pulls[1], "ann")
    forge, polled, _ = poll(place)
    assert polled[NAME].reviews == {}
    assert len(forge.reviews(NAME, 1)) == 101


def test_a_request_in_the_merge_queue_is_accepted_with_its_position(place):
    opened = place.open()
    repository = place.site.repository
    repository.rulesets["main"] = Rules(queue=True)
    document = """mutation($pull: ID!) {
      enqueuePullRequest(input: {pullRequestId: $pull}) { mergeQueueEntry { id } }
    }"""
    place.seen(opened)
    place.forge._ask(document, {"pull": repository.pulls[1].node})
    _, polled, _ = poll(place)
    assert polled[NAME].requests[0].accepted == Accepted(MergeRoute.QUEUE, 1, "queued")
