"""A server that takes no deletions: drafts stay, everything else goes on, and it is told."""

from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, PROMOTION, Fleet

HOOK = """while read old new ref; do
case $new in 0000*) echo "this branch cannot be removed here"; exit 1;; esac
done"""


@company
def fleet(root: Path) -> Fleet:
    made = Fleet(root)
    for name in ("blueprints", "edge"):
        made.repository(name)
    made.release("v1")
    made.write("policy.yaml", PLAIN)
    made.write("promotion.yaml", PROMOTION)
    return made


def denies_deletes(fleet: Fleet) -> None:
    fleet.repos["edge"].git("config", "receive.denyDeletes", "true")


def test_a_server_that_denies_deletions_holds_up_nothing(fleet: Fleet):
    denies_deletes(fleet)
    for _ in range(2):
        fleet.later(minutes=1).sweep()
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == 0, swept.err
    assert "receive.denyDeletes" in swept.err
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}
    assert fleet.repos["edge"].drafts() == ["sites/ams/monitoring", "sites/ber/monitoring"]
    conditions = {it["type"]: it for it in fleet.variants()["sites/ams"]["conditions"]}
    assert conditions["Ready"]["status"] == "True"
    assert conditions["DraftLeft"]["reason"] == "DeletionRefused"
    assert "branch drafts/default/sites/ams/monitoring" in conditions["DraftLeft"]["message"]


def test_the_next_revision_goes_on_and_the_branches_go_when_they_may(fleet: Fleet):
    denies_deletes(fleet)
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    fleet.release("v2")
    for _ in range(3):
        assert fleet.later(minutes=1).sweep().code == 0
    assert set(fleet.published().values()) == {"v2"}
    fleet.repos["edge"].git("config", "receive.denyDeletes", "false")
    fleet.later(minutes=1).settle()
    assert fleet.repos["edge"].drafts() == []
    assert "DraftLeft" not in str(fleet.variants())


@pytest.mark.parametrize("hooked", [False, True], ids=["by a setting", "by a hook"])
def test_a_variant_that_is_removed_leaves_its_branch(fleet: Fleet, hooked: bool):
    fleet.remove("promotion.yaml")
    fleet.settle()
    if hooked:
        fleet.repos["edge"].hook("pre-receive", HOOK)
    else:
        denies_deletes(fleet)
    fleet.write("promotion.yaml", PROMOTION)
    fleet.write("policy.yaml", PLAIN.replace(", sites/ber]", "]"))
    fleet.later(minutes=1).sweep()
    swept = fleet.later(minutes=1).sweep()
    assert swept.code == (3 if hooked else 0), "what a hook means is its owner's to say"
    assert fleet.published()["sites/ams"] == "v1"


WHY = ("--reason", "closed", "--by", "Ann <ann@example.com>")
REMOVE = ("remove", "monitoring", "sites/ber", *WHY)
BRANCH = "sites/ber/monitoring"


@pytest.mark.parametrize("is_published", [True, False], ids=["with a package", "of a draft alone"])
def test_a_person_who_removes_a_variant_reads_that_its_branch_stays(
    fleet: Fleet, is_published: bool
):
    if is_published:
        fleet.settle()
        fleet.release("v2")
    fleet.remove("promotion.yaml")
    fleet.later(minutes=1).sweep()
    edge = fleet.repos["edge"]
    assert BRANCH in edge.drafts()
    denies_deletes(fleet)
    fleet.write("policy.yaml", PLAIN.replace(", sites/ber]", "]"))
    done = fleet.later(minutes=1).run(*REMOVE)
    assert done.code == 0, done.err
    assert ("left the branch" in done.out) == is_published, done.out
    assert "did not have it" not in done.out
    assert "warning: remove the draft of edge:sites/ber: closed: " in done.err, done.err
    assert "receive.denyDeletes" in done.err
    assert (BRANCH in edge.drafts(), "sites/ber/Kptfile" in edge.files()) == (True, False)
    edge.git("config", "receive.denyDeletes", "false")
    assert fleet.later(minutes=1).run(*REMOVE).code == 0
    assert BRANCH not in edge.drafts()
    assert "ber" not in fleet.run("get", "targets").out
