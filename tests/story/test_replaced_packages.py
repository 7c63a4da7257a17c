"""A person puts a package in place of another one of the same repository, at the same commit."""

from pathlib import Path

from companies import company
from fleet import PACKAGE, POLICY, RULE, Fleet

A = "sites/a"
DRAFT = "drafts/default/sites/a/monitoring"
STAGES = "  - {name: dev, requires: [{name: ok, approval: {from: [sre]}}]}\n"


@company
def fleet(root: Path) -> Fleet:
    """A variant of a package at a commit that another package has as well; its draft is open."""
    fleet = Fleet.build(root, {"a": ("dev", "edge")})
    logging = {f"logging/{name}": text for name, text in PACKAGE.items()}
    follow(fleet, fleet.repos["blueprints"].commit("main", logging))
    assert fleet.sweep().code == 0
    assert fleet.repos["edge"].drafts() == ["sites/a/monitoring"]
    return fleet


def follow(fleet: Fleet, commit: str, package: str = "monitoring") -> None:
    """Have the policy follow a package at a commit, with an approval before each release."""
    text = POLICY[: POLICY.index("  - {name: dev,")] + STAGES
    text = text.replace("spec:\n", "spec:\n  draftPer: Variant\n", 1)
    rule = f"package: {package}, revision: {{commit: {commit}}}"
    fleet.write("policy.yaml", text.replace(RULE, rule))


def upstream_head(fleet: Fleet) -> str:
    return fleet.repos["blueprints"].refs()["refs/heads/main"]


def merge_draft(fleet: Fleet) -> None:
    """Merge the draft as it is, whatever the branch has."""
    edge = fleet.repos["edge"]
    tree = edge.git("rev-parse", f"{DRAFT}^{{tree}}")
    merge = edge.git("commit-tree", tree, "-p", "main", "-p", DRAFT, "-m", "Merge")
    edge.git("update-ref", "refs/heads/main", merge)


def replace_package(fleet: Fleet) -> None:
    """Put a clone of the other package at the path."""
    edge = fleet.repos["edge"]
    text = edge.file("main", f"{A}/Kptfile")
    assert "directory: /monitoring\n" in text
    text = text.replace("directory: /monitoring\n", "directory: /logging\n")
    edge.commit("main", {f"{A}/Kptfile": text})


def test_a_package_in_place_of_a_merged_draft_is_no_publication_of_it(fleet: Fleet):
    merge_draft(fleet)
    replace_package(fleet)
    assert fleet.later(minutes=1).sweep().code == 3
    assert fleet.published() == {A: ""}
    assert fleet.condition(A)[0] == "PathTaken"


def test_a_rollback_leaves_out_a_package_that_was_in_place_of_the_publication(fleet: Fleet):
    first = upstream_head(fleet)
    merge_draft(fleet)
    fleet.later(minutes=1).settle()
    follow(fleet, fleet.repos["blueprints"].commit("main", {"monitoring/notes.txt": "new\n"}))
    fleet.later(minutes=1).settle()
    replace_package(fleet)
    merge_draft(fleet)
    fleet.later(minutes=1).settle()
    assert fleet.published() == {A: upstream_head(fleet)}
    options = ("--reason", "x", "--by", "Ann <ann@example.com>", "--yes")
    result = fleet.run("rollback", "monitoring", "--stage", "dev", "--revision", first, *options)
    assert result.code == 0, result.err
    fleet.later(minutes=1).settle()
    assert fleet.published() == {A: first}
    assert "directory: /monitoring\n" in fleet.repos["edge"].file("main", f"{A}/Kptfile")


def test_a_squashed_draft_of_another_package_with_an_edited_kptfile_is_published(fleet: Fleet):
    merge_draft(fleet)
    fleet.later(minutes=1).settle()
    edge, first = fleet.repos["edge"], upstream_head(fleet)
    fleet.repos["blueprints"].commit("main", {"logging/notes.txt": "new\n"})
    follow(fleet, first, "logging")
    fleet.later(minutes=1).settle()
    files = {it: edge.file(DRAFT, it) for it in edge.files(DRAFT)}
    text = files[f"{A}/Kptfile"]
    assert "directory: /logging\n" in text
    files[f"{A}/Kptfile"] = text.replace("one Prometheus", "mine")
    edge.commit("main", files)
    fleet.later(minutes=1).settle()
    assert fleet.condition(A)[0] == "Ready"
