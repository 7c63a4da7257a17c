"""Some refs of a push moved and others did not: the end is that of an undisturbed run."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import moving
import pytest
from fleet import PACKAGE, PROMOTION, Fleet
from half_pushes import Push, Ref, pushed, tree

AMS, BER = "sites/ams", "sites/ber"
# Without expressions, so that no process waits for a sandbox.
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {semver: ">=1 <9"}}
  targets:
  - repositories: [{name: edge, packageNames: [sites/ams]}]
    template: {stage: dev}
  - repositories: [{name: edge, packageNames: [sites/ber]}]
    template: {stage: prod}
  stages:
  - {name: dev}
  - {name: prod, after: {stages: [dev]}}
"""
AT_PROD = """\
  - repositories: [{name: edge, packageNames: [sites/ber]}]
    template: {stage: prod}
"""
RENDERED = "refs/heads/fanout/default/rendered"
EDITED = PACKAGE["deployment.yaml"] + "  paused: true # by hand\n"
ANN = ("--reason", "looks right", "--by", "Ann <ann@example.com>")


@dataclass(frozen=True)
class Contents:
    """What is in a repository."""

    branch: str  # its tree
    drafts: list[str]
    tags: dict[str, str]  # and the tree of each package
    renderings: list[str]  # the tree of fanout's own branch, if there is one


@dataclass(frozen=True)
class Outcome:
    """What the world comes to: the repositories, and state and revision of each variant."""

    repositories: dict[str, Contents]
    variants: dict[str, tuple[str, str]]


def first_drafts(root: Path) -> Fleet:
    """Drafts of both, the first there are."""
    fleet = Fleet(root)
    for name in ("blueprints", "edge"):
        fleet.repository(name)
    fleet.release("v1")
    fleet.write("policy.yaml", POLICY)
    fleet.write("promotion.yaml", PROMOTION)
    return fleet


def first_publication(root: Path) -> Fleet:
    """dev is published for the first time."""
    fleet = first_drafts(root)
    fleet.sweep()
    return fleet.later(minutes=1)


def publication_of_two(root: Path) -> Fleet:
    """Two of dev are published by one commit, and nobody waits for them."""
    fleet = first_drafts(root)
    both = POLICY.replace(AT_PROD, "").replace("[sites/ams]", "[sites/ams, sites/ber]")
    fleet.write("policy.yaml", both.replace("  - {name: prod, after: {stages: [dev]}}\n", ""))
    fleet.sweep()
    return fleet.later(minutes=1)


def next_drafts(root: Path) -> Fleet:
    """A draft of v2 while v1 is in force."""
    fleet = first_drafts(root)
    fleet.settle()
    fleet.release("v2")
    return fleet.later(minutes=1)


def publication_with_edits(root: Path) -> Fleet:
    """v3 over v2, which has a person's edit in it."""
    fleet = first_drafts(root)
    fleet.settle()
    fleet.repos["edge"].commit("main", {f"{AMS}/deployment.yaml": EDITED})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    fleet.release("v3")
    fleet.later(minutes=1).sweep()
    return fleet.later(minutes=1)


def going_back(root: Path) -> Fleet:
    """dev goes back to v1, as a person had edited it."""
    fleet = publication_with_edits(root)
    fleet.settle()
    fleet.write("policy.yaml", POLICY.replace("{name: dev}", "{name: dev, pin: v1}"))
    fleet.later(minutes=1).sweep()
    return fleet.later(minutes=1)


def removal(root: Path) -> Fleet:
    """The target of prod is gone."""
    fleet = first_drafts(root)
    fleet.settle()
    fleet.write("policy.yaml", POLICY.replace(AT_PROD, ""))
    return fleet.later(minutes=1)


def removal_with_a_draft(root: Path) -> Fleet:
    """The target of prod is gone while it has a draft."""
    fleet = first_drafts(root)
    fleet.settle()
    fleet.write("promotion.yaml", PROMOTION.replace('["*"]}\n', "[dev]}\n"))
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    fleet.write("promotion.yaml", PROMOTION)
    fleet.write("policy.yaml", POLICY.replace(AT_PROD, ""))
    return fleet.later(minutes=1)


def arrival(root: Path) -> Fleet:
    """A package is published at the path to which its variant moves."""
    fleet = moving.two_sites(root)
    moving.edit(fleet)
    moving.place(fleet, "ams", moving.NEW)
    fleet.later(minutes=1).sweep()
    return fleet.later(minutes=1)


def arrival_elsewhere(root: Path) -> Fleet:
    """The same in another repository."""
    fleet = moving.two_sites(root)
    moving.place(fleet, "ams", moving.NEW, "core")
    fleet.later(minutes=1).sweep()
    return fleet.later(minutes=1)


def clearing(root: Path) -> Fleet:
    """What a variant that moved has left goes."""
    fleet = arrival(root)
    fleet.sweep()
    return fleet.later(minutes=1)


