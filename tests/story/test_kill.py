"""kill -9 at every effect of a pass: the next passes come to what an undisturbed one comes to.

Real processes, one per effect. The world is put back to what it was before each of them, at the
same paths, so that commits can be compared by their ids.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fleet import PROMOTION, Fleet

import fanout

DRIVER = Path(__file__).with_name("kill_driver.py")
BOOK = "fanout/default/default/monitoring"
# Without expressions, so that no process waits for a sandbox; one repository after the other, so
# that the n-th effect is the same in every run.
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositories: [{name: edge, packageNames: [sites/ams]}]
    template: {stage: dev}
  - repositories: [{name: edge, packageNames: [sites/ber]}, {name: core, packageNames: [sites/cph]}]
    template: {stage: prod}
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: prod, after: {stages: [dev], soak: 1h}}
"""
CONFIG = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\nconcurrency: 1\n"


def fan_out(fleet: Fleet) -> None:
    """From nothing: mirrors, records and drafts are made."""


def promote(fleet: Fleet) -> None:
    """All at once: prod is published, dev gets a draft of the next revision, records are kept."""
    fleet.settle()
    fleet.later(minutes=5).report("dev", "v1")
    fleet.settle()
    fleet.release("v2")
    fleet.later(hours=2)


@dataclass
class World:
    """The company before the pass, and what it comes to when nobody disturbs it."""

    fleet: Fleet
    kept: Path
    effects: int
    outcome: dict[str, object]

    def restored(self) -> Fleet:
        shutil.rmtree(self.fleet.root)
        shutil.copytree(self.kept, self.fleet.root, symlinks=True)
        return self.fleet


@dataclass
class Driver:
    """The process whose children are killed."""

    process: subprocess.Popen[str]

    def sweep(self, fleet: Fleet, last: int) -> tuple[int, int]:
        """Sweep in a process that is killed before effect `last`; its status and its effects."""
        line = [
            last, "sweep", "-f", str(fleet.root / "policies"), "--now", fleet.now.isoformat(),
            "--state-dir", str(fleet.root / "state"), "--config", str(fleet.root / "config.yaml"),
        ]  # fmt: skip
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        status, effects = json.loads(self.process.stdout.readline())
        return status, effects


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    house = str(Path(fanout.__file__).parent.parent)
    with subprocess.Popen(
        [sys.executable, str(DRIVER)],
        env={**os.environ, "PYTHONPATH": house},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Driver(process)


def outcome(fleet: Fleet) -> dict[str, object]:
    """All refs of all repositories, and what is remembered of the policy."""
    fleet.settle()
    records = fleet.records()
    status = {path: records.file(BOOK, path) for path in records.files(BOOK) if "status/" in path}
    return {**fleet.refs(), "status": status}


@pytest.fixture(scope="module", params=[fan_out, promote], ids=["fan-out", "promotion"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, driver: Driver
) -> World:
    root = tmp_path_factory.mktemp("company") / "live"
    root.mkdir()
    fleet = Fleet(root)
    for name in ("blueprints", "edge", "core"):
        fleet.repository(name)
    fleet.release("v1")
    fleet.write("policy.yaml", POLICY)
    fleet.write("promotion.yaml", PROMOTION)
    (root / "config.yaml").write_text(CONFIG)
    prepare: Callable[[Fleet], None] = request.param
    prepare(fleet)
    kept = root.with_name("kept")
    shutil.copytree(root, kept, symlinks=True)
    status, effects = driver.sweep(fleet, 0)
    assert status == 0
    return World(fleet, kept, effects, outcome(fleet))


def test_a_pass_that_is_killed_anywhere_is_gone_on_with(world: World, driver: Driver):
    assert world.effects > 12
    for last in range(1, world.effects + 1):
        fleet = world.restored()
        assert driver.sweep(fleet, last) == (-signal.SIGKILL, 0)
        assert outcome(fleet) == world.outcome, f"killed before effect {last}"
        for repo in (*fleet.repos.values(), fleet.records()):
            repo.fsck()
