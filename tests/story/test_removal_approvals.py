"""Removals that wait for approvals in repositories without a forge, each on a branch."""

import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PLAIN, PROMOTION, Fleet
from killing import killer
from moving import POLICY as MOVING
from moving import place
from removal_branches import (
    AMS,
    ANN,
    APPROVE,
    BER,
    CPH,
    MINE,
    REMOVAL,
    RENDERED,
    SIGNED,
    WHY,
    approve,
    automation_is_off,
    build_with_approval,
    head,
    name_of,
    package_is_edited,
    packages,
    require,
    target_comes_back,
)

BOB = ("--by", "Bob <bob@example.com>")
EVE = ("--by", "Eve <eve@example.com>")
COMMAND = shlex.join(["fanout", *APPROVE])
TWO = "{name: signed, approval: {from: [sre], atLeast: 2}}"
EXPIRES = "{name: signed, approval: {from: [sre], expires: 1h}}"
SEPARATE = PROMOTION + "  requiresSeparation: true\n"


@company
def fleet(root: Path) -> Fleet:
    """Three sites of one stage in one repository."""
    return build_with_approval(root)


@company
def spread(root: Path) -> Fleet:
    """Four sites of one stage in two repositories."""
    sites = dict.fromkeys(("ams", "ber"), ("dev", "edge"))
    return build_with_approval(root, sites | dict.fromkeys(("cph", "dus"), ("dev", "core")))


def sweep(fleet: Fleet, *options: str) -> str:
    swept = fleet.later(minutes=1).sweep(*options)
    assert swept.code in (0, 3), swept.err
    return swept.out


def remove_site(fleet: Fleet, *sites: str) -> None:
    for site in sites or ("ams",):
        fleet.remove(f"site-{site}.yaml")
    sweep(fleet)


def holds(fleet: Fleet, site: str = "ams") -> list[tuple[str, str]]:
    items = fleet.run("get", "targets", "-o", "json").views
    return [
        (it["reason"], it["message"])
        for item in items
        for it in item["holds"]
        if f"monitoring-{site}-" in it["message"] or site in item["target"]
    ]


def missing(fleet: Fleet) -> str:
    """The sentence about the approvals that a removal lacks; "" if it lacks none."""
    problems = fleet.run("plan", "-o", "json").json["holds"]
    sentences = [it["message"] for it in problems if it["reason"] == "ApprovalMissing"]
    return sentences[0] if sentences else ""


def states(fleet: Fleet) -> list[tuple[str, str]]:
    items = fleet.run("get", "approvals", "-o", "json").items
    return [(it["status"]["state"], it["status"]["reason"]) for it in items]


def test_a_target_that_is_gone_is_a_branch_until_its_removal_is_approved(fleet: Fleet):
    main = head(fleet, "main")
    fleet.remove("site-ams.yaml")
    planned = fleet.plan()
    assert f"{REMOVAL} of edge: remove {AMS}" in planned.out, planned.out
    sweep(fleet)
    assert head(fleet, "main") == main
    assert packages(fleet) - packages(fleet, REMOVAL) == {AMS}
    branch = head(fleet, REMOVAL)
    assert missing(fleet) == (
        f"signed: 0 of 1 approval; review branch {REMOVAL} of edge, then run `{COMMAND}`"
    )
    text = fleet.run("explain", "monitoring").out
    assert COMMAND in text, text
    assert "an approver of group sre" in text
    before = fleet.refs()
    sweep(fleet)
    assert fleet.refs() == before

    done = fleet.run(*shlex.split(COMMAND)[1:], *ANN)
    assert (done.code, done.err) == (0, "")
    assert "for the removal of 1 package" in done.out
    assert states(fleet) == [("Active", "Effective")]
    planned = fleet.plan()
    assert f"edge:{AMS}" in planned.out, planned.out
    sweep(fleet)
    assert packages(fleet) == {BER, CPH}
    assert fleet.repos["edge"].drafts() == []
    parents = fleet.repos["edge"].git("log", "-1", "--format=%P", "main").split()
    assert parents == [main, branch]
    message = fleet.repos["edge"].git("log", "-1", "--format=%B", "main")
    assert message.startswith(f"Remove {AMS}\n\nIts target is gone.\n"), message
    assert message.endswith("\nFanout-Approved-By: ann@example.com"), message
    assert [it for it in fleet.repos["edge"].files(RENDERED) if "ams" in it] == []
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert states(fleet) == [("Applied", "Applied")]
    assert sweep(fleet) == "nothing to do\n"
    fleet.repos["edge"].fsck()


