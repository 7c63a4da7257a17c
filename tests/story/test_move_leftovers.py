"""What a variant that moved has left: a person removes it where nobody lets it go by itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PROMOTION, Fleet
from moving import AMS, ANN, NEW, RENDERED, edit, is_edited, packages, place, two_sites

MANUAL = PROMOTION.replace('  autoPromotion: {stages: ["*"]}\n', "")


@company
def fleet(root: Path) -> Fleet:
    return two_sites(root)


def name_at(fleet: Fleet, path: str) -> str:
    items = fleet.run("get", "variants", "-o", "json").items
    [name] = [it["metadata"]["name"] for it in items if it["spec"]["downstream"]["package"] == path]
    return name


def moved_by_hand(fleet: Fleet, repository: str = "edge") -> str:
    """Promote a move where nothing is automatic; answers the variant's name."""
    fleet.write("promotion.yaml", MANUAL)
    place(fleet, "ams", NEW, repository)
    fleet.later(minutes=1).settle()
    assert fleet.run("promote", "monitoring", "--stage", "dev", "--variant", NEW, *ANN).code == 0
    fleet.settle()
    assert NEW in packages(fleet, repository)
    return name_at(fleet, NEW)


@pytest.mark.parametrize("repository", ["edge", "core"])
def test_without_automation_the_old_place_waits_for_a_person(fleet: Fleet, repository: str):
    name = moved_by_hand(fleet, repository)
    assert AMS in packages(fleet)
    assert f"fanout remove monitoring {name} --reason WHY" in fleet.sweep().err
    done = fleet.run("remove", "monitoring", name, *ANN)
    assert (done.code, done.err) == (0, "")
    assert packages(fleet) == {"sites/ber"} | ({NEW} if repository == "edge" else set())
    assert f"published/{AMS}" not in packages(fleet, branch=RENDERED)
    swept = fleet.sweep()
    assert (swept.out, swept.err) == ("nothing to do\n", "")
    assert fleet.published()[NEW] == "v1"


def test_leftovers_on_a_renamed_branch_are_not_forgotten(fleet: Fleet):
    moved_by_hand(fleet, "core")
    edge = fleet.repos["edge"]
    edge.git("branch", "-m", "main", "trunk")
    fleet.write("promotion.yaml", PROMOTION)
    outputs = [fleet.later(minutes=1).sweep().err for _ in range(2)]
    assert "its default branch is trunk" in outputs[-1]
    edge.git("branch", "-m", "trunk", "main")
    fleet.later(minutes=1).settle()
    assert packages(fleet) == {"sites/ber"}


def begin_anew(fleet: Fleet) -> None:
    """Somebody begins the branch anew."""
    edge = fleet.repos["edge"]
    edge.git("update-ref", "refs/heads/main", edge.git("rev-list", "--max-parents=0", "main"))


def go_back(fleet: Fleet) -> None:
    """Somebody puts the branch back to the first publication."""
    edge = fleet.repos["edge"]
    edge.git("update-ref", "refs/heads/main", edge.refs()[f"refs/tags/{AMS}/v1"])


@pytest.mark.parametrize("tags", ["Each", "None"])
@pytest.mark.parametrize("act", [begin_anew, go_back])
def test_leftovers_on_a_rewritten_branch_are_not_forgotten(
    fleet: Fleet, act: Callable[[Fleet], None], tags: str
):
    fleet.release("v2")
    if tags == "None":
        path = fleet.root / fleet.policies / "repository-edge.yaml"
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("spec: {", "spec: {tags: None, "), encoding="utf-8")
    fleet.later(minutes=1).settle()
    moved_by_hand(fleet, "core")
    edge = fleet.repos["edge"]
    main = edge.refs()["refs/heads/main"]
    act(fleet)
    fleet.write("promotion.yaml", PROMOTION)
    lines = (("sweep",), ("sweep",), ("status",), ("explain", "monitoring"))
    output = "".join(
        it.err + it.out for it in [fleet.later(minutes=1).run(*line) for line in lines]
    )
    assert "branch main of edge was rewritten or replaced" in output
    assert AMS in output
    assert "fanout remove" not in output
    assert "was edited" not in output
    edge.git("update-ref", "refs/heads/main", main)
    fleet.later(minutes=1).settle()
    assert packages(fleet) == {"sites/ber"}


def test_a_path_on_a_rewritten_branch_that_a_variant_returns_to_is_not_shown_as_edited(
    fleet: Fleet,
):
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    moved_by_hand(fleet, "core")
    go_back(fleet)
    place(fleet, "ams", AMS)
    output = fleet.later(minutes=1).sweep().err + fleet.run("explain", "monitoring").out
    assert "was rewritten or replaced" in output
    assert "was edited" not in output


def test_unchanged_leftovers_on_a_rewritten_branch_are_removed(fleet: Fleet):
    moved_by_hand(fleet, "core")
    edge = fleet.repos["edge"]
    commit = edge.git("commit-tree", "-m", "squashed", "main^{tree}")
    edge.git("update-ref", "refs/heads/main", commit)
    fleet.write("promotion.yaml", PROMOTION)
    for _ in range(3):
        fleet.later(minutes=1).sweep()
    assert AMS not in packages(fleet)


