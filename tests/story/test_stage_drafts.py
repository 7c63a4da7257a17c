"""Drafts of stages: one branch for what a stage in a repository releases together."""

import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, POLICY, PROMOTION, Fleet
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from fanout.git.mirror_store import MirrorStore

DEV = "_stages/default.monitoring/dev"
STAGES = """\
  stages:
  - {name: dev, verification: [{name: e2e, report: {}}]}
  - {name: test, after: {stages: [dev]}, rollout: {maxInFlight: 3}}
  - {name: prod, after: {stages: [test], soak: 1h}}
"""
SIGNED = """\
  stages:
  - name: dev
    requires: [{name: ok, approval: {from: [sre], atLeast: 1}}]
"""
MINE = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")


def per(draft: str, stages: str = STAGES) -> str:
    """The policy with drafts of variants or of stages."""
    text = POLICY[: POLICY.index("  stages:")] + stages
    return text.replace("spec:\n", f"spec:\n  draftPer: {draft}\n", 1)


def build(root: Path, sites: int, draft: str, stages: str = STAGES) -> Fleet:
    tiers = ("dev", "test", "prod")
    fleet = Fleet.build(root, {f"c{n:02}": (tiers[n % 3], f"r{n // 3 % 2}") for n in range(sites)})
    fleet.write("policy.yaml", per(draft, stages))
    return fleet


@company
def fleet(root: Path) -> Fleet:
    return build(root, 12, "Stage")


def approve(fleet: Fleet, site: str, revision: str = "v1") -> None:
    approved = fleet.later(minutes=1).run(
        "approve", "monitoring", "--stage", "dev", "--revision", revision, "--variant", site,
        "--by", "Ann <ann@example.com>",
    )  # fmt: skip
    assert approved.code == 0, approved.err


def roll_out(fleet: Fleet, revision: str) -> None:
    """Let all stages come to rest at a revision."""
    fleet.settle()
    fleet.later(minutes=5).report("dev", revision)
    fleet.settle(30)
    fleet.later(hours=2).settle(30)


def test_released_variants_of_a_stage_are_on_a_single_branch(fleet: Fleet):
    swept = fleet.sweep()
    assert (swept.code, swept.out) == (0, "4 released, 4 drafts written\n")
    assert [fleet.repos[name].drafts() for name in ("r0", "r1")] == [[DEV], [DEV]]
    assert fleet.repos["r0"].files() == ["README.md"]
    [base] = fleet.repos["r0"].git("rev-list", "main").splitlines()
    log = fleet.repos["r0"].git("log", "--format=%P %s", f"drafts/default/{DEV}")
    assert log.splitlines() == [f"{base} Update 2 packages at v1", " first commit"]


def test_a_written_draft_stays_for_a_pass_before_publication(fleet: Fleet):
    fleet.sweep()
    assert fleet.plan("--drafts-only").out == "nothing to do\n"
    assert fleet.later(minutes=1).sweep().out == "4 published\n"
    repo = fleet.repos["r0"]
    assert repo.drafts() == []
    assert repo.tags() == ["sites/c00/v1", "sites/c06/v1"]
    # One merge of one branch, whatever is in it.
    assert len(repo.git("rev-list", "--parents", "-1", "main").split()) == 3


def test_all_stages_come_to_rest(fleet: Fleet):
    roll_out(fleet, "v1")
    assert set(fleet.published().values()) == {"v1"}
    fleet.release("v2")
    roll_out(fleet.later(minutes=1), "v2")
    assert set(fleet.published().values()) == {"v2"}
    for repo in fleet.repos.values():
        assert repo.drafts() == []
        repo.fsck()


def test_at_most_sixteen_packages_are_in_a_commit(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {f"c{n:02}": ("dev", "edge") for n in range(40)})
    fleet.write("policy.yaml", per("Stage"))
    fleet.sweep()
    log = fleet.repos["edge"].git("log", "--format=%s", f"main..drafts/default/{DEV}")
    assert log.splitlines() == [
        "Update 8 packages at v1",
        "Update 16 packages at v1",
        "Update 16 packages at v1",
    ]
    fleet.later(minutes=1).settle()
    assert len(fleet.repos["edge"].tags()) == 40