def nobody(fleet: Fleet) -> None:
    pass


def one(fleet: Fleet) -> None:
    approve(fleet)


def two(fleet: Fleet) -> None:
    approve(fleet)
    approve(fleet, BOB)


def the_same_twice(fleet: Fleet) -> None:
    approve(fleet)
    again = fleet.later(minutes=1).run(*APPROVE, *ANN)
    assert "nothing to do: ann@example.com has already approved these removals" in again.err


def not_entitled(fleet: Fleet) -> None:
    approve(fleet, EVE, code=4)


def expired(fleet: Fleet) -> None:
    approve(fleet)
    fleet.later(hours=2)


def revoked(fleet: Fleet) -> None:
    name = approve(fleet)
    assert fleet.run("revoke", "monitoring", name, *BOB).code == 0


def ahead(fleet: Fleet) -> None:
    fleet.later(hours=1)
    approve(fleet)
    fleet.later(hours=-1)


def commit_to_branch(fleet: Fleet, author: str = "Ann <ann@example.com>") -> str:
    """Commit to the branch as a person, without a change of a file."""
    edge = fleet.repos["edge"]
    edge.author = author
    person = edge.commit(REMOVAL, {}, "reviewed")
    sweep(fleet)
    assert head(fleet, REMOVAL) == person
    return person


