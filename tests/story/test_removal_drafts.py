"""Branches that remove packages, in repositories whose forge does not answer: Git is enough."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, POLICY, PROMOTION, Fleet
from killing import killer
from moving import POLICY as MOVING
from moving import edit, place
from removal_branches import (
    AMS,
    BER,
    CPH,
    MERGED,
    MINE,
    REMOVAL,
    RENDERED,
    WHY,
    automation_is_off,
    build_with_forge,
    configure,
    head,
    host_repository,
    merge,
    name_of,
    package_is_edited,
    packages,
    serve_repositories,
    settle,
    target_comes_back,
)


@pytest.fixture(scope="module", autouse=True)
def host() -> Iterator[None]:
    with serve_repositories():
        yield


@company
def fleet(root: Path) -> Fleet:
    """Three sites of one stage in one repository."""
    return build_with_forge(root)


def sweep(fleet: Fleet, *options: str) -> str:
    swept = fleet.sweep(*options)
    assert swept.code in (0, 3), swept.err
    return swept.out


def target_messages(fleet: Fleet) -> list[str]:
    items = fleet.run("get", "targets", "-o", "json").views
    return [hold["message"] for it in items for hold in it["holds"]]


def test_a_target_that_is_gone_is_a_branch_and_nothing_on_main(fleet: Fleet):
    main = head(fleet, "main")
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    assert head(fleet, "main") == main
    assert packages(fleet) - packages(fleet, REMOVAL) == {AMS}
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", REMOVAL)
    assert message.startswith("Remove sites/ams\n\n* sites/ams: its target is gone\n")
    assert f"Fanout-Removed: {AMS}" in message
    assert any(f"pull request of {REMOVAL}" in it for it in target_messages(fleet))
    # It is on record, and its rendering kept, for as long as the package is there.
    assert [it for it in fleet.repos["edge"].files(RENDERED) if it.startswith(f"published/{AMS}/")]
    before = fleet.repos["edge"].refs()
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].refs() == before


@pytest.mark.parametrize("how", MERGED)
def test_a_removal_that_a_person_merges_is_completed(fleet: Fleet, how: str):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    merge(fleet, how)
    assert packages(fleet) == {BER, CPH}
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].drafts() == []
    assert [it for it in fleet.repos["edge"].files(RENDERED) if "ams" in it] == []
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert not any("ams" in it for it in target_messages(fleet))
    assert fleet.repos["edge"].tags() == [f"{it}/v1" for it in (AMS, BER, CPH)]
    before = fleet.repos["edge"].refs()
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].refs() == before
    fleet.repos["edge"].fsck()


def test_a_removal_that_a_person_made_is_completed_and_the_others_stay_in_the_branch(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    fleet.remove("site-ber.yaml")
    sweep(fleet.later(minutes=1))
    # Nobody has committed to it: it is written anew, on the head of `main`.
    assert fleet.repos["edge"].git("log", "--format=%P %s", f"main..{REMOVAL}") == (
        f"{head(fleet, 'main')} Remove sites/ams and sites/ber"
    )
    files = [it for it in fleet.repos["edge"].files() if it.startswith(f"{AMS}/")]
    fleet.repos["edge"].commit("main", dict.fromkeys(files))
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].git("log", "--format=%P %s", f"main..{REMOVAL}") == (
        f"{head(fleet, 'main')} Remove sites/ber"
    )
    assert set(fleet.published()) == {CPH}


def test_commits_of_people_stay_and_the_next_package_is_appended(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    # What the target branch has alike is no change outside of the packages.
    fleet.repos["edge"].commit("main", {"README.md": "# without ams\n"})
    person = fleet.repos["edge"].commit(REMOVAL, {"README.md": "# without ams\n"})
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == person
    fleet.remove("site-ber.yaml")
    sweep(fleet.later(minutes=1))
    assert (
        fleet.repos["edge"].git("log", "-1", "--format=%P %s", REMOVAL)
        == f"{person} Remove sites/ber"
    )
    assert packages(fleet, REMOVAL) == {CPH}
    fleet.site("ams", "dev", "edge")
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].git("log", "-1", "--format=%s", REMOVAL) == "Keep sites/ams"
    assert packages(fleet, REMOVAL) == {AMS, CPH}
    merge(fleet)
    sweep(fleet.later(minutes=1))
    assert fleet.published() == {AMS: "v1", CPH: "v1"}
    assert fleet.repos["edge"].drafts() == []


def put_beside(fleet: Fleet) -> str:
    return fleet.repos["edge"].commit(REMOVAL, {"README.md": "# without ams\n"})


def change_other_package(fleet: Fleet) -> str:
    return fleet.repos["edge"].commit(REMOVAL, {f"{CPH}/deployment.yaml": MINE})


def amend(fleet: Fleet) -> str:
    """Replace the commit of fanout by one with the same message and another file."""
    edge, tip = fleet.repos["edge"], head(fleet, REMOVAL)
    message, parent = edge.git("log", "-1", "--format=%B", tip), edge.git("rev-parse", f"{tip}^")
    tree = edge.git("rev-parse", f"{put_beside(fleet)}^{{tree}}").strip()
    commit = edge.git("commit-tree", tree, "-p", parent.strip(), "-F", "-", input=message).strip()
    edge.git("update-ref", f"refs/heads/{REMOVAL}", commit)
    return commit


CHANGED = [(put_beside, "README.md"), (change_other_package, f"{CPH}/deployment.yaml"),
           (amend, "README.md")]  # fmt: skip


@pytest.mark.parametrize(("change", "path"), CHANGED)
def test_a_file_outside_of_the_packages_holds_the_branch(fleet: Fleet, change, path: str):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    theirs = change(fleet)
    fleet.remove("site-ber.yaml")
    for _ in range(2):
        sweep(fleet.later(minutes=1))
        assert head(fleet, REMOVAL) == theirs
    fault = f"{path}: the file is outside of package {AMS}, and its change is no removal"
    assert sum(fault in it for it in target_messages(fleet)) >= 2, target_messages(fleet)
    removed = fleet.run("remove", "monitoring", "--all-gone", *WHY)
    assert (removed.code, fault in removed.err) == (2, True), removed.err
    assert head(fleet, REMOVAL) == theirs
    # Nothing is to be removed any more, and the branch alone has the change.
    for site in ("ams", "ber"):
        fleet.site(site, "dev", "edge")
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == theirs
    fleet.repos["edge"].commit(REMOVAL, {path: fleet.repos["edge"].file("main", path)})
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == ""


def test_the_branch_stays_if_its_package_leaves_main_by_another_way(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    theirs = put_beside(fleet)
    files = [it for it in fleet.repos["edge"].files() if it.startswith(f"{AMS}/")]
    fleet.repos["edge"].commit("main", dict.fromkeys(files))
    fleet.remove("site-ber.yaml")
    for _ in range(2):
        sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == theirs


def test_a_merge_of_the_branch_has_its_other_files_too(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    put_beside(fleet)
    sweep(fleet.later(minutes=1))
    merge(fleet)
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].file("main", "README.md") == "# without ams\n"
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert fleet.repos["edge"].drafts() == []


def test_packages_that_people_put_back_on_the_branch_are_left_to_them(fleet: Fleet):
    kept = {it: fleet.repos["edge"].file("main", it) for it in fleet.repos["edge"].files()}
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    person = fleet.repos["edge"].commit(
        REMOVAL, {it: text for it, text in kept.items() if it.startswith(f"{AMS}/")}
    )
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == person
    fleet.site("ams", "dev", "edge")
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == ""


def test_a_person_removes_by_a_branch(fleet: Fleet):
    name = name_of(fleet, AMS)
    fleet.remove("site-ams.yaml")
    package_is_edited(fleet)
    automation_is_off(fleet)
    main = head(fleet, "main")
    done = fleet.run("remove", "monitoring", name, "--edited", *WHY)
    assert (done.code, done.err) == (0, "")
    assert f"{name} waits for its pull request: branch {REMOVAL} removes {AMS} in " in done.out
    assert (head(fleet, "main"), AMS in packages(fleet, REMOVAL)) == (main, False)
    assert "* sites/ams: the site is closed" in fleet.repos["edge"].git(
        "log", "-1", "--format=%B", REMOVAL
    )
    before = head(fleet, REMOVAL)
    assert fleet.run("remove", "monitoring", name, "--edited", *WHY).code == 0
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == before
    merge(fleet)
    sweep(fleet.later(minutes=1))
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert fleet.repos["edge"].drafts() == []


def by_sweeps(fleet: Fleet, name: str) -> None:
    swept = fleet.sweep()
    assert "failed" not in swept.out, swept.err


def by_commands(fleet: Fleet, name: str) -> None:
    automation_is_off(fleet)
    done = fleet.run("remove", "monitoring", name, *WHY)
    assert done.code == 0, done.err


@pytest.mark.parametrize("remove", [by_sweeps, by_commands])
def test_a_removal_branch_continues_by_commits_without_forced_pushes(fleet: Fleet, remove):
    repo = fleet.repos["edge"]
    repo.git("config", "receive.denyNonFastForwards", "true")
    before = ""
    for site in ("ams", "ber"):
        name = name_of(fleet, f"sites/{site}")
        fleet.remove(f"site-{site}.yaml")
        remove(fleet.later(minutes=1), name)
        assert head(fleet, REMOVAL) != before
        if before:
            repo.git("merge-base", "--is-ancestor", before, REMOVAL)
        before = head(fleet, REMOVAL)
        repo.commit("main", {f"{site}.txt": "another change\n"})
    assert packages(fleet, REMOVAL) == {CPH}
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == before, "it is read as written"
    target_comes_back(fleet)
    swept = fleet.later(minutes=1).sweep()
    assert "failed" not in swept.out, swept.err
    assert packages(fleet, REMOVAL) == {AMS, CPH}
    repo.git("merge-base", "--is-ancestor", before, REMOVAL)
    merge(fleet)
    sweep(fleet.later(minutes=1))
    assert set(fleet.published()) == {AMS, CPH}
    repo.fsck()


def test_a_branch_of_others_at_its_name_is_left_alone(fleet: Fleet):
    foreign = fleet.repos["edge"].commit(REMOVAL, {"mine.txt": "x\n"})
    name = name_of(fleet, AMS)
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    assert head(fleet, REMOVAL) == foreign
    foreign_branch = f"branch {REMOVAL} of edge has nothing but commits of others; rename or"
    assert any(foreign_branch in it for it in target_messages(fleet))
    done = fleet.run("remove", "monitoring", name, *WHY)
    assert done.code != 0
    assert foreign_branch in done.err
    assert AMS in packages(fleet)


@company
def moved(root: Path) -> Fleet:
    """A site that has moved to another repository, from one that has a forge now."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.repository("core")
    made.write("policy.yaml", MOVING)
    place(made, "ams", AMS)
    place(made, "ber", BER)
    settle(made)
    place(made, "ams", "eu/ams", "core")
    made.later(minutes=1).sweep()
    made.later(minutes=1).sweep()
    assert made.published() == {"eu/ams": "v1", BER: "v1"}
    return made.later(minutes=1)


