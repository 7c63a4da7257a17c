"""A package that was cloned by hand becomes a variant: with its edits, and by a person's word."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, POLICY, Fleet
from killing import killer

ANN = ("--reason", "looks right", "--by", "Ann <ann@example.com>")
AMS, BER = "sites/ams", "sites/ber"
DEPLOYMENT = f"{AMS}/deployment.yaml"
ADOPTING = POLICY.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")


def cloned(
    fleet: Fleet,
    commit: str,
    files: dict[str, str | None] | None = None,
    url: str = "",
    directory: str = "/monitoring",
) -> None:
    """What `kpt pkg get` and some work made of the package at sites/ams; files may replace it."""
    repo = url or str(fleet.repos["blueprints"].path)
    git = f"  git: {{repo: {repo}, directory: {directory}, ref: monitoring/v1"
    kptfile = PACKAGE["Kptfile"].replace("name: monitoring", "name: ams # our first site")
    kptfile += f"upstream:\n  type: git\n{git}}}\n  updateStrategy: resource-merge\n"
    kptfile += f"upstreamLock:\n  type: git\n{git}, commit: {commit}}}\n"
    package: dict[str, str | None] = {**PACKAGE, "Kptfile": kptfile, **(files or {})}
    inside = {f"{AMS}/{path}": text for path, text in package.items()}
    fleet.repos["edge"].commit("main", inside, "cloned by hand")


@company
def fleet(root: Path) -> Fleet:
    """A site whose package was cloned at v1 and edited, and one that has none; v2 is out."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.write("policy.yaml", ADOPTING)
    first = made.repos["blueprints"].refs()["refs/tags/monitoring/v1"]
    text = PACKAGE["deployment.yaml"] + "  paused: true # by hand\n"
    cloned(made, first, {"deployment.yaml": text, "notes.txt": "ours\n"})
    made.release("v2")
    return made


def v1(fleet: Fleet) -> str:
    return fleet.repos["blueprints"].refs()["refs/tags/monitoring/v1"]


def draft(fleet: Fleet, path: str = DEPLOYMENT) -> str:
    return fleet.repos["edge"].file("drafts/default/sites/ams/monitoring", path)


def promote(fleet: Fleet):
    return fleet.run("promote", "monitoring", "--stage", "dev", "--variant", AMS, *ANN)


def test_the_first_draft_of_an_adoption_has_the_edits_and_is_not_published_automatically(
    fleet: Fleet,
):
    fleet.settle()
    assert fleet.published() == {AMS: "", BER: "v2"}
    assert "replicas: 2" in draft(fleet)
    assert "paused: true # by hand" in draft(fleet)
    assert draft(fleet, f"{AMS}/notes.txt") == "ours\n"
    assert 'retention: "7d"' in draft(fleet, f"{AMS}/settings.yaml")
    assert "replicas: 1" in fleet.repos["edge"].file("main", DEPLOYMENT)
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert "fanout promote" in fleet.run("explain", "monitoring").out
    branch = "drafts/default/sites/ams/monitoring"
    assert fleet.repos["edge"].git("log", "-1", "--format=%s", branch).startswith("Adopt sites/ams")
    fleet.repos["edge"].fsck()


def test_the_kptfile_of_the_draft_is_that_of_a_variant(fleet: Fleet):
    fleet.settle()
    kptfile = draft(fleet, f"{AMS}/Kptfile")
    assert "name: ams # our first site" in kptfile
    assert "ref: monitoring/v2" in kptfile
    assert fleet.repos["blueprints"].refs()["refs/tags/monitoring/v2"] in kptfile
    assert v1(fleet) not in kptfile
    assert fleet.run("diff", AMS).out.count("# conflict") == 0


def test_a_person_promotes_it_and_then_it_is_a_variant_like_any_other(fleet: Fleet):
    fleet.settle()
    done = promote(fleet)
    assert done.code == 0, done.err
    assert fleet.published() == {AMS: "v2", BER: "v2"}
    edge = fleet.repos["edge"]
    assert "sites/ams/v1" in edge.tags()
    assert edge.file("fanout/default/rendered", f"published/{DEPLOYMENT}").count("paused") == 0
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3", BER: "v3"}
    assert "replicas: 3" in edge.file("main", DEPLOYMENT)
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)
    assert edge.file("main", f"{AMS}/notes.txt") == "ours\n"
    edge.fsck()


def test_a_newer_revision_is_merged_from_the_clone_while_nobody_promotes(fleet: Fleet):
    fleet.settle()
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == ""
    assert "replicas: 3" in draft(fleet)
    assert "paused: true # by hand" in draft(fleet)