def adoption(root: Path) -> Fleet:
    """A package that was cloned by hand and edited is taken over, by a person's word."""
    fleet = first_drafts(root)
    commit = fleet.repos["blueprints"].refs()["refs/tags/monitoring/v1"]
    git = f"  git: {{repo: {fleet.repos['blueprints'].path}, directory: /monitoring"
    kptfile = (
        f"{PACKAGE['Kptfile']}upstream:\n  type: git\n{git}, ref: monitoring/v1}}\n"
        f"  updateStrategy: resource-merge\nupstreamLock:\n  type: git\n"
        f"{git}, ref: monitoring/v1, commit: {commit}}}\n"
    )
    cloned = {**PACKAGE, "Kptfile": kptfile, "deployment.yaml": EDITED}
    fleet.repos["edge"].commit("main", {f"{AMS}/{path}": text for path, text in cloned.items()})
    fleet.write(
        "policy.yaml", POLICY.replace("  stages:\n", "  adoptionPolicy: AdoptExisting\n  stages:\n")
    )
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    return fleet.later(minutes=1)


def promoted(fleet: Fleet) -> object:
    return fleet.run("promote", "monitoring", "--stage", "dev", "--variant", AMS, *ANN)


PASSES: list[tuple[Callable[[Path], Fleet], Callable[[Fleet], object]]] = [
    (first_drafts, Fleet.sweep),
    (next_drafts, Fleet.sweep),
    (first_publication, Fleet.sweep),
    (publication_of_two, Fleet.sweep),
    (publication_with_edits, Fleet.sweep),
    (going_back, Fleet.sweep),
    (arrival, Fleet.sweep),
    (arrival_elsewhere, Fleet.sweep),
    (clearing, Fleet.sweep),
    (adoption, promoted),
    (removal, Fleet.sweep),
    (removal_with_a_draft, Fleet.sweep),
]


RECORDED = [first_publication, publication_with_edits, removal]


def outcome(fleet: Fleet) -> Outcome:
    """What the world comes to."""
    fleet.later(minutes=1).settle()
    repositories = {}
    for name, repo in fleet.repos.items():
        vendor = [tree(repo, ref) for ref in repo.refs(RENDERED)]
        repositories[name] = Contents(tree(repo, "main"), repo.drafts(), tags(fleet, name), vendor)
    variants = {
        path: (status["state"], status.get("published", {}).get("revision", ""))
        for path, status in fleet.variants().items()
    }
    return Outcome(repositories, variants)


def tags(fleet: Fleet, name: str) -> dict[str, str]:
    """The tree of each package that has a tag."""
    repo = fleet.repos[name]
    return {tag: repo.object_id(f"{tag}:{tag.rpartition('/')[0]}") for tag in repo.tags()}


@pytest.fixture(scope="module")
def push_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Push]:
    """Return the pushes of a world, which are made once."""

    @cache
    def make(build: Callable[[Path], Fleet], act: Callable[[Fleet], object]) -> Push:
        root = tmp_path_factory.mktemp("half") / "live"
        root.mkdir()
        return pushed(build(root), outcome, act)

    return make


@pytest.mark.diagonal
@pytest.mark.parametrize(("build", "act"), PASSES, ids=[build.__name__ for build, _ in PASSES])
def test_a_half_push_without_a_record_is_published_again(push_of, build, act):
    push = push_of(build, act)
    for moved in push.subsets():
        fleet = push.half_done(moved, recorded=False)
        end = outcome(fleet)
        if _drafts_went_first(push, moved):
            # one of several is drafted again and published later: that is another commit, which
            # gets a tag of its own, because no tag is ever moved
            end = _tagged_once(end, push.undisturbed)
        assert end == push.undisturbed, sorted(moved)


@pytest.mark.diagonal
@pytest.mark.parametrize("build", RECORDED, ids=lambda build: build.__name__)
def test_a_recorded_publication_missing_on_the_branch_was_taken_back(push_of, build):
    push, main = push_of(build, Fleet.sweep), ("edge", "refs/heads/main")
    for moved in push.subsets():
        fleet = push.half_done(moved, recorded=True)
        if main not in moved:
            fleet.sweep()
            if build is not removal:
                reason = "BranchRewritten" if build is first_publication else "EditedDownstream"
                assert reason in reasons(fleet), sorted(moved)
            fleet.repos["edge"].git("update-ref", main[1], push.after[main])
        end = outcome(fleet)
        assert in_force(end) == in_force(push.undisturbed), sorted(moved)


def reasons(fleet: Fleet) -> set[str]:
    return {fleet.condition(path)[0] for path in fleet.variants()}


def in_force(end: Outcome) -> object:
    """Without tags and renderings: those that are lost are told, and not made anew."""
    refs_by_repository = {name: (it.branch, it.drafts) for name, it in end.repositories.items()}
    return refs_by_repository, end.variants


def _drafts_went_first(push: Push, moved: frozenset[Ref]) -> bool:
    """Did drafts go before all else moved? They go by a push of their own, after the other."""
    deleted = {ref for ref in push.moved if ref not in push.after}
    return bool(deleted & moved) and not set(push.moved) - deleted <= moved


def _tagged_once(end: Outcome, expected: Outcome) -> Outcome:
    """Without the further tags of trees that are tagged."""
    once = {}
    for name, it in end.repositories.items():
        wanted = expected.repositories[name].tags
        assert set(it.tags.values()) == set(wanted.values())
        kept = {tag: tree_id for tag, tree_id in it.tags.items() if tag in wanted}
        once[name] = replace(it, tags=kept)
    return replace(end, repositories=once)
