"""A new revision meets what people changed: nothing of theirs is lost, and conflicts are told."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, Fleet, Repo

AMS, DEPLOYMENT = "sites/ams", "sites/ams/deployment.yaml"
TEXT = PACKAGE["deployment.yaml"]


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.settle()
    assert made.published() == {AMS: "v1"}
    return made


def draft(fleet: Fleet, path: str = DEPLOYMENT) -> str:
    return fleet.repos["edge"].file("drafts/default/sites/ams/monitoring", path)


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


def conflict(fleet: Fleet) -> None:
    """A person and upstream set the same value differently; the draft is written."""
    text = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.release("v2")
    fleet.later(minutes=1).settle()


def test_upstream_wins_in_a_conflict_and_automation_waits_for_a_decision(fleet: Fleet):
    conflict(fleet)
    assert "replicas: 2" in draft(fleet)
    reason, sentence = fleet.condition(AMS)
    assert reason == "ConflictUndecided"
    assert "1 value that both sides changed" in sentence
    assert "replicas: 7" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_conflict_is_told_in_full_when_the_draft_is_written_and_then_in_short(fleet: Fleet):
    text = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.release("v2")
    full, short = "fanout resolve monitoring", "1 value of its draft undecided; see `fanout explain"
    told = [fleet.plan().err, fleet.sweep().err, fleet.sweep().err, fleet.plan().err]
    assert [full in err for err in told] == [True, True, False, False]
    assert [short in err for err in told] == [False, False, True, True]
    [held] = fleet.plan("-o", "json").json["held"]
    assert full in held["message"]


def test_who_promotes_an_undecided_draft_hears_what_goes_out(fleet: Fleet):
    conflict(fleet)
    told = fleet.run("promote", "monitoring", "--stage", "dev", *BY)
    assert fleet.published()[AMS] == "v2"
    assert "its draft goes out as it is, with 1 undecided value that both sides changed" in told.err
    assert "fanout resolve" not in told.err
    assert fleet.sweep().err == ""


def test_diff_names_the_conflict_with_its_three_values(fleet: Fleet):
    conflict(fleet)
    told = fleet.run("diff", "sites/ams").out.splitlines()[0]
    assert told.startswith("# conflict: deployment.yaml:")
    assert "Deployment/prometheus: spec.replicas: both changed" in told
    assert "(base 1, upstream 2, local 7); upstream won" in told


def test_diff_prints_a_patch_that_makes_the_next_draft(fleet: Fleet, tmp_path: Path):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + "  paused: true\n", "sites/ams/mine.txt": "mine\n"})
    fleet.release("v2", {"deployment.yaml": TEXT.replace("replicas: 1", "replicas: 2"), "new": "x"})
    patch = fleet.later(minutes=1).run("diff", "sites/ams")
    assert patch.code == 1
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
    told = fleet.run("diff", "sites/ams", "--three-way").out
    assert "=== deployment.yaml: changed upstream, changed here\n" in told
    disputed = "!! deployment.yaml:6: Deployment/prometheus: spec.replicas: both changed"
    assert f"--  replicas: 1\n+   replicas: 2\n{disputed}" in told
    assert "; upstream won\n +  replicas: 7\n" in told
    assert "=== mine.txt: added here\n" in told
    against = fleet.run("diff", "sites/ams", "--three-way", "--against", "upstream").out
    assert f"--  replicas: 1\n+   replicas: 2\n{disputed}" in against
    assert "=== package-context.yaml: changed here\n" in against
    assert "=== Kptfile: changed here\n" in against


def test_diff_shows_what_people_did_on_a_draft(fleet: Fleet):
    fleet.release("v2")
    fleet.later(minutes=1).sweep("--drafts-only")
    draft_of_ams = "drafts/default/sites/ams/monitoring"
    fleet.repos["edge"].commit(draft_of_ams, {DEPLOYMENT: draft(fleet) + "  paused: true\n"})
    told = fleet.run("diff", "sites/ams", "--three-way", "--against", "draft").out
    assert told.startswith("=== deployment.yaml: changed here\n")
    assert " +  paused: true\n" in told
    plain = fleet.run("diff", "sites/ams", "--against", "draft")
    assert plain.out.startswith("diff --git written/deployment.yaml draft/deployment.yaml\n")
    assert "\n+  paused: true\n" in plain.out
    assert "rendered/" not in plain.out
    assert plain.code == 1


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
    told = fleet.later(minutes=1).run("diff", AMS, "--against", "draft").out
    first, then = told.split("diff --git draft/Kptfile rendered/Kptfile\n")
    assert "\n+  paused: true\n" in first
    assert "\n-  replicas: 3\n+  replicas: 4\n" in then


def test_diff_tells_of_a_comment_that_goes_with_what_upstream_removed(fleet: Fleet):
    fleet.release("v2", {"deployment.yaml": TEXT + "  paused: true\n"})
    fleet.later(minutes=1).settle()
    fleet.repos["edge"].commit("main", {DEPLOYMENT: TEXT + "  paused: true # until June\n"})
    fleet.release("v3", {"deployment.yaml": TEXT})
    told = fleet.later(minutes=1).run("diff", "sites/ams").out
    assert told.startswith(
        '# note: deployment.yaml:7: the comment "# until June" went with'
        " Deployment/prometheus: spec.paused\n"
    )


def test_a_recorded_decision_resolves_a_conflict(fleet: Fleet):
    conflict(fleet)
    done = fleet.run("resolve", "monitoring", "--reason", "2 it is", "--by", "Ann <ann@x.org>")
    assert done.code == 0, done.err
    fleet.later(minutes=1).settle()
    assert "replicas: 2" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_commit_on_the_draft_resolves_a_conflict(fleet: Fleet):
    conflict(fleet)
    text = draft(fleet).replace("replicas: 2", "replicas: 5")
    fleet.repos["edge"].commit("drafts/default/sites/ams/monitoring", {DEPLOYMENT: text})
    fleet.later(minutes=1).settle()
    assert "replicas: 5" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_resolved_conflict_is_not_asked_again_at_the_next_revision(fleet: Fleet):
    test_a_commit_on_the_draft_resolves_a_conflict(fleet)
    fleet.release("v3", {"service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3"}
    assert "replicas: 5" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_person_may_promote_a_draft_with_conflicts(fleet: Fleet):
    conflict(fleet)
    done = fleet.run(
        "promote", "monitoring", "--stage", "dev", "--reason", "ok", "--by", "Ann <ann@x.org>"
    )
    assert done.code == 0, done.err
    assert fleet.published() == {AMS: "v2"}


@pytest.mark.parametrize(("word", "published"), [("UpstreamWins", "v2"), ("Hold", "v1")])
def test_the_policy_says_what_a_conflict_does(fleet: Fleet, word: str, published: str):
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", policy.replace("  stages:\n", f"  onConflict: {word}\n  stages:\n"))
    conflict(fleet)
    args = ("promote", "monitoring", "--stage", "dev", "--reason", "ok", "--by", "A <a@x.org>")
    fleet.run(*args)
    assert fleet.published() == {AMS: published}


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


OTHER = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
BY = ("--reason", "it is ours", "--by", "Ann <ann@x.org>")
TAKES = [
    ("the local value for all", ("--take", "local"), "replicas: 7"),
    ("upstream's for all", ("--take", "upstream"), "replicas: 2"),
    ("as the draft stands", (), "replicas: 2"),
]


@pytest.mark.parametrize(("_", "take", "value"), TAKES, ids=[row[0] for row in TAKES])
def test_a_person_says_whose_value_wins(fleet: Fleet, _, take, value):
    conflict(fleet)
    done = fleet.run("resolve", "monitoring", *take, *BY)
    assert done.code == 0, done.err
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}
    assert value in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_what_was_decided_is_not_asked_again_by_the_next_revision(fleet: Fleet):
    conflict(fleet)
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    text = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 2")
    fleet.release("v3", {"deployment.yaml": text, "service.yaml": OTHER})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3"}
    assert "replicas: 7" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_another_value_of_upstream_s_asks_again(fleet: Fleet):
    conflict(fleet)
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v1"}
    assert fleet.condition(AMS)[0] == "ConflictUndecided"


def test_a_commit_that_decided_a_conflict_has_decided_it_for_the_next_revision(fleet: Fleet):
    conflict(fleet)
    branch = "drafts/default/sites/ams/monitoring"
    text = draft(fleet).replace("replicas: 2", "replicas: 5")
    fleet.repos["edge"].commit(branch, {DEPLOYMENT: text})
    same = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 2")
    fleet.release("v3", {"deployment.yaml": same, "service.yaml": OTHER})
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3"}
    assert "replicas: 5" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_commit_on_the_draft_decides_no_conflict_of_a_file_that_it_leaves_alone(fleet: Fleet):
    conflict(fleet)
    edge = fleet.repos["edge"]
    edge.commit("drafts/default/sites/ams/monitoring", {"sites/ams/notes.txt": "seen\n"})
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "ConflictUndecided"
    assert fleet.published() == {AMS: "v1"}
    fleet.release("v3", {"service.yaml": OTHER})  # people's commits are taken along, undecided
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "ConflictUndecided"
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3"}
    assert "replicas: 7" in edge.file("main", DEPLOYMENT)
    assert edge.file("main", "sites/ams/notes.txt") == "seen\n"


def test_a_draft_with_a_commit_elsewhere_is_written_anew_with_the_winner_that_is_chosen(
    fleet: Fleet,
):
    conflict(fleet)
    edge = fleet.repos["edge"]
    edge.commit("drafts/default/sites/ams/monitoring", {"sites/ams/notes.txt": "seen\n"})
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}
    assert "replicas: 7" in edge.file("main", DEPLOYMENT)
    assert edge.file("main", "sites/ams/notes.txt") == "seen\n"


def test_conflicts_are_decided_one_by_one(fleet: Fleet):
    text = TEXT.replace("replicas: 1", "replicas: 7\n  paused: true")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.release(
        "v2", {"deployment.yaml": TEXT.replace("replicas: 1", "replicas: 2\n  paused: false")}
    )
    fleet.later(minutes=1).settle()
    told = fleet.run("diff", "sites/ams").out.splitlines()
    [replicas] = [it for it in told if it.startswith("# conflict") and "replicas" in it]
    [paused] = [it for it in told if it.startswith("# conflict") and "paused" in it]
    keys = [it.rpartition("[")[2].removesuffix("]") for it in (replicas, paused)]
    assert fleet.run("resolve", "monitoring", "--take", f"{keys[0]}=local", *BY).code == 0
    fleet.later(minutes=1).settle()
    assert "replicas: 7" in draft(fleet)
    reason, sentence = fleet.condition(AMS)
    assert (reason, "1 value" in sentence) == ("ConflictUndecided", True)
    assert fleet.run("resolve", "monitoring", "--take", f"{keys[1]}=upstream", *BY).code == 0
    fleet.later(minutes=1).settle()
    text = fleet.repos["edge"].file("main", DEPLOYMENT)
    assert ("replicas: 7" in text, "paused: false" in text) == (True, True)


def test_a_decision_may_be_taken_back_while_the_draft_is_open(fleet: Fleet):
    conflict(fleet)
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    fleet.later(minutes=1).sweep("--drafts-only")
    assert "replicas: 7" in draft(fleet)
    assert fleet.run("resolve", "monitoring", "--take", "upstream", *BY).code == 0
    fleet.later(minutes=1).sweep("--drafts-only")
    assert "replicas: 2" in draft(fleet)


REFUSED = [
    ("a word that is no side", "theirs", "neither a side nor a key"),
    ("a key without a side", "0123456789abcdef=", "neither a side nor a key"),
    ("a key that no draft has", "0123456789abcdef=local", "has such a conflict"),
]


@pytest.mark.parametrize(("_", "take", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_what_cannot_be_taken_is_refused(fleet: Fleet, _, take, words):
    conflict(fleet)
    before = fleet.records().refs()
    refused = fleet.run("resolve", "monitoring", "--take", take, *BY)
    assert (refused.code, fleet.records().refs()) == (2, before)
    assert words in refused.err
