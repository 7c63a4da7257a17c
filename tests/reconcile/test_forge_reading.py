"""Which requests are read again although no search shows a change."""

from datetime import datetime
from types import SimpleNamespace
from typing import Any

import pytest
from forge_states import MAIN, REF, REMOTE, at, commit_id, request

from fanout.plan.observation.forge_identity import ForgeIdentity
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Mergeability,
    MergeabilityKind,
    MergeRoute,
)
from fanout.plan.observation.observed_request import RepositoryName, RequestState
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.records.policy_status import RequestLine
from fanout.reconcile.pull_requests.forge_reading import ForgeReader, HostedRepository
from fanout.reconcile.pull_requests.request_memo import HeadMemo, HostMemo
from fanout.values import replace

EDGE = RepositoryName("org", "edge")
NO_GIT: Any = None  # no review is about a commit of it


class Merger(SimpleNamespace):
    """A forge that merges, and counts what it is asked."""

    def merge_request(self, *_: object) -> None:
        raise AssertionError("nothing is merged while a repository is read")


def readings_of(
    *, checks_when_merging: bool = True, line_accepted: datetime | None = None, **fields: object
) -> int:
    """Return how often a settled request is asked about in a pass in which nothing changed."""
    facts = request()
    shown = replace(facts.request, head_repository=EDGE, **fields)
    head = HeadMemo(
        facts=replace(facts, request=shown),
        listed_commit=shown.head_commit,
        base_commit=commit_id("h1"),
        read=at(60),
    )
    asked: list[str] = []

    def ask(*_: object) -> tuple[()]:
        asked.append("requests")
        return ()

    def read(*_: object) -> object:
        asked.append("request")
        return shown

    memo = HostMemo(login="fanout")
    memo.repository(EDGE).heads[REF] = head
    repository = HostedRepository(
        state=RepositoryState(
            remote=REMOTE, branch=MAIN, refs={REF: shown.head_commit}, head=commit_id("h1")
        ),
        recorded={REF: RequestLine(number=7, state="open", accepted=line_accepted)},
        granted_heads=frozenset(),
        status_subjects=(),
        owned_paths=None,
        forge=Merger(
            host="git.example.com",
            identify=ForgeIdentity,
            open_requests=ask,
            request=read,
            repository=lambda _: SimpleNamespace(is_archived=False),
            checks_when_merging=checks_when_merging,
        ),
        name=EDGE,
    )
    reader = ForgeReader(git=NO_GIT, install="default", memo=memo, instant=at(61),
                         repository=repository)  # fmt: skip
    state = reader.read_state()
    assert state.checks_when_merging is checks_when_merging
    return asked.count("requests")


CASES = [
    ("nothing is said", {}, 0),
    ("clean", {"mergeability": Mergeability(MergeabilityKind.CLEAN, "clean")}, 0),
    ("a rule is not met", {"mergeability": Mergeability(MergeabilityKind.BLOCKED, "blocked")}, 1),
    ("it is in a queue", {"accepted": Accepted(MergeRoute.QUEUE, 1)}, 1),
    ("it was accepted, and the host has not updated it", {"line_accepted": at(60)}, 1),
    (
        "an attempt makes the host compute",
        {"mergeability": Mergeability(MergeabilityKind.CHECKING, "unchecked")},
        0,
    ),
    (
        "the host computes by itself",
        {
            "mergeability": Mergeability(MergeabilityKind.CHECKING, "unknown"),
            "checks_when_merging": False,
        },
        1,
    ),
    (
        "it is closed",
        {
            "state": RequestState.CLOSED,
            "mergeability": Mergeability(MergeabilityKind.BLOCKED, "not_open"),
        },
        0,
    ),
]


@pytest.mark.parametrize(("description", "fields", "count"), CASES, ids=[it[0] for it in CASES])
def test_a_request_that_the_host_holds_back_is_read_in_each_pass(description, fields, count):
    assert readings_of(**fields) == count, description
