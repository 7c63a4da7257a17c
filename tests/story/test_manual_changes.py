"""What people do beside the sweeps: edit, merge, suspend, promote; nothing of it is lost."""

import json
from pathlib import Path

import pytest
from fleet import PACKAGE, POLICY, PROMOTION, Fleet

ANN = "Ann <ann@example.com>"
WHY = ("--reason", "because", "--by", ANN)
MINE = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: mine}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: own/mine}
"""
EDITED = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")


def test_a_commit_on_a_draft_is_published_with_it(fleet: Fleet):
    fleet.sweep("--drafts-only")
    edge, branch = fleet.repos["edge"], "drafts/default/sites/ams/monitoring"
    edited = edge.commit(branch, {"sites/ams/deployment.yaml": EDITED})
    fleet.settle()
    assert edge.file("main", "sites/ams/deployment.yaml") == EDITED
    assert edge.git("merge-base", "--is-ancestor", edited, "main") == ""
    assert fleet.published()["sites/ams"] == "v1"


def test_a_target_that_vanished_is_held_by_name_and_kept(fleet: Fleet):
    fleet.site("dub", "prod", "edge")
    fleet.settle()
    fleet.write("promotion.yaml", PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', ""))
    before = fleet.refs()
    fleet.remove("site-ams.yaml")
    fleet.remove("site-ber.yaml")
    swept = fleet.sweep()
    assert (swept.code, fleet.refs()) == (0, before)
    orphans = [it for it in fleet.targets().values() if it["holds"][0]["reason"] == "TargetGone"]
    assert [item["state"] for item in orphans] == ["Held", "Held"]
    assert {it["repository"] for it in orphans} == {"edge"}
    for name, item in zip(("ams", "ber"), orphans, strict=True):
        assert item["path"] == f"sites/{name}"
        for called in (name, f"edge:sites/{name}", item["target"]):
            assert fleet.run("get", "targets", called, "-o", "json").views == [item]
            refused = fleet.run("get", "variants", called)
            assert refused.code == 1
            assert f"its package is at edge:sites/{name}; run `fanout remove" in refused.err
        assert f"(sites/{name} in " in item["holds"][0]["message"]
        assert item["target"] in swept.err
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["conditions"][0]["reason"] == "TargetGone"
    fleet.site("ams", "dev", "edge")
    fleet.site("ber", "prod", "edge")
    assert fleet.sweep().out == "nothing to do\n"


def test_a_draft_merged_despite_a_gate_is_published(fleet: Fleet):
    fleet.sweep("--drafts-only")
    core, draft = fleet.repos["core"], "refs/heads/drafts/default/sites/cph/monitoring"
    merge = core.git("commit-tree", f"{draft}^{{tree}}", "-p", "main", "-p", draft, "-m", "merged")
    core.git("update-ref", "refs/heads/main", merge)
    fleet.settle()
    status = fleet.variants()["sites/cph"]
    assert (status["state"], status["published"]["revision"]) == ("Ready", "v1")
    assert status["published"]["outOfBand"] is True
    assert [it["reason"] for it in status["conditions"]] == ["Ready", "OutOfBand"]
    assert core.refs() == {
        "refs/heads/fanout/default/rendered": core.refs()["refs/heads/fanout/default/rendered"],
        "refs/heads/main": merge,
        "refs/tags/sites/cph/v1": merge,
    }
    assert fleet.published()["sites/ber"] == ""


def test_a_variant_written_by_hand_is_drafted_and_published_by_hand_or_by_name(fleet: Fleet):
    fleet.write("mine.yaml", MINE)
    fleet.settle()
    edge = fleet.repos["edge"]
    assert "own/mine/mine" in edge.drafts()
    assert fleet.condition("own/mine")[0] == "AutomationOff"
    assert fleet.run("promote", "mine", *WHY).code == 0
    assert "own/mine/v1" in edge.tags()
    fleet.release("v2")
    fleet.settle()
    assert fleet.published()["own/mine"] == "v1"
    fleet.write("promotion.yaml", PROMOTION + "  variants: [mine]\n")
    fleet.settle()
    assert fleet.published()["own/mine"] == "v2"
    assert [tag for tag in edge.tags() if "mine" in tag] == ["own/mine/v1", "own/mine/v2"]


SCOPES = [
    ("the policy", [], {"sites/ams", "sites/ber", "sites/cph"}),
    ("a stage", ["--stage", "prod"], {"sites/ber", "sites/cph"}),
    ("a variant", ["--variant", "sites/ams"], {"sites/ams"}),
]


@pytest.mark.parametrize(("_", "scope", "paths"), SCOPES, ids=[row[0] for row in SCOPES])
def test_a_suspended_scope_stays_until_it_is_resumed(fleet: Fleet, _, scope, paths):
    fleet.sweep("--drafts-only")
    assert fleet.run("suspend", "monitoring", *scope, *WHY).code == 0
    suspended = {path for path, state in fleet.states().items() if state == "Suspended"}
    assert suspended == paths
    assert {fleet.condition(path)[0] for path in paths} == {"Suspended"}
    before = fleet.refs()
    fleet.settle()
    assert fleet.published()["sites/ams"] == ("" if "sites/ams" in paths else "v1")
    assert scope or fleet.refs() == before
    assert fleet.run("resume", "monitoring", *scope, *WHY).code == 0
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v1"
    assert "Suspended" not in fleet.states().values()


def test_a_suspension_says_who_and_why(fleet: Fleet):
    fleet.run("suspend", "monitoring", "--stage", "prod", "--reason", "freeze", "--by", ANN)
    output = fleet.run("explain", "monitoring/prod").out
    assert "stage prod is suspended by ann@example.com: freeze" in output
    assert "fanout resume" in output


NAMES = [
    ("a policy that is not there", ("suspend", "other"), "there is no policy other"),
    ("a stage that is not there", ("suspend", "monitoring", "--stage", "x"), "choose one of: dev"),
    ("a variant that is not there", ("resume", "monitoring", "--variant", "x"), "no variant x"),
    ("a stage without a candidate", ("promote", "monitoring", "--stage", "x"), "no stage x"),
]


@pytest.mark.parametrize(("_", "line", "words"), NAMES, ids=[row[0] for row in NAMES])
def test_a_record_about_nothing_is_refused(fleet: Fleet, _, line, words):
    result = fleet.run(*line, *WHY)
    assert result.code == 1
    assert words in result.err
    assert not fleet.records().path.exists()


def test_a_plan_is_carried_out_only_in_the_world_that_it_saw(fleet: Fleet):
    saved = str(fleet.root / "plan.json")
    assert fleet.plan("--out", saved).code == 0
    fleet.site("dub", "dev", "edge")
    before = fleet.refs()
    moved = fleet.sweep("--plan", saved)
    assert moved.code == 4
    assert "plan again, review, and sweep with the new plan" in moved.err
    assert fleet.refs() == before
    fleet.remove("site-dub.yaml")
    assert fleet.sweep("--plan", saved).out == "3 drafts written\n"
    assert fleet.sweep("--plan", saved).code == 4
    Path(saved).write_text(json.dumps([])[:1])
    unreadable = fleet.sweep("--plan", saved)
    assert unreadable.code == 2
    assert "fanout plan --out" in unreadable.err


def test_a_policy_suspended_by_its_file_does_nothing_until_the_file_changes(
    fleet: Fleet,
):
    fleet.write("policy.yaml", POLICY + "  suspend: true\n")
    assert fleet.sweep().out == "nothing to do\n"
    assert set(fleet.states().values()) == {"Suspended"}
    fleet.write("policy.yaml", POLICY)
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v1"