def test_a_person_s_commit_is_published_with_its_package(fleet: Fleet):
    fleet.sweep()
    repo = fleet.repos["r0"]
    commit = repo.commit(f"drafts/default/{DEV}", {"sites/c00/deployment.yaml": MINE})
    assert fleet.later(minutes=1).sweep().out == "4 published\n"
    assert repo.file("main", "sites/c00/deployment.yaml") == MINE
    assert repo.git("merge-base", "--is-ancestor", commit, "main") == ""
    assert repo.drafts() == []


def test_changes_under_a_commit_of_a_person_are_appended(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"a": ("dev", "edge"), "b": ("dev", "edge")})
    fleet.write("policy.yaml", per("Stage", SIGNED))
    fleet.sweep()
    repo, branch = fleet.repos["edge"], f"drafts/default/{DEV}"
    commit = repo.commit(branch, {"sites/a/deployment.yaml": MINE})
    fleet.site("b", "dev", "edge", retention="30d")
    assert fleet.later(minutes=1).sweep().code == 0
    assert repo.git("merge-base", "--is-ancestor", commit, branch) == ""
    assert 'retention: "30d"' in repo.file(branch, "sites/b/settings.yaml")
    approve(fleet, "a")
    approve(fleet, "b")
    fleet.later(minutes=1).settle()
    assert repo.file("main", "sites/a/deployment.yaml") == MINE
    assert 'retention: "30d"' in repo.file("main", "sites/b/settings.yaml")
    assert repo.drafts() == []


def test_a_bump_takes_a_person_s_commit_along(fleet: Fleet):
    fleet.sweep()
    repo, branch = fleet.repos["r0"], f"drafts/default/{DEV}"
    text = repo.file(branch, "sites/c00/settings.yaml").replace("data:", "data:\n  mine: x")
    commit = repo.commit(branch, {"sites/c00/settings.yaml": text})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c00"] == "v2"
    assert "mine: x" in repo.file("main", "sites/c00/settings.yaml")
    assert repo.git("merge-base", "--is-ancestor", commit, "main") == ""
    assert "replicas: 2" in repo.file("main", "sites/c00/deployment.yaml")


def test_an_author_of_a_commit_before_a_bump_does_not_approve_it(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"a": ("dev", "edge")})
    fleet.write("policy.yaml", per("Stage", SIGNED))
    fleet.write("promotion.yaml", PROMOTION + "  requiresSeparation: true\n")
    fleet.sweep()
    edge, branch = fleet.repos["edge"], f"drafts/default/{DEV}"
    text = edge.file(branch, "sites/a/settings.yaml").replace("data:", "data:\n  mine: x")
    edge.author = "Ann <ann@example.com>"
    edge.commit(branch, {"sites/a/settings.yaml": text})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    approved = fleet.later(minutes=1).run(
        "approve", "monitoring", "--stage", "dev", "--revision", "v2",
        "--by", "Ann <ann@example.com>",
    )  # fmt: skip
    assert approved.code == 4, approved.err
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/a"] == ""


