"""The main job, end to end: fan out, verify, soak, promote, bump."""

from pathlib import Path

from companies import company
from fleet import Fleet


@company
def fleet(root: Path) -> Fleet:
    return Fleet.build(root)


def test_an_upstream_package_becomes_a_draft_for_every_target(fleet: Fleet):
    assert fleet.sweep().code == 0
    assert fleet.repos["edge"].drafts() == ["sites/ams/monitoring", "sites/ber/monitoring"]
    assert fleet.repos["core"].drafts() == ["sites/cph/monitoring"]
    assert fleet.repos["edge"].files() == ["README.md"]
    text = fleet.repos["edge"].file(
        "drafts/default/sites/ams/monitoring", "sites/ams/settings.yaml"
    )
    assert 'retention: "7d"' in text


def test_drafts_are_up_to_date_after_one_pass(fleet: Fleet):
    fleet.sweep()
    plan = fleet.plan("--drafts-only", "-o", "json")
    assert (plan.code, plan.json["actions"]) == (0, [])


def test_a_stage_waits_until_the_one_before_has_passed_and_soaked(fleet: Fleet):
    fleet.settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "", "sites/cph": ""}
    fleet.later(minutes=5)
    assert fleet.report("dev", "v1").code == 0
    fleet.later(minutes=59).settle()
    assert fleet.published()["sites/ber"] == ""
    assert fleet.run("explain", "monitoring/prod", "-o", "json").code == 0
    fleet.later(hours=2).settle()
    assert fleet.run("explain", "monitoring/prod", "-o", "json").code == 0
    assert set(fleet.published().values()) == {"v1"}
    assert fleet.repos["edge"].tags() == ["sites/ams/v1", "sites/ber/v1"]
    assert fleet.repos["edge"].drafts() == []
    for repo in fleet.repos.values():
        repo.fsck()


def test_an_upstream_bump_goes_through_the_stages_again(fleet: Fleet):
    fleet.settle()
    fleet.later(minutes=5).report("dev", "v1")
    fleet.settle()
    fleet.later(hours=2).settle()
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/ams": "v2", "sites/ber": "v1", "sites/cph": "v1"}
    fleet.later(minutes=1).report("dev", "v2")
    fleet.settle()
    fleet.later(hours=1).settle()
    assert set(fleet.published().values()) == {"v2"}
    assert "replicas: 2" in fleet.repos["core"].file("main", "sites/cph/deployment.yaml")
    assert fleet.repos["core"].tags() == ["sites/cph/v1", "sites/cph/v2"]


def test_evidence_that_failed_holds_what_comes_after(fleet: Fleet):
    fleet.settle()
    fleet.later(minutes=5).report("dev", "v1", "failed")
    fleet.later(hours=9).settle()
    assert fleet.states() == {"sites/ams": "Failed", "sites/ber": "Drafted", "sites/cph": "Drafted"}


def test_a_changed_cluster_object_rewrites_the_drafts_that_read_it_and_no_other(fleet: Fleet):
    fleet.settle()
    before = fleet.repos["edge"].refs() | fleet.repos["core"].refs()
    fleet.site("cph", "prod", "core", retention="30d")
    assert fleet.sweep().code == 0
    after = fleet.repos["edge"].refs() | fleet.repos["core"].refs()
    changed = {ref for ref in after if before.get(ref) != after[ref]}
    assert changed == {
        "refs/heads/drafts/default/sites/cph/monitoring",
        "refs/heads/fanout/default/rendered",
    }
    draft = fleet.repos["core"].file(
        "drafts/default/sites/cph/monitoring", "sites/cph/settings.yaml"
    )
    assert 'retention: "30d"' in draft


def test_the_same_observation_gives_the_same_plan_byte_for_byte(fleet: Fleet):
    assert fleet.plan("-o", "json").out == fleet.plan("-o", "json").out


def test_two_installations_of_the_same_world_write_identical_commits(tmp_path: Path):
    refs = []
    for name in ("one", "two"):
        root = tmp_path / name / "x"
        root.mkdir(parents=True)
        fleet = Fleet.build(root)
        fleet.settle()
        refs.append({name: repo.refs("refs/heads/drafts") for name, repo in fleet.repos.items()})
    assert len(refs[0]["edge"]) == 1


def test_a_draft_that_a_person_merged_is_published_tagged_and_reported(fleet: Fleet):
    fleet.sweep()
    edge = fleet.repos["edge"]
    draft = edge.refs()["refs/heads/drafts/default/sites/ber/monitoring"]
    merged = edge.git("commit-tree", f"{draft}^{{tree}}", "-p", "main", "-p", draft, "-m", "Merge")
    edge.git("update-ref", "refs/heads/main", merged)
    fleet.later(minutes=1).settle()
    status = fleet.variants()["sites/ber"]
    assert status["published"]["revision"] == "v1"
    assert status["published"]["outOfBand"] is True
    assert edge.refs()["refs/tags/sites/ber/v1"] == merged
    assert edge.drafts() == []


def test_an_administrator_says_what_may_be_injected(fleet: Fleet):
    config = fleet.root / "fanout.yaml"
    config.write_text(
        "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\n"
        "injection: {kinds: [{group: infra.example.com, kind: Cluster, fields: [spec]}]}\n"
    )
    assert fleet.sweep("--config", str(config)).code == 0
    text = fleet.repos["edge"].file(
        "drafts/default/sites/ams/monitoring", "sites/ams/settings.yaml"
    )
    assert "retention: 15d" in text
    kptfile = fleet.repos["edge"].file("drafts/default/sites/ams/monitoring", "sites/ams/Kptfile")
    assert "objects of kind ConfigMap must not be injected" in kptfile
