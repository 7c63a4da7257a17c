"""What a pass asks of a host, counted in the host's own log: pushes and calls of each repository.

The bars are for each repository and stage, beside the search of the host. What changed on the host
since a pass is read by the next one, which is not counted here.
"""

from collections import Counter
from pathlib import Path

import pytest
from fleet import PROMOTION
from forge_fleet import ForgeFleet
from forge_log import ForgeLog, sweep
from gitea_server import Gitea

POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - objectSelector: {apiVersion: infra.example.com/v1, kind: Cluster}
    template:
      stageExpr: target.metadata.labels.tier
      downstream:
        repositoryExpr: target.spec.repository
        packageExpr: "'sites/' + target.metadata.name"
      injectors: [{kind: ConfigMap, nameExpr: target.metadata.name}]
  stages: [{name: dev}, {name: prod}]
"""
REPOSITORIES, STAGES = ("east", "west", "north"), ("dev", "prod")
SITES = {
    f"{repository}-{stage}-{number}": (stage, repository)
    for repository in REPOSITORIES
    for stage in STAGES
    for number in range(2)
}
SEARCH = "GET /repos/issues/search"

pytestmark = pytest.mark.forge


def build(gitea: Gitea, root: Path, sites: dict[str, tuple[str, str]]) -> ForgeFleet:
    made = ForgeFleet.on(gitea, root, sites)
    made.write("policy.yaml", POLICY)
    made.write("promotion.yaml", PROMOTION.rstrip() + "\n  merge: Manual\n")
    return made


def test_drafts_take_few_pushes_and_calls(gitea: Gitea, tmp_path: Path):
    fleet = build(gitea, tmp_path, SITES)
    log = ForgeLog(fleet)
    log.read()
    with fleet.opened() as program:
        sweep(program)
        first = log.read()
        assert first.pushes == dict.fromkeys(REPOSITORIES, 1)
        # Beside them each repository is asked once for its labels, and lacks the one of holds.
        assert first.calls <= at_most(3) + Counter(dict.fromkeys(REPOSITORIES, 2))
        assert {len(fleet.requests(name)) for name in REPOSITORIES} == {len(STAGES)}

        unchanged = log.rest(program)
        assert (unchanged.of_host, unchanged.pushes) == ([SEARCH], {})

        fleet.site("west-prod-1", "prod", "west", retention="30d")
        sweep(program)
        changed = log.read()
        assert (changed.pushes, set(changed.calls)) == ({"west": 1}, {"west"})


def test_each_status_that_is_waited_for_takes_one_call(gitea: Gitea, tmp_path: Path):
    sites = {name: site for name, site in SITES.items() if site[1] != "north"}
    fleet = build(gitea, tmp_path, sites)
    check = "requires: [{name: ci, commitStatus: {context: ci, by: [ann]}}]"
    fleet.write("policy.yaml", POLICY.replace("{name: dev}", f"{{name: dev, {check}}}"))
    log = ForgeLog(fleet)
    with fleet.opened() as program:
        asked = log.rest(program, waiting=2)
    assert asked.of_host == [SEARCH]
    assert asked.calls == {"east": 1, "west": 1}


def test_a_publication_takes_two_calls_for_each_request(gitea: Gitea, tmp_path: Path):
    sites = {name: site for name, site in SITES.items() if site[0] == "dev"}
    fleet = build(gitea, tmp_path, sites)
    log = ForgeLog(fleet)
    with fleet.opened() as program:
        log.rest(program)
        fleet.write("promotion.yaml", PROMOTION)
        sweep(program)
        publication = log.read()
    assert publication.pushes <= Counter(dict.fromkeys(REPOSITORIES, 2))
    assert publication.calls <= Counter(dict.fromkeys(REPOSITORIES, 2))
    assert set(fleet.published().values()) == {"v1"}


DRAFT = ["PATCH pulls", "POST merge", "POST statuses"]
READY = ["POST merge", "POST statuses"]


@pytest.mark.parametrize(("opens_as_draft", "writes"), [(True, DRAFT), (False, READY)])
def test_a_request_that_waited_is_published_by_few_writes(
    gitea: Gitea, tmp_path: Path, opens_as_draft: bool, writes: list[str]
):
    fleet = build(gitea, tmp_path, {"east-dev-0": ("dev", "east"), "east-dev-1": ("dev", "east")})
    signed = "{name: dev, requires: [{name: signed, approval: {from: [sre]}}]}"
    fleet.write("policy.yaml", POLICY.replace("{name: dev}", signed))
    ann = f"ann@example.com {gitea.host}/ann"
    fleet.write(
        "promotion.yaml",
        PROMOTION.replace("ann@example.com", ann)
        + f"  pullRequest: {{draft: {str(opens_as_draft).lower()}}}\n",
    )
    fleet.protect("east", enable_status_check=True, status_check_contexts=["fanout"])
    log = ForgeLog(fleet)
    with fleet.opened() as program:
        log.rest(program, waiting=1)  # requests of others are listed where the status is required
        request = fleet.only_request("east")
        assert request["draft"] == opens_as_draft
        fleet.review("east", request["number"], "ann")
        fleet.await_checks()
        log.read()
        fleet.calls()
        sweep(program)
        asked = log.read()
        calls = fleet.calls()
    assert set(fleet.published().values()) == {"v1"}
    assert asked.pushes == {"east": 1}
    assert sorted(kinds_of_writes(calls)) == writes
    assert "refs/heads/" + request["head"] not in fleet.repos["east"].refs()


def kinds_of_writes(calls: list[str]) -> list[str]:
    """Method and resource of each call that changes something: "POST merge"."""
    words = [call.split(" ") for call in calls]
    return [
        f"{method} {next(it for it in reversed(path.split('/')) if it.isalpha())}"
        for method, path, _ in words
        if method != "GET"
    ]


def at_most(number: int) -> Counter[str]:
    """So many for each stage of each repository."""
    return Counter({name: number * len(STAGES) for name in REPOSITORIES})