def test_a_person_s_commit_goes_along_to_a_stage_of_another_name(tmp_path: Path):
    """It stays reachable, and its author may not approve the draft there either."""
    fleet = Fleet.build(tmp_path, {"a": ("dev", "edge"), "b": ("dev", "edge")})
    fleet.write("policy.yaml", per("Stage", SIGNED))
    fleet.write("promotion.yaml", PROMOTION + "  requiresSeparation: true\n")
    fleet.sweep()
    edge, before = fleet.repos["edge"], f"drafts/default/{DEV}"
    text = edge.file(before, "sites/a/settings.yaml").replace("data:", "data:\n  mine: x")
    edge.author = "Ann <ann@example.com>"
    commit = edge.commit(before, {"sites/a/settings.yaml": text})
    fleet.write("policy.yaml", per("Stage", SIGNED).replace("name: dev", "name: test"))
    for site in "ab":
        fleet.site(site, "test", "edge")
    after = f"{before.removesuffix('dev')}test"
    for revision in ("v1", "v2"):
        fleet.later(minutes=1).settle()
        assert f"refs/heads/{before}" not in edge.refs()
        assert "mine: x" in edge.file(after, "sites/a/settings.yaml")
        assert f"refs/heads/{after}" in edge.git("for-each-ref", "--contains", commit)
        line = ("--stage", "test", "--variant", "a", "--revision", revision)
        approved = fleet.later(minutes=1).run(
            "approve", "monitoring", *line, "--by", "Ann <ann@example.com>"
        )
        assert approved.code == 4, approved.err
        fleet.release("v2")
    assert fleet.published()["sites/a"] == ""
    edge.fsck()


def test_an_unpublishable_variant_holds_the_others_of_its_draft(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"a": ("dev", "edge"), "b": ("dev", "edge")})
    fleet.write("policy.yaml", per("Stage", SIGNED))
    fleet.sweep()
    approve(fleet, "a")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/a": "", "sites/b": ""}
    assert fleet.condition("sites/a")[0] == "StageDraftPending"
    approve(fleet, "b")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {"sites/a": "v1", "sites/b": "v1"}


def test_a_suspended_variant_leaves_and_the_others_go_on(fleet: Fleet):
    fleet.sweep()
    who = ("--by", "Ann <ann@example.com>", "--reason", "looks odd")
    assert fleet.later(minutes=1).run("suspend", "monitoring", "--variant", "c00", *who).code == 0
    fleet.later(minutes=1).settle()
    published = fleet.published()
    assert (published["sites/c00"], published["sites/c06"]) == ("", "v1")
    assert fleet.repos["r0"].drafts() == []
    assert fleet.later(minutes=1).run("resume", "monitoring", "--variant", "c00", *who).code == 0
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c00"] == "v1"


def test_a_suspended_policy_stays_as_it_is(fleet: Fleet):
    fleet.sweep()
    fleet.write("policy.yaml", per("Stage").replace("spec:\n", "spec:\n  suspend: true\n", 1))
    before = fleet.refs()
    fleet.later(minutes=1).sweep()
    assert fleet.refs() == before


def test_a_branch_that_a_person_deleted_is_written_again(fleet: Fleet):
    fleet.sweep()
    repo = fleet.repos["r0"]
    tip = repo.refs()[f"refs/heads/drafts/default/{DEV}"]
    repo.git("update-ref", "-d", f"refs/heads/drafts/default/{DEV}")
    fleet.later(minutes=1).sweep()
    assert repo.refs()[f"refs/heads/drafts/default/{DEV}"] == tip


def test_a_branch_of_somebody_else_is_left_alone(fleet: Fleet):
    repo = fleet.repos["r0"]
    commit = repo.commit(f"drafts/default/{DEV}", {"notes.txt": "mine\n"})
    fleet.sweep()
    assert repo.refs()[f"refs/heads/drafts/default/{DEV}"] == commit
    assert fleet.condition("sites/c00")[0] == "PathTaken"
    assert fleet.repos["r1"].drafts() == [DEV]


@pytest.mark.parametrize("how", ["merge", "squash", "fast-forward"])
def test_a_person_merges_the_branch(fleet: Fleet, how: str):
    fleet.sweep()
    repo, branch = fleet.repos["r0"], f"drafts/default/{DEV}"
    tip = repo.refs()[f"refs/heads/{branch}"]
    parents = {"merge": ["-p", "main", "-p", tip], "squash": ["-p", "main"]}
    merged = tip
    if how in parents:
        merged = repo.git("commit-tree", f"{tip}^{{tree}}", *parents[how], "-m", how)
    repo.git("update-ref", "refs/heads/main", merged)
    fleet.later(minutes=1).settle()
    status = fleet.variants()["sites/c00"]["published"]
    assert (status["revision"], fleet.published()["sites/c06"]) == ("v1", "v1")
    assert repo.refs()["refs/tags/sites/c00/v1"] == merged
    assert repo.drafts() == []
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c06"] == "v2"