def test_leftovers_of_a_move_are_removed_by_the_branch(moved: Fleet):
    main = head(moved, "main")
    sweep(moved)
    requested = f"edge:{AMS} goes with the pull request of {REMOVAL}"
    assert requested in moved.sweep().err
    assert head(moved, "main") == main
    assert packages(moved) - packages(moved, REMOVAL) == {AMS}
    message = moved.repos["edge"].git("log", "-1", "--format=%B", REMOVAL)
    assert "* sites/ams: its variant is eu/ams in core now\n" in message
    before = moved.refs()
    sweep(moved.later(minutes=1))
    assert moved.refs() == before
    merge(moved)
    sweep(moved.later(minutes=1))
    assert moved.repos["edge"].drafts() == []
    assert [it for it in moved.repos["edge"].files(RENDERED) if "ams" in it] == []
    assert moved.published() == {"eu/ams": "v1", BER: "v1"}
    assert sweep(moved.later(minutes=1)) == "nothing to do\n"


def moves_back(fleet: Fleet) -> None:
    place(fleet, "ams", AMS)


def old_place_is_edited(fleet: Fleet) -> None:
    edit(fleet)


def variant_is_suspended(fleet: Fleet) -> None:
    assert fleet.run("suspend", "monitoring", "--stage", "dev", *WHY).code == 0


