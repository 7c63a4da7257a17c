"""`deletionPolicy: Orphan` gives up packages, and drafts that hold a person's commits."""

from pathlib import Path

import pytest
from companies import company
from editing import AMS, DEPLOYMENT, draft
from fleet import POLICY, PROMOTION, Fleet

BRANCH = "drafts/default/sites/ams/monitoring"
ANN = ("--reason", "closed", "--by", "Ann <ann@example.com>")
MINE = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: mine}
spec:
  deletionPolicy: Orphan
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: own/mine}
"""


@company
def fleet(root: Path) -> Fleet:
    """Two sites with drafts of v2 that nobody has promoted; their policy orphans."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    own = "  deletionPolicy: Orphan\n  removalLimit: 100%\n  stages:\n"
    made.write("policy.yaml", POLICY.replace("  stages:\n", own))
    made.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    made.release("v2")
    made.settle()
    return made


def edit(fleet: Fleet) -> str:
    """A person's commit on the draft; answers its id."""
    text = draft(fleet).replace("replicas: 2", "replicas: 5")
    return fleet.repos["edge"].commit(BRANCH, {DEPLOYMENT: text})


@pytest.mark.parametrize("edited", [True, False], ids=["with a person's commit", "untouched"])
@pytest.mark.parametrize("by_hand", [True, False], ids=["fanout remove", "a sweep"])
def test_the_draft_of_a_vanished_target(fleet: Fleet, edited: bool, by_hand: bool):
    tip = edit(fleet) if edited else ""
    names = fleet.run("get", "variants", "-o", "name").out.split()
    [name] = [it.rpartition("/")[2] for it in names if "-ams-" in it]
    fleet.remove("site-ams.yaml")
    if by_hand:
        done = fleet.run("remove", "monitoring", name, *ANN)
    else:
        dev = PROMOTION.replace('stages: ["*"]', "stages: [dev]")
        fleet.write("promotion.yaml", dev)
        done = fleet.sweep()
    assert done.code == 0, done.err
    edge = fleet.repos["edge"]
    assert edge.refs().get(f"refs/heads/{BRANCH}", "") == tip
    assert f"{AMS}/deployment.yaml" in edge.files()
    fleet.later(minutes=1).settle()
    assert edge.refs().get(f"refs/heads/{BRANCH}", "") == tip
    assert name not in fleet.run("get", "targets", "-o", "json").out


def test_the_draft_of_a_variant_written_by_hand_stays_with_a_persons_commit(fleet: Fleet):
    fleet.write("mine.yaml", MINE)
    fleet.settle()
    edge, branch = fleet.repos["edge"], "drafts/default/own/mine/mine"
    path = "own/mine/deployment.yaml"
    assert fleet.run("promote", "mine", *ANN).code == 0
    fleet.release("v3")
    fleet.settle()
    text = edge.file(branch, path).replace("replicas: 3", "replicas: 5")
    tip = edge.commit(branch, {path: text})
    fleet.remove("mine.yaml")
    assert fleet.run("remove", "mine", *ANN).code == 0
    assert edge.refs()[f"refs/heads/{branch}"] == tip
    assert path in edge.files()