def test_edits_on_the_target_branch_and_the_draft_survive_an_adoption(fleet: Fleet):
    fleet.settle()
    edge = fleet.repos["edge"]
    text = draft(fleet).replace("name: prometheus", "name: prometheus\n  labels: {a: b}")
    edge.commit("drafts/default/sites/ams/monitoring", {DEPLOYMENT: text})
    edge.commit("main", {f"{AMS}/more.txt": "more\n"})
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert "labels: {a: b}" in draft(fleet)
    assert draft(fleet, f"{AMS}/more.txt") == "more\n"
    assert promote(fleet).code == 0
    assert "labels: {a: b}" in edge.file("main", DEPLOYMENT)


def test_conflicts_are_reported_with_the_hold(fleet: Fleet):
    text = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.settle()
    reason, sentence = fleet.condition(AMS)
    assert (reason, "1 undecided merge conflict" in sentence) == ("MergeConflict", True)
    assert promote(fleet).code == 3  # whoever adopts has to accept them too
    assert fleet.published()[AMS] == ""
    first_line = fleet.run("diff", AMS).out.splitlines()[0]
    assert "spec.replicas: both changed (base 1, upstream 2, local 7); upstream won" in first_line


def test_a_clone_that_is_as_fanout_would_have_it_waits_for_a_person_too(fleet: Fleet):
    fleet.settle()
    edge = fleet.repos["edge"]
    branch = "drafts/default/sites/ams/monitoring"
    same = {it: edge.file(branch, it) for it in edge.files(branch) if it.startswith(f"{AMS}/")}
    edge.commit("main", dict(same), "by hand, what the draft has")
    edge.git("update-ref", "-d", f"refs/heads/{branch}")
    edge.git("update-ref", "-d", "refs/heads/fanout/default/rendered")
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert fleet.published()[AMS] == ""
    assert promote(fleet).code == 0
    fleet.settle()
    assert fleet.published()[AMS] == "v2"
    assert edge.drafts() == []
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v3"
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)


def test_a_merge_of_the_draft_adopts_the_package(fleet: Fleet):
    fleet.sweep("--drafts-only")
    edge, ref = fleet.repos["edge"], "refs/heads/drafts/default/sites/ams/monitoring"
    merge = edge.git("commit-tree", f"{ref}^{{tree}}", "-p", "main", "-p", ref, "-m", "merged")
    edge.git("update-ref", "refs/heads/main", merge)
    fleet.later(minutes=1).settle()
    status = fleet.variants()[AMS]
    assert (status["published"]["revision"], status["published"]["outOfBand"]) == ("v2", True)


def test_by_default_the_package_is_left_alone(fleet: Fleet):
    fleet.write("policy.yaml", POLICY)
    head = fleet.repos["edge"].file("main", DEPLOYMENT)
    fleet.sweep()
    reason, sentence = fleet.condition(AMS)
    assert reason == "PathTaken"
    assert "adoptionPolicy: AdoptExisting" in sentence
    for how in ((), ("--three-way",), ("--against", "draft"), ("--against", "upstream")):
        first_line = fleet.run("diff", AMS, *how)
        assert (first_line.code, first_line.out) == (
            3,
            "",
        )  # no patch that takes the package's edits away
        assert sentence in first_line.err
    assert fleet.repos["edge"].file("main", DEPLOYMENT) == head


def test_an_abandoned_adoption_leaves_the_package_unchanged(fleet: Fleet):
    fleet.settle()
    fleet.write("policy.yaml", POLICY)
    fleet.later(minutes=1).sweep()
    assert fleet.condition(AMS)[0] == "PathTaken"
    promote(fleet)
    assert "replicas: 1" in fleet.repos["edge"].file("main", DEPLOYMENT)


def no_kptfile(fleet: Fleet) -> None:
    cloned(fleet, v1(fleet), {"Kptfile": None})


def no_lock(fleet: Fleet) -> None:
    cloned(fleet, v1(fleet), {"Kptfile": PACKAGE["Kptfile"]})


def no_commit(fleet: Fleet) -> None:
    cloned(fleet, "v1")


def lost_commit(fleet: Fleet) -> None:
    cloned(fleet, "ab" * 20)


def no_yaml(fleet: Fleet) -> None:
    cloned(fleet, v1(fleet), {"Kptfile": "a: [\n"})


def elsewhere(fleet: Fleet) -> None:
    cloned(fleet, v1(fleet), url="https://example.com/other.git")


def another_package(fleet: Fleet) -> None:
    cloned(fleet, v1(fleet), directory="/logging")