@pytest.mark.parametrize("how", ["merge", "fast-forward"])
@pytest.mark.parametrize("draft", ["Stage", "Variant"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_person_merges_a_revision_while_the_next_one_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_first: bool, draft: str, how: str
):
    fleet = Fleet.build(tmp_path, {"a": ("dev", "edge")})
    fleet.write("policy.yaml", per(draft, SIGNED))
    repo = fleet.repos["edge"]
    fleet.settle()
    if not is_first:
        approve(fleet, "a")
        fleet.settle()
        fleet.release("v2")
        fleet.later(minutes=1).settle()
    [name], change = repo.drafts(), MirrorStore.change
    branch = f"drafts/default/{name}"
    tip = repo.refs()[f"refs/heads/{branch}"]

    def merge_first(store, changes):
        patch.undo()
        parents = ("-p", "main", "-p", tip)
        merge = repo.git("commit-tree", f"{tip}^{{tree}}", *parents, "-m", how)
        repo.git("update-ref", "refs/heads/main", merge if how == "merge" else tip)
        return change(store, changes)

    merged, newer = ("v1", "v2") if is_first else ("v2", "v3")
    fleet.release(newer)
    with monkeypatch.context() as patch:
        patch.setattr(MirrorStore, "change", merge_first)
        fleet.later(minutes=1).sweep()
    replicas = f"replicas: {newer[1]}"
    assert replicas in repo.file(branch, "sites/a/deployment.yaml")
    repo.commit(branch, {"sites/a/mine.txt": "of a person\n"})
    swept = fleet.later(minutes=1).sweep("-o", "json")
    # The release of a draft of its own is recorded after it: that of what was merged still counts.
    assert ("OutOfBand" in swept.reasons) == (draft == "Stage")
    assert fleet.published() == {"sites/a": merged}
    assert repo.refs()[f"refs/tags/sites/a/{merged}"] == repo.refs()["refs/heads/main"]
    fleet.settle()
    assert replicas in repo.file(branch, "sites/a/deployment.yaml")
    assert repo.file(branch, "sites/a/mine.txt") == "of a person\n"
    approve(fleet, "a", newer)
    fleet.settle()
    assert fleet.published() == {"sites/a": newer}
    assert repo.tags() == [f"sites/a/v{number}" for number in range(1, int(newer[1]) + 1)]


def test_lost_records_are_found_again(fleet: Fleet):
    roll_out(fleet, "v1")
    before, refs = fleet.published(), fleet.refs()
    fleet.state = "fresh"
    assert fleet.sweep("--new-records").code == 0
    assert (fleet.published(), fleet.refs()) == (before, refs)


def test_rollback_goes_through_the_stage_s_draft(fleet: Fleet):
    roll_out(fleet, "v1")
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c00"] == "v2"
    who = ("--by", "Ann <ann@example.com>", "--reason", "slow")
    back = fleet.later(minutes=1).run("rollback", "--yes", "monitoring", "--stage", "dev", *who)
    assert back.code == 0, back.err
    fleet.later(minutes=1).settle()
    assert {fleet.published()[f"sites/c{n:02}"] for n in (0, 3, 6, 9)} == {"v1"}


def test_a_target_that_is_gone_leaves_the_draft_with_its_removal(fleet: Fleet):
    fleet.sweep()
    fleet.remove("site-c00.yaml")
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c06"] == "v1"
    assert fleet.repos["r0"].drafts() == []
    assert "sites/c00/Kptfile" not in fleet.repos["r0"].files()


def test_a_conflict_is_decided_before_its_draft_is_written(fleet: Fleet):
    roll_out(fleet, "v1")
    fleet.repos["r0"].commit("main", {"sites/c00/deployment.yaml": MINE})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    published = fleet.published()
    assert (published["sites/c00"], published["sites/c06"]) == ("v1", "v2")
    assert fleet.condition("sites/c00")[0] == "MergeConflict"
    who = ("--by", "Ann <ann@example.com>", "--reason", "theirs is right")
    shown = fleet.run("explain", "monitoring/dev").out
    assert "fanout resolve monitoring --variant" in shown
    decided = fleet.later(minutes=1).run("resolve", "monitoring", "--take", "local", *who)
    assert decided.code == 0, decided.err
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c00"] == "v2"
    assert "replicas: 9" in fleet.repos["r0"].file("main", "sites/c00/deployment.yaml")


def test_without_automation_a_person_promotes_what_is_not_written_yet(fleet: Fleet):
    fleet.write("promotion.yaml", PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', ""))
    fleet.sweep()
    assert fleet.repos["r0"].drafts() == []
    assert fleet.condition("sites/c00")[0] == "AutomationOff"
    assert "+  replicas: 1" in fleet.run("diff", "c00").out
    who = ("--by", "Ann <ann@example.com>", "--reason", "looked at")
    promoted = fleet.later(minutes=1).run(
        "promote", "monitoring", "--stage", "dev", "--revision", "v1", *who
    )
    assert promoted.code == 0, promoted.err
    assert fleet.repos["r0"].drafts() == [DEV]
    fleet.later(minutes=1).settle()
    assert fleet.published()["sites/c00"] == "v1"


def test_an_unwritten_draft_cannot_be_approved(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"a": ("dev", "edge")})
    fleet.write("policy.yaml", per("Stage", SIGNED))
    fleet.write("promotion.yaml", PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', ""))
    fleet.sweep()
    arguments = ("--revision", "v1", "--by", "Ann <ann@example.com>")
    refused = fleet.later(minutes=1).run("approve", "monitoring", "--stage", "dev", *arguments)
    assert refused.code == 4
    assert "when they are released" in refused.err
    assert fleet.run("get", "approvals", "-o", "json").items == []


@pytest.mark.parametrize(("old", "new"), [("Variant", "Stage"), ("Stage", "Variant")])
def test_a_policy_changes_how_drafts_are_made(tmp_path: Path, old: str, new: str):
    fleet = build(tmp_path, 6, old)
    fleet.sweep()
    fleet.write("policy.yaml", per(new))
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    roll_out(fleet, "v2")
    assert set(fleet.published().values()) == {"v2"}
    assert all(not repo.drafts() for repo in fleet.repos.values())


ACTIONS = st.lists(
    st.sampled_from(["release", "report", "fail", "wait", "inputs", "edit"]), min_size=2, max_size=6
)


@settings(max_examples=4, phases=(Phase.explicit, Phase.generate))
@given(ACTIONS)
def test_the_two_kinds_of_draft_have_the_same_results(actions: list[str]):
    """Verdicts, released revisions and the packages in force do not depend on the kind of draft."""
    with pytest.MonkeyPatch.context() as patch:
        for role in ("AUTHOR", "COMMITTER"):  # so that upstream's commits have the same ids
            patch.setenv(f"GIT_{role}_DATE", "2026-03-01T00:00:00+00:00")
        compare(actions)


def compare(actions: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        worlds = [play(Path(directory) / "world", draft, actions) for draft in ("Variant", "Stage")]
    assert worlds[0] == worlds[1]


def play(root: Path, draft: str, actions: list[str]) -> object:
    """What is in force, and what the stages say, after each action has come to rest."""
    fleet = build(root, 6, draft)
    fleet.settle(30)
    newest, seen = 1, []
    for number, action in enumerate(actions):
        fleet.later(minutes=7)
        if action == "release":
            newest += 1
            fleet.release(f"v{newest}")
        elif action in ("report", "fail"):
            fleet.report("dev", f"v{newest}", "passed" if action == "report" else "failed")
        elif action == "wait":
            fleet.later(hours=2)
        elif action == "inputs":
            fleet.site("c01", "test", "r0", retention=f"{number}d")
        elif "sites/c00/Kptfile" in fleet.repos["r0"].files():
            fleet.repos["r0"].commit("main", {"sites/c00/note.txt": f"{number}\n"})
        fleet.settle(30)
        seen.append(fleet.published())
    fleet.later(minutes=7).report("dev", f"v{newest}")
    fleet.settle(30)
    fleet.later(hours=2).settle(30)
    stages = fleet.run("get", "stages", "-o", "json").views
    seen.append([(it["stage"], it["candidate"], it["verdict"]) for it in stages])
    trees = [
        repo.git("rev-parse", "main:sites", check=False)
        for name, repo in fleet.repos.items()
        if name != "blueprints"
    ]
    shutil.rmtree(root)
    return trees, seen


def test_sixty_variants_have_at_most_eighteen_branches(tmp_path: Path):
    sites = {f"c{n:02}": (("dev", "test", "prod")[n % 3], f"r{n // 3 % 6}") for n in range(60)}
    fleet = Fleet.build(tmp_path, sites)
    fleet.write(
        "policy.yaml", per("Stage", "  stages: [{name: dev}, {name: test}, {name: prod}]\n")
    )
    assert fleet.sweep().out == "60 released, 60 drafts written\n"
    drafts = [draft for repo in fleet.repos.values() for draft in repo.drafts()]
    assert len(drafts) == 18
    assert fleet.later(minutes=1).sweep().out == "60 published\n"


def test_a_flat_repository_is_sent_little_more_than_its_content(tmp_path: Path):
    """A chain of commits on a wide directory costs less than half of what is in the packages."""
    fleet = Fleet.build(tmp_path, {f"c{n:03}": ("dev", "edge") for n in range(200)})
    fleet.write("policy.yaml", per("Stage"))
    fleet.sweep()
    fleet.later(minutes=1).sweep()
    edge = fleet.repos["edge"]
    sent = sum(path.stat().st_size for path in edge.path.glob("objects/*/*"))
    alone = edge.git("commit-tree", "main^{tree}", "-m", "all of it in one commit")
    packed = subprocess.run(
        ["git", "pack-objects", "--revs", "--stdout", "-q"],
        cwd=edge.path,
        input=f"{alone}\n".encode(),
        capture_output=True,
        check=True,
    )
    assert sent < 2 * len(packed.stdout)


def test_a_variant_leaves_whose_path_another_installation_drafts(tmp_path: Path):
    one = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    one.write("policy.yaml", per("Stage", SIGNED))
    one.sweep()
    config = one.write("../two.yaml", OTHER)
    two = replace(one, policies="two", state="state-two", options=("--config", str(config)))
    for path in (tmp_path / one.policies).iterdir():
        two.write(path.name, path.read_text())
    two.site("ber", "dev", "edge")
    for _ in range(2):
        two.sweep()
    reason, sentence = two.condition("sites/ams")
    assert reason == "OtherInstallation"
    assert sentence == (
        "edge:sites/ams has a draft of installation default; one installation owns a path"
    )
    assert two.states()["sites/ber"] == "Released"
    written = set(two.repos["edge"].files(f"drafts/two/{DEV}"))
    assert {path.rpartition("/")[0] for path in written} == {"", "sites/ber"}
    # It comes back when the other installation has left the path.
    one.repos["edge"].git("update-ref", "-d", f"refs/heads/drafts/default/{DEV}")
    two.later(minutes=1).sweep()
    assert two.condition("sites/ams")[0] != "OtherInstallation"


OTHER = "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\ninstallId: two\n"