@pytest.mark.parametrize("happens", [moves_back, old_place_is_edited, variant_is_suspended])
def test_a_removal_that_is_called_off_deletes_its_branch(moved: Fleet, happens):
    sweep(moved)
    happens(moved)
    sweep(moved.later(minutes=1))
    assert head(moved, REMOVAL) == ""
    assert AMS in packages(moved)


def test_a_person_s_word_about_what_a_move_left_stands(moved: Fleet):
    """Without automation, and for what was edited since."""
    automation_is_off(moved)
    edit(moved)
    sweep(moved)
    assert head(moved, REMOVAL) == ""
    done = moved.run("remove", "monitoring", "eu/ams", "--edited", *WHY)
    assert (done.code, "waits for its pull request" in done.out) == (0, True), done.err
    before = head(moved, REMOVAL)
    sweep(moved.later(minutes=1))
    assert head(moved, REMOVAL) == before != ""
    merge(moved)
    sweep(moved.later(minutes=1))
    assert (packages(moved), moved.repos["edge"].drafts()) == ({BER}, [])
    assert sweep(moved.later(minutes=1)) == "nothing to do\n"


def test_earlier_stages_wait_until_the_packages_of_later_ones_are_gone(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    fleet.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    host_repository(fleet, has_forge=False)
    fleet.settle()
    fleet.report("dev", "v1")
    settle(fleet)
    assert fleet.published() == {AMS: "v1", BER: "v1"}
    names = [name_of(fleet, path) for path in (AMS, BER)]
    for site in ("ams", "ber"):
        fleet.remove(f"site-{site}.yaml")
    done = fleet.run("remove", "monitoring", "--all-gone", *WHY)
    assert done.code == 0, done.err
    assert f"{names[1]} waits for its pull request" in done.out
    assert f"{names[0]} waits for variants of other stages; a later sweep removes it\n" in done.out
    prod = REMOVAL.replace("/dev", "/prod")
    drafts = [it.removeprefix("drafts/default/") for it in (prod, REMOVAL)]
    assert fleet.repos["edge"].drafts() == drafts[:1]
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].drafts() == drafts[:1]
    fleet.repos["edge"].git("update-ref", "refs/heads/main", prod)
    sweep(fleet.later(minutes=1))
    sweep(fleet.later(minutes=1))
    assert fleet.repos["edge"].drafts() == drafts[1:]