def own(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", SEPARATE)
    commit_to_branch(fleet)
    done = fleet.run(*APPROVE, *ANN)
    assert (done.code, "own changes cannot be approved" in done.err) == (4, True), done.err


def of_another(fleet: Fleet) -> None:
    fleet.write("promotion.yaml", SEPARATE)
    commit_to_branch(fleet, "Bob <bob@example.com>")
    approve(fleet)


def changed_since(fleet: Fleet) -> None:
    approve(fleet)
    remove_site(fleet, "ber")


def approved_anew(fleet: Fleet) -> None:
    changed_since(fleet)
    approve(fleet)


COUNTED: list[tuple[str, str, Callable[[Fleet], None], str | None]] = [
    ("none", SIGNED, nobody, "signed: 0 of 1 approval"),
    ("one", SIGNED, one, None),
    ("one of two", TWO, one, "signed: 1 of 2 approvals (by ann@example.com)"),
    ("two of two", TWO, two, None),
    ("one twice", TWO, the_same_twice, "signed: 1 of 2 approvals (by ann@example.com)"),
    ("one of nobody entitled", SIGNED, not_entitled,
     "approval by eve@example.com does not count: not an approver of group sre"),
    ("one that expired", EXPIRES, expired, "signed: 0 of 1 approval"),
    ("one that has not expired", EXPIRES, one, None),
    ("one that was revoked", SIGNED, revoked, "signed: 0 of 1 approval"),
    ("one dated ahead", SIGNED, ahead, None),
    ("one of an own change", SIGNED, own,
     "approval by ann@example.com does not count: they changed the draft"),
    ("one of the change of another", SIGNED, of_another, None),
    ("one of an earlier tree", SIGNED, changed_since,
     "approval by ann@example.com is for another tree of the branch"),
    ("one of the present tree", SIGNED, approved_anew, None),
]  # fmt: skip


@pytest.mark.parametrize(
    ("_", "check", "happens", "sentence"), COUNTED, ids=[row[0] for row in COUNTED]
)
def test_an_approval_of_a_removal_counts_by_the_check(fleet: Fleet, _, check, happens, sentence):
    require(fleet, check)
    remove_site(fleet)
    main = head(fleet, "main")
    happens(fleet)
    sentences = missing(fleet)
    sweep(fleet)
    if sentence is None and happens is not ahead:
        assert AMS not in packages(fleet), sentences
        assert fleet.repos["edge"].drafts() == []
        return
    assert head(fleet, "main") == main
    assert AMS in packages(fleet)
    if sentence is not None:
        assert sentence in sentences, sentences
    else:
        sweep(fleet.later(hours=1))
        assert AMS not in packages(fleet)


def test_each_check_of_a_stage_is_approved_by_its_name(fleet: Fleet):
    require(fleet, SIGNED, SIGNED.replace("signed", "second"))
    remove_site(fleet)
    assert fleet.run(*APPROVE, *ANN).code == 1
    for name in ("signed", "second"):
        command = f"{COMMAND} --check {name}"
        assert f"run `{command}`" in missing(fleet)
        assert fleet.run(*shlex.split(command)[1:], *ANN).code == 0
    sweep(fleet)
    assert AMS not in packages(fleet)


def test_commits_of_people_on_the_branch_are_reachable_after_the_removal(fleet: Fleet):
    remove_site(fleet)
    person = commit_to_branch(fleet)
    approve(fleet)
    sweep(fleet)
    assert AMS not in packages(fleet)
    assert head(fleet, REMOVAL) == ""
    fleet.repos["edge"].git("merge-base", "--is-ancestor", person, "main")


def test_packages_that_people_put_back_on_the_branch_stay(fleet: Fleet):
    edge = fleet.repos["edge"]
    kept = {it: edge.file("main", it) for it in edge.files() if it.startswith(f"{AMS}/")}
    remove_site(fleet, "ams", "ber")
    edge.commit(REMOVAL, kept)
    approve(fleet)
    sweep(fleet)
    assert packages(fleet) == {AMS, CPH}
    # Its target is gone as before, so it is on the next branch, which nobody has approved.
    sweep(fleet)
    assert packages(fleet) == {AMS, CPH}
    assert packages(fleet, REMOVAL) == {CPH}
    assert missing(fleet)


def test_a_branch_that_removes_nothing_any_more_is_held(fleet: Fleet):
    edge = fleet.repos["edge"]
    kept = {it: edge.file("main", it) for it in edge.files() if it.startswith(f"{AMS}/")}
    remove_site(fleet)
    person = edge.commit(REMOVAL, kept)
    for _ in range(2):
        sweep(fleet)
        assert (head(fleet, REMOVAL), AMS in packages(fleet)) == (person, True)
    restored = f"{AMS} was put back on branch {REMOVAL}"
    assert any(restored in it for _, it in holds(fleet))
    done = fleet.run(*APPROVE, *ANN)
    assert (done.code, "removes nothing any more" in done.err) == (4, True), done.err


def test_a_package_that_is_put_back_with_changes_holds_the_branch(fleet: Fleet):
    edge = fleet.repos["edge"]
    kept = {it: edge.file("main", it) for it in edge.files() if it.startswith(f"{AMS}/")}
    remove_site(fleet, "ams", "ber")
    person = edge.commit(REMOVAL, {**kept, f"{AMS}/deployment.yaml": MINE})
    done = fleet.run(*APPROVE, *ANN)
    assert done.code in (0, 1)
    sweep(fleet)
    assert packages(fleet) == {AMS, BER, CPH}
    assert head(fleet, REMOVAL) == person
    assert "DraftBroken" in {reason for reason, _ in holds(fleet, "ber")}


def test_a_single_approval_covers_the_branches_of_all_repositories(spread: Fleet):
    remove_site(spread, "ams", "cph")
    approve(spread)
    sweep(spread)
    assert packages(spread) == {BER}
    assert packages(spread, repository="core") == {"sites/dus"}
    assert [it.drafts() for name, it in spread.repos.items() if name != "blueprints"] == [[], []]
    assert sweep(spread) == "nothing to do\n"


def test_a_branch_of_a_repository_that_changes_is_asked_again_for_itself(spread: Fleet):
    remove_site(spread, "ams", "cph")
    approve(spread)
    spread.remove("site-dus.yaml")
    sweep(spread)
    assert packages(spread) == {BER}
    assert packages(spread, repository="core") == {CPH, "sites/dus"}
    approve(spread)
    sweep(spread)
    assert packages(spread, repository="core") == set()


def test_an_approval_is_about_one_removal(fleet: Fleet):
    """The same branch later, after its package was published again, asks again."""
    remove_site(fleet)
    tree = fleet.repos["edge"].object_id(f"{REMOVAL}^{{tree}}")
    approve(fleet)
    sweep(fleet)
    require(fleet)
    target_comes_back(fleet)
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v1"
    require(fleet, SIGNED)
    remove_site(fleet)
    assert fleet.repos["edge"].object_id(f"{REMOVAL}^{{tree}}") == tree
    assert missing(fleet)
    assert states(fleet) == [("Stale", "Stale")]
    sweep(fleet)
    assert AMS in packages(fleet)


def test_a_package_that_changed_beside_commits_of_people_is_not_removed(fleet: Fleet):
    name = name_of(fleet, AMS)
    remove_site(fleet)
    person = commit_to_branch(fleet)
    approve(fleet)
    package_is_edited(fleet)
    done = fleet.run("remove", "monitoring", name, "--edited", *WHY)
    assert done.code == 0, done.err
    sweep(fleet)
    assert (AMS in packages(fleet), head(fleet, REMOVAL)) == (True, person)
    fleet.repos["edge"].git("update-ref", "-d", f"refs/heads/{REMOVAL}")
    sweep(fleet)
    approve(fleet)
    sweep(fleet)
    assert AMS not in packages(fleet)


def test_a_person_removes_by_a_branch_and_at_once_when_that_is_approved(fleet: Fleet):
    name = name_of(fleet, AMS)
    fleet.remove("site-ams.yaml")
    package_is_edited(fleet)
    automation_is_off(fleet)
    main = head(fleet, "main")
    command = ("remove", "monitoring", name, "--edited", *WHY)
    done = fleet.run(*command)
    assert (done.code, done.err) == (0, "")
    assert f"{name} waits for approvals: branch {REMOVAL} removes {AMS} in " in done.out
    assert f"run `{COMMAND}`" in done.out
    assert (head(fleet, "main"), AMS in packages(fleet, REMOVAL)) == (main, False)
    branch = head(fleet, REMOVAL)
    assert fleet.run(*command).code == 0
    sweep(fleet)
    assert head(fleet, REMOVAL) == branch
    approve(fleet)
    done = fleet.run(*command)
    assert (done.code, f"{name} removed: {AMS} in " in done.out) == (0, True), done.err
    assert packages(fleet) == {BER, CPH}
    assert fleet.repos["edge"].git("log", "-1", "--format=%P", "main").split() == [main, branch]
    assert fleet.repos["edge"].drafts() == []
    assert [it for it in fleet.repos["edge"].files(RENDERED) if "ams" in it] == []
    assert fleet.published() == {BER: "v1", CPH: "v1"}
    assert sweep(fleet) == "nothing to do\n"


def test_a_sweep_completes_what_a_person_asked_for_when_that_is_approved(fleet: Fleet):
    name = name_of(fleet, AMS)
    fleet.remove("site-ams.yaml")
    automation_is_off(fleet)
    assert fleet.run("remove", "monitoring", name, *WHY).code == 0
    approve(fleet)
    sweep(fleet)
    assert packages(fleet) == {BER, CPH}
    assert sweep(fleet) == "nothing to do\n"


def test_a_person_s_removal_waits_for_the_other_packages_of_its_branch(fleet: Fleet):
    name = name_of(fleet, AMS)
    remove_site(fleet, "ams", "ber")
    approve(fleet)
    main = head(fleet, "main")
    done = fleet.run("remove", "monitoring", name, *WHY)
    assert (done.code, "waits for approvals" in done.out) == (0, True), done.err
    assert head(fleet, "main") == main
    sweep(fleet)
    assert packages(fleet) == {CPH}


@company
def moved(root: Path) -> Fleet:
    """A site that has moved to another repository, and whose stage requires an approval now."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    made.repository("core")
    made.write("policy.yaml", MOVING)
    place(made, "ams", AMS)
    place(made, "ber", BER)
    made.settle()
    made.write("policy.yaml", MOVING.replace("{name: dev}", f"{{name: dev, requires: [{SIGNED}]}}"))
    place(made, "ams", "eu/ams", "core")
    made.later(minutes=1).sweep()
    approval = ("approve", "monitoring", "--stage", "dev", "--revision", "v1", *BOB)
    assert made.later(minutes=1).run(*approval).code == 0
    made.later(minutes=1).sweep()
    assert made.published() == {"eu/ams": "v1", BER: "v1"}
    return made.later(minutes=1)


def test_leftovers_of_a_move_are_removed_by_an_approved_branch(moved: Fleet):
    sweep(moved)
    assert packages(moved) - packages(moved, REMOVAL) == {AMS}
    assert f"run `{COMMAND}`" in moved.sweep().err
    approve(moved)
    sweep(moved)
    assert packages(moved) == {BER}
    assert moved.repos["edge"].drafts() == []
    assert [it for it in moved.repos["edge"].files(RENDERED) if "ams" in it] == []
    assert moved.published() == {"eu/ams": "v1", BER: "v1"}
    assert sweep(moved) == "nothing to do\n"


def test_a_person_removes_what_a_move_left_when_that_is_approved(moved: Fleet):
    automation_is_off(moved)
    command = ("remove", "monitoring", "eu/ams", *WHY)
    done = moved.run(*command)
    assert (done.code, "waits for approvals" in done.out) == (0, True), done.err
    approve(moved)
    done = moved.run(*command)
    assert (done.code, "removed" in done.out) == (0, True), done.err
    assert packages(moved) == {BER}
    assert sweep(moved) == "nothing to do\n"


def test_a_policy_that_is_deleted_waits_for_the_approvals_of_its_stages(fleet: Fleet):
    text = (fleet.root / fleet.policies / "policy.yaml").read_text(encoding="utf-8")
    deleted = '{name: monitoring, deletionTimestamp: "2026-03-02T09:00:00Z"}'
    text = text.replace("{name: monitoring}", deleted, 1)
    fleet.write("policy.yaml", text.replace("  stages:\n", "  removalLimit: 100%\n  stages:\n"))
    sweep(fleet)
    assert packages(fleet) == {AMS, BER, CPH}
    assert packages(fleet, REMOVAL) == set()
    approve(fleet)
    sweep(fleet)
    assert packages(fleet) == set()


def test_a_stage_that_requires_no_approval_has_no_branch(fleet: Fleet):
    require(fleet)
    remove_site(fleet)
    assert packages(fleet) == {BER, CPH}
    assert fleet.repos["edge"].drafts() == []


REFUSALS = [
    ("no branch", (), "no branch removes packages of stage dev"),
    ("a revision", ("--revision", "v1"), "--removals and --revision exclude each other"),
    ("a variant", ("--variant", "ams"), "--removals and --variant exclude each other"),
    ("an unknown check", ("--check", "x"), "it requires: signed"),
]


@pytest.mark.parametrize(("_", "options", "words"), REFUSALS, ids=[row[0] for row in REFUSALS])
def test_an_approval_of_removals_that_is_refused(fleet: Fleet, _, options, words):
    before = fleet.records().refs()
    done = fleet.run(*APPROVE, *options, *ANN)
    assert (done.code != 0, words in done.err) == (True, True), done.err
    assert fleet.records().refs() == before


def test_an_approval_of_removals_names_its_stage(fleet: Fleet):
    done = fleet.run("approve", "monitoring", "--removals", *ANN)
    assert (done.code, "no removal waits for an approval" in done.err) == (1, True), done.err
    remove_site(fleet)
    done = fleet.run("approve", "monitoring", "--removals", *ANN)
    assert "use --stage dev --removals" in done.err
    done = fleet.run("approve", "monitoring", "--stage", "dev", *ANN)
    assert "use --stage dev --removals" in done.err


def test_a_stage_without_approvals_refuses_one(fleet: Fleet):
    require(fleet)
    done = fleet.run(*APPROVE, *ANN)
    assert (done.code, "it requires no approval" in done.err) == (1, True), done.err


def test_a_branch_that_is_to_be_written_again_is_not_approved(fleet: Fleet):
    remove_site(fleet)
    fleet.remove("site-ber.yaml")
    done = fleet.run(*APPROVE, *ANN)
    assert (done.code, "is out of date" in done.err) == (4, True), done.err


def test_a_dry_run_shows_the_removal_that_an_approval_lets_go(fleet: Fleet):
    remove_site(fleet)
    before = fleet.records().refs()
    done = fleet.run(*APPROVE, *ANN, "--dry-run")
    assert (done.code, fleet.records().refs()) == (0, before), done.err
    assert f"edge:{AMS}" in done.out.partition("the next sweep would do:")[2]


def written(fleet: Fleet) -> None:
    """The pass that writes the branch."""


def approved(fleet: Fleet) -> None:
    """The pass that merges it."""
    fleet.sweep()
    approve(fleet)


@pytest.mark.diagonal
@pytest.mark.parametrize("before", [written, approved])
@pytest.mark.parametrize("line", [["sweep"], ["remove"]])
def test_a_removal_that_is_killed_anywhere_is_continued(
    tmp_path: Path, before: Callable[[Fleet], None], line: list[str]
):
    root = tmp_path / "live"
    root.mkdir()
    fleet = Fleet(root)
    fleet.repository("blueprints")
    fleet.repository("edge")
    fleet.release("v1")
    fleet.write("policy.yaml", PLAIN)
    fleet.write("promotion.yaml", PROMOTION)
    fleet.settle()
    name = name_of(fleet, AMS)
    stage = f"{{name: dev, requires: [{SIGNED}]}}"
    fleet.write("policy.yaml", PLAIN.replace("sites/ams, ", "").replace("{name: dev}", stage))
    before(fleet.later(minutes=1))
    command = line if line == ["sweep"] else ["remove", "monitoring", name, *WHY]

    def outcome() -> object:
        fleet.settle()
        status = fleet.records().git("show", "fanout/default/default/monitoring^{tree}")
        return fleet.refs()["edge"], status

    killing = killer(fleet)
    assert killing.everywhere(command, outcome) > 1
    assert (AMS in packages(fleet)) == (before is written)
