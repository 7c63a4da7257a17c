"""In a repository with a forge, packages leave the branch by pull requests alone."""

import pytest
from fleet import PACKAGE, PROMOTION, Content, Repo
from forge_fleet import ForgeFleet, GiteaRepo
from gitea_server import Gitea

pytestmark = pytest.mark.forge

AMS, BER, CPH = "sites/ams", "sites/ber", "sites/cph"
MANUAL = PROMOTION + "  merge: Manual\n"
REMOVAL = "drafts/default/_removals/default.monitoring/dev"
RENDERED = "fanout/default/rendered"
MINE = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 9")
WHY = ("--reason", "the site is closed", "--by", "Ann <ann@example.com>")


@pytest.fixture
def fleet(gitea: Gitea, tmp_path) -> ForgeFleet:
    """Three sites of one stage in one repository, all published, which gets a forge then."""
    sites = dict.fromkeys(("ams", "ber", "cph"), ("dev", "edge"))
    fleet = ForgeFleet.on(gitea, tmp_path / "fleet", sites)
    declaration = (fleet.root / fleet.policies / "repository-edge.yaml").read_text()
    fleet.write("repository-edge.yaml", declaration.replace("  forge: {type: gitea}\n", ""))
    fleet.settle()
    assert set(fleet.published().values()) == {"v1"}
    fleet.write("repository-edge.yaml", declaration)
    fleet.write("promotion.yaml", MANUAL)
    return fleet.later(minutes=1)


def edge(fleet: ForgeFleet) -> GiteaRepo:
    repo = fleet.repos["edge"]
    assert isinstance(repo, GiteaRepo)
    return repo


def head(fleet: ForgeFleet, branch: str) -> str:
    return edge(fleet).refs().get(f"refs/heads/{branch}", "")


def packages(fleet: ForgeFleet, branch: str = "main") -> set[str]:
    return {it.rpartition("/")[0] for it in edge(fleet).files(branch)} - {""}


def sweep(fleet: ForgeFleet, *options: str) -> str:
    swept = fleet.sweep(*options)
    assert swept.code in (0, 3), swept.err
    return swept.out


def merge(fleet: ForgeFleet, branch: str = REMOVAL) -> None:
    """Merge a branch into `main` as a person who has read it."""
    repo = edge(fleet)
    repo.commit("main", {"notes.txt": "n\n"}, by="ann")  # so that it is no fast-forward
    work = repo.work
    commands = (
        ("fetch", "-q", str(repo.path), "+refs/heads/*:refs/heads/*"),
        ("merge-tree", "--write-tree", "main", branch),
    )
    tree = [git(work, *it) for it in commands][-1]
    made = git(work, "commit-tree", tree, "-p", "main", "-p", branch, "-m", "Merge it")
    repo.push(f"{made}:refs/heads/main", by="ann")


def git(work, *args: str) -> str:
    person = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    return Repo(work).git(*person, *args)


def name_of(fleet: ForgeFleet, path: str) -> str:
    items = fleet.run("get", "variants", "-o", "json").items
    [name] = [it["metadata"]["name"] for it in items if it["spec"]["downstream"]["package"] == path]
    return name


def target_messages(fleet: ForgeFleet) -> list[str]:
    items = fleet.run("get", "targets", "-o", "json").items
    return [it["holds"][0]["message"] for it in items if it["holds"]]


def test_a_target_that_is_gone_is_a_branch_and_nothing_on_main(fleet: ForgeFleet):
    main = head(fleet, "main")
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    assert head(fleet, "main") == main
    assert packages(fleet) - packages(fleet, REMOVAL) == {AMS}
    message = edge(fleet).git("log", "-1", "--format=%B", REMOVAL)
    assert message.startswith("Remove sites/ams\n\n* sites/ams: its target is gone\n")
    assert f"Fanout-Removed: {AMS}" in message
    assert any(f"pull request of {REMOVAL}" in it for it in target_messages(fleet))
    # It is on record, and its rendering kept, for as long as the package is there.
    assert [it for it in edge(fleet).files(RENDERED) if it.startswith(f"published/{AMS}/")]
    before = edge(fleet).refs()
    sweep(fleet.later(minutes=1))
    assert edge(fleet).refs() == before


