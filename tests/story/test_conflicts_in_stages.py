"""A stage of several variants, one of whose drafts has an undecided merge conflict."""

from pathlib import Path

from companies import company
from editing import AMS, DEPLOYMENT, TEXT
from fleet import POLICY, PROMOTION, Fleet

BER, BRANCH = "sites/ber", "drafts/default/sites/ams/monitoring"
BY = ("--reason", "why", "--by", "Ann <ann@example.com>")
STAGE = ("monitoring", "--stage", "dev")
SIGNED = "requires: [{name: signed-off, approval: {atLeast: 1, from: [sre]}}]"


@company
def fleet(root: Path) -> Fleet:
    """Two sites, of which one has a hot fix, and upstream's next revision; promotion by hand."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    made.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    edge = made.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT.replace("replicas: 1", "replicas: 7")}, "hot fix")
    made.release("v2")
    made.later(minutes=1).settle()
    return made


def test_a_promotion_of_the_stage_leaves_the_variant_out_and_says_so(fleet: Fleet):
    done = fleet.run("promote", *STAGE, *BY)
    assert done.code == 3, done.err
    assert fleet.published() == {AMS: "v1", BER: "v2"}
    [line] = [it for it in done.err.splitlines() if "not published: monitoring-ams" in it]
    assert "1 of 2 variants has undecided merge conflicts" in line
    assert "--accept-conflicts" in line
    assert "no draft of v2" not in done.err
    assert fleet.condition(AMS)[0] == "MergeConflict"
    assert "replicas: 7" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_variant_left_out_of_a_promotion_is_not_published_by_it_once_resolved(fleet: Fleet):
    fleet.run("promote", *STAGE, *BY)
    assert fleet.run("resolve", "monitoring", "--variant", AMS, *BY).code == 0
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v1"
    assert fleet.run("promote", *STAGE, *BY).code == 0
    assert fleet.published()[AMS] == "v2"


def test_an_approval_of_the_stage_leaves_the_variant_out_and_says_so(fleet: Fleet):
    signed = POLICY.replace("{name: dev, ", f"{{name: dev, {SIGNED}, ")
    fleet.write("policy.yaml", signed)
    done = fleet.run("approve", *STAGE, "--revision", "v2", *BY[2:])
    assert done.code == 3, done.err
    assert "recorded for 1 draft" in done.out
    assert "1 of 2 variants has undecided merge conflicts and is not approved" in done.err
    alone = fleet.run("approve", *STAGE, "--revision", "v2", "--variant", AMS, *BY[2:])
    assert (alone.code, "recorded for 1 draft" in alone.out) == (0, True)
    fleet.write("promotion.yaml", PROMOTION)
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v1", BER: "v2"}
    fleet.run("resolve", "monitoring", "--variant", AMS, *BY)
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v2"


def test_conflicts_are_accepted_for_the_drafts_that_there_were_to_see(fleet: Fleet):
    fleet.repos["edge"].commit(BRANCH, {f"{AMS}/notes.txt": "decides nothing\n"})
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    refused = fleet.run("promote", *STAGE, "--revision", "v2", "--variant", AMS, *BY)
    assert refused.code != 0
    done = fleet.run("promote", *STAGE, "--variant", AMS, "--accept-conflicts", *BY)
    assert (done.code, fleet.published()[AMS]) == (0, "v3"), done.err
    assert "replicas: 7" not in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_rollback_is_not_asked_about_conflicts(fleet: Fleet):
    assert fleet.run("promote", *STAGE, "--variant", AMS, "--accept-conflicts", *BY).code == 0
    back = fleet.later(minutes=1).run("rollback", "--yes", *STAGE, "--revision", "v1", *BY)
    assert back.code == 0, back.err
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v1"
