"""Fleets whose commands are killed at random points come to what an undisturbed one comes to.

Drafts of variants and of stages, edits by people, moves, places that are exchanged, and removals:
by a push, by a branch that people approve, and by a command.
"""

import os
import random
import signal
from collections.abc import Callable
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import pytest
from fleet import PACKAGE, PROMOTION, Fleet
from killing import Killer, killer

KILLS, SEED = int(os.environ.get("KILLS", "12")), int(os.environ.get("SEED", "1"))
KILLS_OF_A_LIFE = 4
ANN = ("--by", "Ann <ann@example.com>")
WHY = ("--reason", "closed", *ANN)
# Without expressions, so that no process waits for a sandbox.
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: monitoring}}
spec:
  draftPer: {draft}
  removalLimit: 100%
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  targets:
{targets}
  stages:
  - {{name: dev}}
  - {{name: prod, after: {{stages: [dev]}}{requires}}}
"""
TARGET = """\
  - repositories: [{{name: edge, packageNames: [{name}]}}]
    template: {{stage: {stage}, downstream: {{repository: {repository}, package: sites/{path}}}}}
"""
APPROVED = ", requires: [{name: signed, approval: {from: [sre]}}]"
Places = dict[str, tuple[str, str, str]]
"""Stage, repository and path of each target."""
PLACES: Places = {
    "ams": ("dev", "edge", "ams"),
    "ber": ("dev", "edge", "ber"),
    "cph": ("dev", "core", "cph"),
    "dub": ("prod", "edge", "dub"),
    "eze": ("prod", "core", "eze"),
    "fra": ("prod", "core", "fra"),
}
MOVED = PLACES | {
    "ams": ("dev", "edge", "ber"),  # two that exchange their places
    "ber": ("dev", "edge", "ams"),
    "cph": ("dev", "edge", "eu/cph"),
}
RunCommand = Callable[..., None]


def declare(fleet: Fleet, draft: str, places: Places, requires: str = "") -> None:
    targets = "".join(
        TARGET.format(name=name, stage=stage, repository=repository, path=path)
        for name, (stage, repository, path) in places.items()
    )
    fleet.write("policy.yaml", POLICY.format(draft=draft, targets=targets, requires=requires))


def build(root: Path, draft: str) -> Fleet:
    root.mkdir()
    fleet = Fleet(root)
    for name in ("blueprints", "edge", "core"):
        fleet.repository(name)
    fleet.release("v1")
    declare(fleet, draft, PLACES)
    fleet.write("promotion.yaml", PROMOTION)
    return fleet


def edit(fleet: Fleet, repository: str, branch: str, path: str) -> None:
    text = PACKAGE["settings.yaml"].replace("15d", "30d")
    fleet.repos[repository].commit(branch, {f"{path}/settings.yaml": text})


def live(fleet: Fleet, draft: str, run: RunCommand) -> None:
    """Publish, edit, move, exchange and remove, each by as many passes as that takes."""
    edge, core = fleet.repos["edge"], fleet.repos["core"]

    def sweep_until(condition: Callable[[], bool]) -> None:
        for _ in range(12):
            fleet.later(minutes=2)
            run("sweep")
            if condition():
                return
        raise AssertionError(f"the sweeps do not come to it: {outcome(fleet)}")

    def are_published(number: int, *paths: str) -> bool:
        tags = {*edge.tags(), *core.tags()}
        return all(f"sites/{path}/v{number}" in tags for path in paths)

    sweep_until(lambda: are_published(1, "ams", "ber", "cph", "dub", "eze", "fra"))
    edit(fleet, "edge", "main", "sites/dub")
    fleet.release("v2")
    fleet.later(minutes=2)
    run("sweep", "--drafts-only")
    # A stage's draft is written when it is released, and published by the same pass.
    own = "sites/ams/monitoring"
    edit(fleet, "edge", f"drafts/default/{own}" if own in edge.drafts() else "main", "sites/ams")
    sweep_until(lambda: are_published(2, "ams", "ber", "cph", "dub", "eze", "fra"))
    declare(fleet, draft, MOVED)
    sweep_until(lambda: are_published(3, "ams", "ber") and "sites/cph/Kptfile" not in core.files())
    # One is removed by a push, one by a branch that a person approves, one by a command.
    remaining = {name: MOVED[name] for name in ("ams", "ber", "dub", "fra")}
    declare(fleet, draft, remaining, APPROVED)
    removal = "_removals/default.monitoring/prod"
    sweep_until(lambda: removal in core.drafts())
    approved = fleet.run("approve", "monitoring", "--stage", "prod", "--removals", *ANN)
    assert approved.code == 0, approved.err
    sweep_until(lambda: "sites/eze/Kptfile" not in core.files() and removal not in core.drafts())
    sweep_until(lambda: "sites/eu/cph/Kptfile" not in edge.files())
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    declare(fleet, draft, {name: remaining[name] for name in ("ams", "dub", "fra")})
    fleet.release("v3")
    fleet.later(minutes=2)
    run("remove", "monitoring", "--all-gone", *WHY)
    fleet.write("promotion.yaml", PROMOTION)
    sweep_until(lambda: are_published(4, "ber") and are_published(3, "dub", "fra"))


def outcome(fleet: Fleet) -> dict[str, object]:
    """Return the files of all branches, the tags, and which revision is published where.

    Without Kptfiles, which name the commit of the upstream repository and its address.
    """
    seen: dict[str, object] = {"published": fleet.published()}
    for name in ("edge", "core"):
        repo = fleet.repos[name]
        files = {
            ref: [
                line
                for line in repo.git("ls-tree", "-r", ref).splitlines()
                if not line.endswith("/Kptfile")
            ]
            for ref in repo.refs("refs/heads/")
        }
        seen[name] = repo.tags(), files
        repo.fsck()
    return seen


@cache
def undisturbed(root: Path, draft: str) -> tuple[int, dict[str, object]]:
    """How many effects the commands have that nobody disturbs, and what they come to."""
    fleet = build(root / f"undisturbed-{draft}", draft)
    effects: list[int] = []
    killing = killer(fleet)
    live(fleet, draft, lambda *line: effects.append(killing.run(0, *line)[1]))
    return sum(effects), outcome(fleet)


def run_killed(killing: Killer, waits: list[int], *line: str) -> None:
    """Run a command, after each kill again; `waits` are numbers of effects until the next kill."""
    while True:
        status, effects = killing.run(waits[0] if waits else 0, *line)
        if status != -signal.SIGKILL:
            break
        del waits[0]
        killing.fleet.later(seconds=10)
    if waits:
        waits[0] = max(1, waits[0] - effects)


@pytest.mark.parametrize("draft", ["Variant", "Stage"])
@pytest.mark.parametrize("seed", range(SEED, SEED + max(KILLS // KILLS_OF_A_LIFE // 2, 1)))
def test_commands_killed_at_random_lose_nothing_of_a_set(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, draft: str, seed: int
):
    total, wanted = undisturbed(tmp_path_factory.getbasetemp(), draft)
    points = sorted(random.Random(seed).sample(range(1, total + 1), KILLS_OF_A_LIFE))
    waits = [points[0], *(after - before for before, after in pairwise(points))]
    fleet = build(tmp_path / "live", draft)
    killing = killer(fleet)
    live(fleet, draft, partial(run_killed, killing, waits))
    assert outcome(fleet) == wanted
    assert wanted["published"] == {"sites/ber": "v3", "sites/dub": "v3", "sites/fra": "v3"}