def test_a_target_that_is_back_after_the_merge_gets_its_package_anew(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    sweep(fleet)
    merge(fleet)
    target_comes_back(fleet)
    sweep(fleet.later(minutes=1))
    assert head(fleet, REMOVAL) == ""
    assert fleet.repos["edge"].drafts() == ["_stages/default.monitoring/dev"]
    assert [
        it for it in fleet.repos["edge"].files(RENDERED) if it.startswith(f"published/{AMS}")
    ] == []
    assert fleet.targets()["ams"]["state"] == "Proposed"


def drafted(fleet: Fleet) -> None:
    """The pass that writes the branch."""


def completed(fleet: Fleet) -> None:
    """The pass that finds it merged."""
    fleet.sweep()
    fleet.repos["edge"].git("update-ref", "refs/heads/main", REMOVAL)
    fleet.later(minutes=1)


def completed_and_back(fleet: Fleet) -> None:
    """The pass that finds it merged, and its target back."""
    completed(fleet)
    fleet.write("policy.yaml", PLAIN)


@pytest.mark.diagonal
@pytest.mark.parametrize("before", [drafted, completed, completed_and_back])
def test_a_pass_that_is_killed_anywhere_is_continued(
    tmp_path: Path, before: Callable[[Fleet], None]
):
    root = tmp_path / "live"
    root.mkdir()
    fleet = Fleet(root)
    fleet.repository("blueprints")
    fleet.repository("edge")
    fleet.release("v1")
    fleet.write("policy.yaml", PLAIN)
    fleet.write("promotion.yaml", PROMOTION)
    settle(fleet)
    fleet.write("policy.yaml", PLAIN.replace("sites/ams, ", ""))
    before(fleet.later(minutes=1))

    def outcome() -> object:
        fleet.settle(status=3)
        status = fleet.records().git("show", "fanout/default/default/monitoring^{tree}")
        return fleet.refs()["edge"], status

    killing = killer(fleet)
    configure(fleet)
    # The forge cannot be asked, which somebody has to mend.
    assert killing.everywhere(["sweep"], outcome, expected=3) > 1
