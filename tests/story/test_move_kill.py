"""kill -9 at every effect of a move: the next passes come to what an undisturbed one comes to."""

from collections.abc import Callable
from pathlib import Path

import pytest
from fleet import PROMOTION, Fleet
from killing import killer
from moving import AMS, packages

RENDERED = "refs/heads/fanout/default/rendered"
RECORDS_BRANCH = "fanout/default/default/monitoring"
# Without expressions, so that no process waits for a sandbox.
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {{name: monitoring}}
spec:
  upstream: {{repository: blueprints, package: monitoring, revision: {{semver: ">=1 <9"}}}}
  targets:
  - repositories: [{{name: edge, packageNames: [a]}}]
    template: {{stage: dev, downstream: {{repository: {0[0]}, package: {0[1]}}}}}
  - repositories: [{{name: edge, packageNames: [b]}}]
    template: {{stage: dev, downstream: {{repository: {1[0]}, package: {1[1]}}}}}
  stages: [{{name: dev}}]
"""
HERE, THERE, AWAY = ("edge", AMS), ("edge", "sites/ber"), ("core", "eu/ams")
TEXT = "ours\n"


def published(fleet: Fleet) -> None:
    """The pass that publishes at the new place."""
    fleet.later(minutes=1).sweep()


def drafted(fleet: Fleet) -> None:
    """The pass that takes a person's commits on the old draft along."""


def removed(fleet: Fleet) -> None:
    """The pass that removes the package from the old place."""
    fleet.later(minutes=1).sweep()
    fleet.sweep()


def both_drafted(fleet: Fleet) -> None:
    """The pass that publishes both: one draft's branch was free only when the other was written."""
    fleet.later(minutes=1).sweep()
    fleet.sweep()


PASSES = [
    ("to another repository, drafted", (AWAY, THERE), drafted),
    ("to another repository, published", (AWAY, THERE), published),
    ("to another repository, removed", (AWAY, THERE), removed),
    ("to each other's paths, published", (THERE, HERE), both_drafted),
]


@pytest.mark.diagonal
@pytest.mark.parametrize(("_", "places", "before"), PASSES, ids=[row[0] for row in PASSES])
def test_a_move_that_is_killed_anywhere_is_continued(
    tmp_path: Path, _: str, places: tuple[object, object], before: Callable[[Fleet], None]
):
    root = tmp_path / "live"
    root.mkdir()
    fleet = Fleet(root)
    for name in ("blueprints", "edge", "core"):
        fleet.repository(name)
    fleet.release("v1")
    fleet.write("policy.yaml", POLICY.format(HERE, THERE))
    fleet.write("promotion.yaml", PROMOTION)
    fleet.settle()
    edge = fleet.repos["edge"]
    edge.commit("main", {f"{AMS}/notes.txt": TEXT})
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge.commit("drafts/default/sites/ams/monitoring", {f"{AMS}/more.txt": TEXT})
    fleet.write("policy.yaml", POLICY.format(*places))
    before(fleet)

    def outcome() -> object:
        fleet.settle()
        records = fleet.records()
        lines = {
            it: records.file(RECORDS_BRANCH, it)
            for it in records.files(RECORDS_BRANCH)
            if "status/" in it
        }
        refs = fleet.refs()
        for name in ("edge", "core"):
            # one repository may be a pass behind the other: its renderings come in fewer commits
            if RENDERED in refs[name]:
                refs[name][RENDERED] = fleet.repos[name].object_id(f"{RENDERED}^{{tree}}")
        return refs, lines

    driver = killer(fleet)
    assert driver.everywhere(["sweep"], outcome) > 4
    (repository, path), _other = places
    assert fleet.repos[repository].file("main", f"{path}/notes.txt") == TEXT
    assert fleet.repos[repository].file("main", f"{path}/more.txt") == TEXT
    assert packages(fleet) == {"sites/ber", *([AMS] if repository == "edge" else [])}
