"""What `explain` says beside the gates: failed targets, lost ones, conflicts one by one."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, PROMOTION, Fleet

TEXT = PACKAGE["deployment.yaml"]
ANN = ("--by", "Ann <ann@x.org>")


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    return made


def test_a_policy_names_targets_without_a_variant_and_variants_without_a_target(fleet: Fleet):
    for number in range(5):
        fleet.site(f"x{number}", "dev", "nosuch")
    fleet.remove("site-ber.yaml")
    told = fleet.run("explain", "monitoring")
    assert told.code == 3
    assert "x UnknownRepository: Failed: 5 targets (Cluster.infra" in told.out
    assert "there is no Repository nosuch" in told.out
    going = "TargetGone: Leaving: the next sweep removes what has no target any more"
    assert f"- {going}: monitoring-ber-928771694f" in told.out
    assert fleet.run("explain", "monitoring/dev").code == 0


def test_a_policy_names_variants_that_cannot_be_rendered(fleet: Fleet):
    fleet.release("v2", {"deployment.yaml": "a: [\n"})
    told = fleet.run("explain", "monitoring")
    assert told.code == 3
    assert "deployment.yaml:" in told.out
    assert "2 variants, monitoring-ams-047978a1d8 first: " in told.out


def conflict(fleet: Fleet) -> None:
    """Both sides set one value, and one deletes what the other changes; the draft is written."""
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {clusterIP: a}\n"
    fleet.release("v2", {"service.yaml": service})
    fleet.settle()
    path = "sites/ams/deployment.yaml"
    edge = fleet.repos["edge"]
    replicas = TEXT.replace("replicas: 1", "replicas: 7")
    edge.commit("main", {path: replicas, "sites/ams/service.yaml": None})
    changed = service.replace("clusterIP: a", "clusterIP: b")
    text = TEXT.replace("replicas: 1", "replicas: 3")
    fleet.release("v3", {"service.yaml": changed, "deployment.yaml": text})
    fleet.sweep("--drafts-only")


@pytest.mark.parametrize("stages", ["'*'", "prod"], ids=["automatic", "by hand"])
def test_a_variant_names_each_conflict_and_who_won(fleet: Fleet, stages: str):
    conflict(fleet)
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', f"stages: [{stages}]"))
    out = fleet.run("explain", "monitoring/dev/sites/ams").out
    lines = [line for line in out.splitlines() if "- conflict " in line]
    [replicas] = [line for line in lines if "spec.replicas" in line]
    assert "(base 1, upstream 3, local 7); upstream won and stands in the draft until" in replicas
    assert "fanout resolve monitoring --variant monitoring-ams-047978a1d8 --reason WHY" in replicas
    [service] = [line for line in lines if "service.yaml" in line]
    assert "; local won and stands in the draft until" in service
    for subject in ("monitoring", "monitoring/dev"):
        told = fleet.run("explain", subject).out
        assert "2 merge conflicts in its draft: see `fanout diff" in told
    row = next(it for it in fleet.run("get", "drafts").out.splitlines() if "ams" in it)
    assert row.split()[5] == "2"


def test_a_decision_says_what_it_decided(fleet: Fleet):
    conflict(fleet)
    done = fleet.run("resolve", "monitoring", "--take", "local", "--reason", "seven it is", *ANN)
    assert done.code == 0, done.err
    fleet.later(minutes=1).sweep("--drafts-only")
    out = fleet.run("explain", "monitoring/dev/sites/ams").out
    lines = [line for line in out.splitlines() if "+ conflict " in line]
    assert len(lines) == 2
    for line in lines:
        assert "; local won and stands in the draft, as Ann <ann@x.org> decided in " in line
        assert ": seven it is; since " in line
    assert fleet.run("explain", "monitoring").out.count("MergeConflict") == 0


def test_a_commit_on_the_draft_has_decided(fleet: Fleet):
    conflict(fleet)
    path, branch = "sites/ams/deployment.yaml", "drafts/default/sites/ams/monitoring"
    edge = fleet.repos["edge"]
    edge.commit(branch, {path: edge.file(branch, path).replace("replicas: 3", "replicas: 5")})
    out = fleet.run("explain", "monitoring/dev/sites/ams").out
    assert "- conflict " not in out
    assert "a commit on the draft has decided it" in out


SERVED = [("a policy", ""), ("a stage", "/dev"), ("a variant", "/dev/sites/ams")]


@pytest.mark.parametrize(("_", "rest"), SERVED, ids=[row[0] for row in SERVED])
def test_what_could_not_be_served_leaves_with_3_whatever_was_asked(fleet: Fleet, _, rest: str):
    assert fleet.run("explain", f"monitoring{rest}").code == 0
    path = fleet.repos["edge"].path
    path.rename(path.with_suffix(".away"))
    assert fleet.run("explain", f"monitoring{rest}").code == 3
    assert fleet.run("explain", "monitoring/prod").code == 0, "nothing of it is there"


VANISHED = [
    ("its target", "monitoring/dev/ber"),
    ("its path", "monitoring/dev/sites/ber"),
    ("its own name", "monitoring/dev/monitoring-ber-928771694f"),
    ("its name alone", "monitoring-ber-928771694f"),
]


@pytest.mark.parametrize(("_", "subject"), VANISHED, ids=[row[0] for row in VANISHED])
def test_a_variant_without_a_target_says_why_it_is_there_still(fleet: Fleet, _, subject: str):
    fleet.write("promotion.yaml", PROMOTION.replace('stages: ["*"]', "stages: [prod]"))
    fleet.remove("site-ber.yaml")
    told = fleet.run("explain", subject)
    assert told.code == 0, told.err
    head = told.out.splitlines()[0]
    assert head.startswith("- variant monitoring-ber-928771694f: Held: variant monitoring-ber-")
    assert "has no target any more" in head
    assert "nobody has switched automation on for stage dev" in told.out


def test_a_stage_that_has_passed_leaves_with_1_while_it_is_suspended(fleet: Fleet):
    passed = ("--check", "e2e", "--status", "passed", "--revision", "v1")
    done = fleet.run("report", "monitoring", "--stage", "dev", *passed, *ANN)
    assert done.code == 0, done.err
    fleet.sweep()
    assert fleet.run("explain", "monitoring/dev").code == 0
    assert fleet.run("explain", "monitoring").code == 0
    done = fleet.run("suspend", "monitoring", "--stage", "dev", "--reason", "a demo", *ANN)
    assert done.code == 0, done.err
    told = fleet.run("explain", "monitoring/dev")
    assert told.code == 0
    assert told.out.startswith("- stage dev: passed: ")
    assert fleet.run("explain", "monitoring").code == 0
