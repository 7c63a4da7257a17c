"""A host that queues merges, or says what it would refuse: played on a real Gitea.

Gitea does neither. What it answers is changed as another host would answer.
"""

from pathlib import Path

import pytest
from forge_fleet import ForgeFleet
from gitea_server import Gitea

from fanout.forge import gitea as gitea_client
from fanout.forge.answer_fields import AnswerObject
from fanout.forge.gitea import GiteaForge
from fanout.plan.observation.merge_outcome import (
    Accepted,
    Mergeability,
    MergeabilityKind,
    MergeOutcome,
    MergeRoute,
)
from fanout.plan.observation.observed_request import (
    GuardedMerge,
    ObservedRequest,
    RepositoryName,
    RequestState,
)
from fanout.values import replace

pytestmark = pytest.mark.forge
WORDS = "in the merge queue at position 2 (AWAITING_CHECKS)"


class PlayedHost:
    """What another host would say of the requests; `merges` are what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.queued: set[int] = set()
        self.mergeability: Mergeability | None = None
        self.merges: list[int] = []
        read, merge = gitea_client._read_request, GiteaForge.merge_request

        def read_request(answer: AnswerObject) -> ObservedRequest:
            request = read(answer)
            if request.state is not RequestState.OPEN:
                return request
            queued = Accepted(MergeRoute.QUEUE, 2, "AWAITING_CHECKS")
            accepted = queued if request.number in self.queued else None
            return replace(request, accepted=accepted, mergeability=self.mergeability)

        def merge_request(
            forge: GiteaForge, repository: RepositoryName, asked: GuardedMerge
        ) -> MergeOutcome:
            self.merges.append(asked.number)
            if self.mergeability is not None:
                return merge(forge, repository, asked)
            self.queued.add(asked.number)
            return Accepted(MergeRoute.QUEUE, 2, "AWAITING_CHECKS")

        monkeypatch.setattr(gitea_client, "_read_request", read_request)
        monkeypatch.setattr(GiteaForge, "merge_request", merge_request)


@pytest.fixture
def fleet(gitea: Gitea, tmp_path: Path) -> ForgeFleet:
    return ForgeFleet.on(gitea, tmp_path, {"ams": ("dev", "edge")})


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> PlayedHost:
    return PlayedHost(monkeypatch)


def test_an_accepted_merge_is_a_wait_until_git_shows_it(
    fleet: ForgeFleet, host: PlayedHost
) -> None:
    for _ in range(2):
        swept = fleet.later(minutes=1).sweep()
        assert swept.code == 0, swept.err
    assert host.merges == [1]
    path = f"{fleet.owner}/edge"
    assert f"waiting: 1 action waits: pull request 1 of {path} is {WORDS}" in swept.err
    assert "merged" not in swept.out
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().out == "nothing to do\n"
        assert fleet.condition("sites/ams") == ("MergeAccepted", f"its pull request 1 is {WORDS}")
    # The merge is not asked for again, and nothing is on record that Git does not show.
    assert host.merges == [1]
    assert set(fleet.published().values()) == {""}
    assert WORDS in " ".join(fleet.run("explain", "monitoring/dev").out.split())
    assert "MergeAccepted" in fleet.run("get", "targets", "-o", "wide").out
    # Its status at the head stays a success: the queue waits for it.
    request = fleet.only_request("edge")
    assert fleet.statuses("edge", request["commit"])["fanout", fleet.bot] == "success"
    fleet.merge("edge", 1, by="bob")
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().code == 0
    assert set(fleet.published().values()) == {"v1"}
    assert "OutOfBand" not in fleet.run("explain", "monitoring").out


def test_a_block_that_the_host_shows_is_a_hold_until_it_shows_none(
    fleet: ForgeFleet, host: PlayedHost
) -> None:
    host.mergeability = Mergeability(MergeabilityKind.CONFLICT, "dirty")
    for _ in range(3):
        assert fleet.later(minutes=1).sweep().code == 0
    reason, sentence = fleet.condition("sites/ams")
    assert (reason, host.merges) == ("ForgeRefuses", [])
    assert sentence == (
        "its pull request 1 cannot be merged now: it conflicts with the branch (dirty)"
    )
    host.mergeability = Mergeability(MergeabilityKind.CLEAN, "clean")
    for _ in range(2):
        assert fleet.later(minutes=1).sweep().code == 0
    assert (host.merges, set(fleet.published().values())) == ([1], {"v1"})
