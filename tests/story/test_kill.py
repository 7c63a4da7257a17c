"""kill -9 at every effect of a pass: the next passes come to what an undisturbed one comes to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import PROMOTION, Fleet
from killing import killer

RECORDS_BRANCH = "fanout/default/default/monitoring"
# Without expressions, so that no process waits for a sandbox.
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


def fan_out(fleet: Fleet) -> None:
    """From nothing: mirrors, records and drafts are made."""


def promote(fleet: Fleet) -> None:
    """All at once: prod is published, dev gets a draft of the next revision, records are kept."""
    fleet.settle()
    fleet.later(minutes=5).report("dev", "v1")
    fleet.settle()
    fleet.release("v2")
    fleet.later(hours=2)


def go_back(fleet: Fleet) -> None:
    """Prod goes back to v1: the drafts stand, and are published."""
    for revision in ("v1", "v2"):
        if revision != "v1":
            fleet.later(minutes=5).release(revision)
        fleet.settle()
        fleet.later(minutes=5).report("dev", revision)
        fleet.settle()
        fleet.later(hours=2).settle()
    assert fleet.published()["sites/ber"] == "v2"
    fleet.write("policy.yaml", POLICY.replace("name: prod,", "name: prod, pin: v1,"))
    fleet.later(minutes=5).sweep()
    fleet.later(minutes=5)


def everything(fleet: Fleet) -> dict[str, object]:
    """All refs of all repositories, and what is remembered of the policy."""
    fleet.settle()
    records = fleet.records()
    records.fsck()
    status = {
        path: records.file(RECORDS_BRANCH, path)
        for path in records.files(RECORDS_BRANCH)
        if "status/" in path
    }
    return {**fleet.refs(), "status": status}


def share(fleet: Fleet) -> None:
    """The stage's draft is written, with a release on record for all in it."""
    fleet.write("policy.yaml", POLICY.replace("spec:\n", "spec:\n  draftPer: Stage\n"))


def publish_shared(fleet: Fleet) -> None:
    """The stage's draft is published, and that of the next stage is written."""
    share(fleet)
    fleet.settle()
    fleet.later(minutes=5).report("dev", "v1")
    fleet.settle()
    fleet.release("v2")
    fleet.later(hours=2).sweep()
    fleet.later(minutes=1)


@pytest.mark.diagonal
@pytest.mark.parametrize(
    "prepare",
    [fan_out, promote, go_back, share, publish_shared],
    ids=["fan-out", "promotion", "going back", "draft of a stage", "publication of a stage"],
)
def test_a_pass_that_is_killed_anywhere_is_continued(
    tmp_path: Path, prepare: Callable[[Fleet], None]
):
    root = tmp_path / "live"
    root.mkdir()
    fleet = Fleet(root)
    for name in ("blueprints", "edge", "core"):
        fleet.repository(name)
    fleet.release("v1")
    fleet.write("policy.yaml", POLICY)
    fleet.write("promotion.yaml", PROMOTION)
    prepare(fleet)
    driver = killer(fleet)
    assert driver.everywhere(["sweep"], lambda: everything(fleet)) > 6