def test_a_removal_that_a_person_merges_is_completed(fleet: ForgeFleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    merge(fleet)
    assert packages(fleet) == {BER, CPH}
    sweep(fleet.later(minutes=1))
    assert edge(fleet).drafts() == []
    assert [it for it in edge(fleet).files(RENDERED) if "ams" in it] == []
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert not any("ams" in it for it in target_messages(fleet))
    assert edge(fleet).tags() == [f"{it}/v1" for it in (AMS, BER, CPH)]
    before = edge(fleet).refs()
    sweep(fleet.later(minutes=1))
    assert edge(fleet).refs() == before
    edge(fleet).fsck()


def test_one_that_a_person_takes_off_main_is_completed_and_the_others_stay_in(fleet: ForgeFleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    fleet.remove("site-ber.yaml")
    sweep(fleet.later(minutes=1))
    # Nobody has committed to it: it is written anew, on the head of `main`.
    assert edge(fleet).git("log", "--format=%P %s", f"main..{REMOVAL}") == (
        f"{head(fleet, 'main')} Remove sites/ams and sites/ber"
    )
    files = [it for it in edge(fleet).files() if it.startswith(f"{AMS}/")]
    edge(fleet).commit("main", dict.fromkeys(files), by="ann")
    sweep(fleet.later(minutes=1))
    assert edge(fleet).git("log", "--format=%P %s", f"main..{REMOVAL}") == (
        f"{head(fleet, 'main')} Remove sites/ber"
    )
    assert set(fleet.published()) == {CPH}


def test_commits_of_people_stay_and_the_next_package_is_appended(fleet: ForgeFleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    person = edge(fleet).commit(REMOVAL, {"README.md": "# without ams\n"}, by="bob")
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == person
    fleet.remove("site-ber.yaml")
    sweep(fleet.later(minutes=1))
    assert edge(fleet).git("log", "-1", "--format=%P %s", REMOVAL) == f"{person} Remove sites/ber"
    assert packages(fleet, REMOVAL) == {CPH}
    fleet.site("ams", "dev", "edge")
    sweep(fleet.later(minutes=1))
    assert edge(fleet).git("log", "-1", "--format=%s", REMOVAL) == "Keep sites/ams"
    assert packages(fleet, REMOVAL) == {AMS, CPH}
    merge(fleet)
    sweep(fleet.later(minutes=1))
    assert edge(fleet).file("main", "README.md") == "# without ams\n"
    assert fleet.published() == {AMS: "v1", CPH: "v1"}
    assert edge(fleet).drafts() == []


def target_comes_back(fleet: ForgeFleet) -> None:
    fleet.site("ams", "dev", "edge")


def policy_is_suspended(fleet: ForgeFleet) -> None:
    assert fleet.run("suspend", "monitoring", *WHY).code == 0


def package_is_edited(fleet: ForgeFleet) -> None:
    edge(fleet).commit("main", {f"{AMS}/deployment.yaml": MINE}, by="bob")


def automation_is_off(fleet: ForgeFleet) -> None:
    fleet.write("promotion.yaml", MANUAL.replace('  autoPromotion: {stages: ["*"]}\n', ""))


ENDS = [target_comes_back, policy_is_suspended, package_is_edited, automation_is_off]


@pytest.mark.parametrize("happens", ENDS)
def test_a_removal_that_ends_takes_its_branch_away(fleet: ForgeFleet, happens):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    happens(fleet)
    main = head(fleet, "main")
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == ""
    assert head(fleet, "main") == main
    assert AMS in packages(fleet)


def test_what_only_delays_a_removal_leaves_its_branch(fleet: ForgeFleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    before = head(fleet, REMOVAL)
    sweep(fleet.later(minutes=1), "--drafts-only")
    closed = '  windows: [{deny: {schedule: "* * * * *", duration: 1h}}]\n'
    fleet.write("promotion.yaml", MANUAL + closed)
    sweep(fleet.later(minutes=1))
    fleet.write("promotion.yaml", MANUAL + "  windows: here\n")
    fleet.later(minutes=1).sweep()
    assert head(fleet, REMOVAL) == before


def test_a_person_removes_by_a_branch(fleet: ForgeFleet):
    name = name_of(fleet, AMS)
    fleet.remove("site-ams.yaml")
    package_is_edited(fleet)
    automation_is_off(fleet)
    main = head(fleet, "main")
    done = fleet.run("remove", "monitoring", name, "--edited", *WHY)
    assert (done.code, done.err) == (0, "")
    assert f"{name} waits for its pull request: branch {REMOVAL} removes {AMS} in " in done.out
    assert (head(fleet, "main"), AMS in packages(fleet, REMOVAL)) == (main, False)
    assert "* sites/ams: the site is closed" in edge(fleet).git("log", "-1", "--format=%B", REMOVAL)
    before = head(fleet, REMOVAL)
    assert fleet.run("remove", "monitoring", name, "--edited", *WHY).code == 0
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == before
    merge(fleet)
    sweep(fleet.later(minutes=1))
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert edge(fleet).drafts() == []


def test_a_branch_of_others_at_its_name_is_left_alone(fleet: ForgeFleet):
    files: dict[str, Content] = {"mine.txt": "x\n"}
    foreign = edge(fleet).commit(REMOVAL, files, by="bob")
    name = name_of(fleet, AMS)
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    assert head(fleet, REMOVAL) == foreign
    done = fleet.run("remove", "monitoring", name, *WHY)
    assert done.code != 0
    assert f"branch {REMOVAL} of edge has nothing but commits of others" in done.err
    assert AMS in packages(fleet)
