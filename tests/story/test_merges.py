"""A new revision meets what people changed: nothing of theirs is lost."""

from pathlib import Path

from companies import company
from editing import AMS, DEPLOYMENT, TEXT, conflict, draft, one_site
from fleet import Fleet, Repo


@company
def fleet(root: Path) -> Fleet:
    return one_site(root)


def test_an_edit_of_the_published_package_survives_the_next_revision(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + "  paused: true # by hand\n"})
    fleet.release("v2")
    assert fleet.later(minutes=1).sweep().code == 0
    assert "replicas: 2" in draft(fleet)
    assert "paused: true # by hand" in draft(fleet)
    assert edge.file("fanout/default/rendered", f"drafts/{DEPLOYMENT}").count("paused") == 0
    fleet.settle()
    assert fleet.published() == {AMS: "v2"}
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)
    assert edge.file("main", "sites/ams/Kptfile").count("ref: monitoring/v3") == 2
    edge.fsck()


def test_a_person_s_commit_on_a_draft_survives_the_next_revision(fleet: Fleet):
    edge = fleet.repos["edge"]
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    theirs = edge.commit(
        "drafts/default/sites/ams/monitoring", {DEPLOYMENT: draft(fleet) + "  paused: true\n"}
    )
    fleet.release("v3")
    fleet.later(minutes=1).sweep("--drafts-only")
    assert "replicas: 3" in draft(fleet)
    assert "paused: true" in draft(fleet)
    tip = edge.refs()["refs/heads/drafts/default/sites/ams/monitoring"]
    assert theirs in edge.git("rev-list", tip).split()
    fleet.settle()
    assert "paused: true" in edge.file("main", DEPLOYMENT)


def test_edits_on_the_branch_and_on_the_draft_both_survive(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {"sites/ams/notes.txt": "ours\n"})
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge.commit(
        "drafts/default/sites/ams/monitoring", {DEPLOYMENT: draft(fleet) + "  paused: true\n"}
    )
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert edge.file("main", "sites/ams/notes.txt") == "ours\n"
    assert "paused: true" in edge.file("main", DEPLOYMENT)
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)


def test_diff_prints_a_patch_that_makes_the_next_draft(fleet: Fleet, tmp_path: Path):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + "  paused: true\n", "sites/ams/mine.txt": "mine\n"})
    fleet.release("v2", {"deployment.yaml": TEXT.replace("replicas: 1", "replicas: 2"), "new": "x"})
    patch = fleet.later(minutes=1).run("diff", "sites/ams")
    assert patch.code == 0
    assert patch.err == ""
    fleet.sweep("--drafts-only")
    work = tmp_path / "work"
    edge.git("worktree", "add", "--quiet", "--detach", str(work), "main")
    (work / "diff").write_text(patch.out)
    made = Repo(work)
    made.git("apply", "--directory=sites/ams", "diff")
    made.git("add", "sites")
    made.git(
        "diff", "--cached", "--exit-code", "drafts/default/sites/ams/monitoring", "--", "sites"
    )
    assert fleet.run("diff", "sites/ams", "--against", "draft").out == ""


def test_diff_shows_what_upstream_and_people_did_since_they_were_one(fleet: Fleet):
    conflict(fleet)
    fleet.repos["edge"].commit("main", {"sites/ams/mine.txt": "mine\n"})
    output = fleet.run("diff", "sites/ams", "--three-way").out
    assert "=== deployment.yaml: changed upstream, changed here\n" in output
    disputed = "!! deployment.yaml:6: Deployment/prometheus: spec.replicas: both changed"
    assert f"--  replicas: 1\n+   replicas: 2\n{disputed}" in output
    assert "; upstream won\n +  replicas: 7\n" in output
    assert "=== mine.txt: added here\n" in output
    against = fleet.run("diff", "sites/ams", "--three-way", "--against", "upstream").out
    assert f"--  replicas: 1\n+   replicas: 2\n{disputed}" in against
    assert "=== package-context.yaml: changed here\n" in against
    assert "=== Kptfile: changed here\n" in against