FAULTS = [
    ("no Kptfile", no_kptfile, "AdoptionBaseMissing", "the package has no Kptfile"),
    ("no upstreamLock", no_lock, "AdoptionBaseMissing", "the Kptfile has no upstreamLock"),
    (
        "a lock without a commit",
        no_commit,
        "AdoptionBaseMissing",
        "the upstreamLock of the Kptfile lacks a repo, a directory or the ID of a commit",
    ),
    (
        "a commit that upstream does not have",
        lost_commit,
        "AdoptionBaseMissing",
        "abab",
    ),
    ("a Kptfile that is no YAML", no_yaml, "AdoptionBaseMissing", "sites/ams/Kptfile:"),
    ("a clone of another repository", elsewhere, "PathTaken", "https://example.com/other.git"),
    ("a clone of another package", another_package, "PathTaken", "/logging"),
]


@pytest.mark.parametrize(("_", "spoil", "reason", "words"), FAULTS, ids=[it[0] for it in FAULTS])
def test_a_package_whose_origin_is_unclear_is_held_and_the_others_served(
    fleet: Fleet, _, spoil, reason, words
):
    spoil(fleet)
    before = fleet.repos["edge"].git("rev-parse", f"main:{AMS}")
    for _ in range(3):
        swept = fleet.sweep()
        assert swept.code == 3
        assert words in swept.err
    assert fleet.condition(AMS)[0] == reason
    first_line = fleet.run("diff", AMS)
    assert (first_line.code, first_line.out) == (3, "")
    assert "is held and has no next draft: " in first_line.err
    assert words in first_line.err
    assert fleet.published() == {AMS: "", BER: "v2"}
    assert fleet.repos["edge"].git("rev-parse", f"main:{AMS}") == before
    assert fleet.repos["edge"].drafts() == []


def test_naming_the_revision_that_it_came_from_is_enough(fleet: Fleet):
    no_lock(fleet)
    fleet.sweep()
    assert fleet.condition(AMS)[0] == "AdoptionBaseMissing"
    cloned(fleet, v1(fleet))
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"


def test_a_clone_of_a_branch_is_adopted(fleet: Fleet):
    text = PACKAGE["deployment.yaml"].replace("replicas: 1", "replicas: 4")
    path = "monitoring/deployment.yaml"
    unreleased = fleet.repos["blueprints"].commit("next", {
        **{f"monitoring/{name}": content for name, content in PACKAGE.items()}, path: text
    })  # fmt: skip
    cloned(fleet, unreleased, {"deployment.yaml": text})
    fleet.settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert "replicas: 2" in draft(fleet)


def test_a_repository_may_be_spelled_otherwise(fleet: Fleet):
    path = str(fleet.repos["blueprints"].path).removesuffix(".git")
    cloned(fleet, v1(fleet), url=f"file://{path}", directory="monitoring/")
    fleet.settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"


def test_an_upstream_package_without_a_kptfile_then_is_adopted_too(fleet: Fleet):
    upstream = fleet.repos["blueprints"]
    bare = {f"monitoring/{name}": text for name, text in PACKAGE.items() if name != "Kptfile"}
    commit = upstream.commit("bare", dict(bare))
    cloned(fleet, commit)
    fleet.settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert "ref: monitoring/v2" in draft(fleet, f"{AMS}/Kptfile")


def test_a_variant_written_by_hand_adopts_as_well(fleet: Fleet):
    fleet.remove("policy.yaml")
    fleet.write(
        "mine.yaml",
        "apiVersion: fanout.dev/v1alpha1\nkind: PackageVariant\nmetadata: {name: mine}\nspec:\n"
        "  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}\n"
        "  downstream: {repository: edge, package: sites/ams}\n"
        "  adoptionPolicy: AdoptExisting\n",
    )
    fleet.settle()
    assert fleet.condition(AMS)[0] == "AdoptionAwaits"
    assert fleet.run("promote", "mine", *ANN).code == 0
    assert fleet.published()[AMS] == "v2"
    assert "paused: true # by hand" in fleet.repos["edge"].file("main", DEPLOYMENT)


# Without expressions, so that no process waits for a sandbox.
PLAIN = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositories: [{name: edge, packageNames: [sites/ams, sites/ber]}]
    template: {stage: dev}
  adoptionPolicy: AdoptExisting
  stages: [{name: dev}]
"""


@pytest.mark.diagonal
def test_an_adoption_that_is_killed_anywhere_is_finished_by_a_rerun(fleet: Fleet):
    fleet.write("policy.yaml", PLAIN)
    fleet.settle()
    edge = fleet.repos["edge"]

    def outcome() -> object:
        fleet.settle()
        return edge.refs(), fleet.published()

    line = ["promote", "monitoring", "--stage", "dev", "--variant", AMS, *ANN]
    driver = killer(fleet)
    assert driver.everywhere(line, outcome) > 8
    assert fleet.published() == {AMS: "v2", BER: "v2"}
    assert "paused: true # by hand" in edge.file("main", DEPLOYMENT)