def test_leftovers_are_shown_with_the_variant(fleet: Fleet):
    moved_by_hand(fleet, "core")
    status = fleet.variants()[NEW]
    assert status["left"] == [{"repository": "edge", "package": AMS}]


def test_a_moving_variant_shows_its_present_path(fleet: Fleet):
    place(fleet, "ams", NEW, "core")
    fleet.later(minutes=1).sweep("--drafts-only")
    published = fleet.variants()[NEW]["published"]
    assert (published["repository"], published["package"]) == ("edge", AMS)
    assert fleet.run("diff", NEW).code == 0


def test_an_edit_of_the_old_place_after_the_move_keeps_it(fleet: Fleet):
    name = moved_by_hand(fleet, "core")
    fleet.write("promotion.yaml", PROMOTION)
    edit(fleet)
    fleet.settle()
    assert is_edited(fleet, AMS)
    assert "EditedDownstream" in fleet.sweep("-o", "json").reasons
    refused = fleet.run("remove", "monitoring", name, *ANN)
    assert (refused.code, "edited outside fanout:" in refused.err) == (4, True)
    assert fleet.run("remove", "monitoring", name, "--edited", *ANN).code == 0
    assert packages(fleet) == {"sites/ber"}


def test_edits_that_were_taken_along_are_no_hindrance(fleet: Fleet):
    edit(fleet)
    name = moved_by_hand(fleet, "core")
    assert fleet.run("remove", "monitoring", name, *ANN).code == 0
    assert packages(fleet) == {"sites/ber"}
    assert is_edited(fleet, NEW, "core")
    again = fleet.run("remove", "monitoring", name, *ANN)
    assert again.code == 4
    assert (
        f"{name} left no other package, and its target still exists: it would be created again"
        in again.err
    )


def test_a_variant_whose_target_goes_on_its_way_leaves_nothing_anywhere(fleet: Fleet):
    name = moved_by_hand(fleet, "core")
    fleet.remove("site-ams.yaml")
    done = fleet.run("remove", "monitoring", name, *ANN)
    assert done.code == 0, done.err
    assert (packages(fleet), packages(fleet, "core")) == ({"sites/ber"}, set())
    assert fleet.repos["core"].files(RENDERED) == []
    assert fleet.sweep().out == "nothing to do\n"


def test_a_package_that_a_person_took_off_the_old_place_is_forgotten(fleet: Fleet):
    moved_by_hand(fleet)
    edge = fleet.repos["edge"]
    edge.commit("main", dict.fromkeys((p for p in edge.files() if p.startswith(AMS)), None))
    fleet.settle()
    assert "left" not in fleet.variants()[NEW]
    assert f"published/{AMS}" not in packages(fleet, branch=RENDERED)


# ---- written by hand -----------------------------------------------------------------------------


def web(fleet: Fleet, repository: str, path: str, more: str = "") -> None:
    fleet.write(
        "web.yaml",
        "apiVersion: fanout.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: web}\nspec:\n"
        "  upstream: {repository: blueprints, package: monitoring, revision: {tag: v1}}\n"
        f"  downstream: {{repository: {repository}, package: {path}}}\n{more}",
    )


def written_by_hand(fleet: Fleet, more: str = "") -> None:
    promotion = PROMOTION.replace("  policies:", "  variants: [web]\n  policies:")
    fleet.write("promotion.yaml", promotion)
    web(fleet, "edge", "web", more)
    fleet.later(minutes=1).settle()
    assert "web" in packages(fleet)


ORPHAN = "  deletionPolicy: Orphan\n"


@pytest.mark.parametrize(("more", "stays"), [("", False), (ORPHAN, True)], ids=["Delete", "Orphan"])
def test_a_variant_written_by_hand_moves_too(fleet: Fleet, more: str, stays: bool):
    written_by_hand(fleet, more)
    edit(fleet, "web")
    web(fleet, "core", "eu/web", more)
    fleet.later(minutes=1).settle()
    assert is_edited(fleet, "eu/web", "core")
    assert ("web" in packages(fleet)) == stays
    assert "published/web" not in packages(fleet, branch=RENDERED)


@pytest.mark.parametrize(("more", "stays"), [("", False), (ORPHAN, True)], ids=["Delete", "Orphan"])
def test_a_variant_written_by_hand_is_removed_when_its_object_is_gone(
    fleet: Fleet, more: str, stays: bool
):
    written_by_hand(fleet)
    web(fleet, "edge", "web", more)
    fleet.later(minutes=1).settle()
    assert fleet.run("remove", "web", *ANN).code == 4, "it is still there"
    fleet.remove("web.yaml")
    assert fleet.sweep().out.startswith("nothing to do")
    done = fleet.run("remove", "web", *ANN)
    assert (done.code, done.err) == (0, "")
    assert ("web" in packages(fleet)) == stays
    assert "published/web" not in packages(fleet, branch=RENDERED)
    assert fleet.run("remove", "web", *ANN).code == 1


def test_a_variant_in_an_unreadable_file_is_no_orphan(fleet: Fleet):
    written_by_hand(fleet)
    fleet.write("web.yaml", "kind: [")
    refused = fleet.run("remove", "web", *ANN)
    assert refused.code == 2
    assert "web" in packages(fleet)