def test_diff_shows_what_people_did_on_a_draft(fleet: Fleet):
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    draft_of_ams = "drafts/default/sites/ams/monitoring"
    fleet.repos["edge"].commit(draft_of_ams, {DEPLOYMENT: draft(fleet) + "  paused: true\n"})
    output = fleet.run("diff", "sites/ams", "--three-way", "--against", "draft").out
    assert output.startswith("=== deployment.yaml: changed here\n")
    assert " +  paused: true\n" in output
    plain = fleet.run("diff", "sites/ams", "--against", "draft")
    assert plain.out.startswith("diff --git written/deployment.yaml draft/deployment.yaml\n")
    assert "\n+  paused: true\n" in plain.out
    assert "rendered/" not in plain.out
    assert plain.code == 0


def test_diff_shows_what_people_did_on_drafts_before_and_what_comes_next(
    fleet: Fleet, tmp_path: Path
):
    edge, branch = fleet.repos["edge"], "drafts/default/sites/ams/monitoring"
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    edge.commit(branch, {DEPLOYMENT: draft(fleet) + "  paused: true\n"})
    fleet.release("v3")
    fleet.later(minutes=1).sweep("--drafts-only")
    assert "\n+  paused: true\n" in fleet.run("diff", AMS, "--against", "draft").out
    assert " +  paused: true\n" in fleet.run("diff", AMS, "--three-way", "--against", "draft").out
    fleet.release("v4")
    output = fleet.later(minutes=1).run("diff", AMS, "--against", "draft").out
    first, then = output.split("diff --git draft/Kptfile rendered/Kptfile\n")
    assert "\n+  paused: true\n" in first
    assert "\n-  replicas: 3\n+  replicas: 4\n" in then


def test_diff_tells_of_a_comment_that_goes_with_what_upstream_removed(fleet: Fleet):
    fleet.release("v2", {"deployment.yaml": TEXT + "  paused: true\n"})
    fleet.later(minutes=1).settle()
    fleet.repos["edge"].commit("main", {DEPLOYMENT: TEXT + "  paused: true # until June\n"})
    fleet.release("v3", {"deployment.yaml": TEXT})
    output = fleet.later(minutes=1).run("diff", "sites/ams").out
    assert output.startswith(
        '# note: deployment.yaml:7: the comment "# until June" was removed with'
        " Deployment/prometheus: spec.paused\n"
    )


def test_a_package_that_was_removed_by_hand_is_not_put_back(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", dict.fromkeys((p for p in edge.files() if p.startswith(AMS)), None))
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "EditedDownstream"
    assert edge.files() == ["README.md"]


def test_edits_beside_one_that_upstream_makes_too_stay_edits(fleet: Fleet):
    """The merge then comes to what is there already, and no draft is needed."""
    edge, settings = fleet.repos["edge"], "sites/ams/settings.yaml"
    text = edge.file("main", settings).replace("7d", "9d")
    edge.commit("main", {settings: text, DEPLOYMENT: TEXT + "  paused: true\n"})
    fleet.site("ams", "dev", "edge", "9d")
    fleet.later(minutes=1).settle()
    assert edge.drafts() == []
    assert edge.file("fanout/default/rendered", f"published/{DEPLOYMENT}").count("paused") == 0
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert "paused: true" in edge.file("main", DEPLOYMENT)
    edge.fsck()


def test_a_person_s_commit_survives_every_revision_that_comes_before_it_is_published(
    fleet: Fleet,
):
    edge, branch = fleet.repos["edge"], "drafts/default/sites/ams/monitoring"
    edge.commit("main", {"sites/ams/notes.txt": "ours\n"})
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    theirs = edge.commit(branch, {DEPLOYMENT: draft(fleet) + "  paused: true\n"})
    for name in ("v3", "v4", "v5"):
        fleet.release(name)
        fleet.later(minutes=1).sweep("--drafts-only")
        assert "paused: true" in draft(fleet)
        assert theirs in edge.git("rev-list", branch).split()
    edge.commit("main", {"sites/ams/more.txt": "later\n"})
    fleet.settle()
    assert fleet.published() == {AMS: "v5"}
    assert "paused: true" in edge.file("main", DEPLOYMENT)
    assert "replicas: 5" in edge.file("main", DEPLOYMENT)
    assert edge.file("main", "sites/ams/notes.txt") == "ours\n"
    assert edge.file("main", "sites/ams/more.txt") == "later\n"
