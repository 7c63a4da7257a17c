"""A person takes a publication back on the branch: seen at once, and what follows is no mixture."""

from collections.abc import Callable
from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, RULE, Fleet

AMS, CPH = "sites/ams", "sites/cph"
DEPLOYMENT = f"{AMS}/deployment.yaml"
RENDERED = "refs/heads/fanout/default/rendered"
WHY = ("--reason", "it is mended", "--by", "Ann <ann@example.com>")
PAUSED = "  paused: true # by hand\n"


@company
def fleet(root: Path) -> Fleet:
    """A site in dev before one in prod; v3 is published in dev, with a person's edit in it."""
    sites = {"ams": ("dev", "edge"), "cph": ("prod", "core")}
    made = Fleet.build(root, sites)
    made.settle()
    made.repos["edge"].commit("main", {DEPLOYMENT: PACKAGE["deployment.yaml"] + PAUSED})
    made.release("v2")
    made.later(minutes=1).settle()
    made.release("v3")
    made.later(minutes=1).settle()
    assert made.published() == {AMS: "v3", CPH: ""}
    assert made.states()[AMS] == "Verifying"
    return made


def reverted(fleet: Fleet) -> str:
    """Answers the head before."""
    edge = fleet.repos["edge"]
    head = edge.refs()["refs/heads/main"]
    tree = edge.git("rev-parse", f"{AMS}/v2^{{tree}}")
    commit = edge.git("commit-tree", tree, "-p", head, "-m", "Revert what was merged")
    edge.git("update-ref", "refs/heads/main", commit)
    return head


def reset(fleet: Fleet) -> str:
    edge = fleet.repos["edge"]
    head = edge.refs()["refs/heads/main"]
    edge.git("update-ref", "refs/heads/main", edge.git("rev-parse", f"{AMS}/v2"))
    return head


def undone_and_edited(fleet: Fleet) -> str:
    """The lock alone tells: the tree is none that was ever published."""
    head = reverted(fleet)
    fleet.repos["edge"].commit("main", {f"{AMS}/notes.txt": "what happened\n"})
    return head


WAYS = [
    ("by git revert -m 1", reverted),
    ("by a forced reset of the branch", reset),
    ("by git revert, and edited since", undone_and_edited),
]


@pytest.fixture(params=[row[1] for row in WAYS], ids=[row[0] for row in WAYS])
def undo(request: pytest.FixtureRequest) -> Callable[[Fleet], str]:
    return request.param


def lock(fleet: Fleet, revision: str = "main", path: str = AMS) -> str:
    """The refs that the Kptfile names, once."""
    text = fleet.repos["edge"].file(revision, f"{path}/Kptfile")
    refs = {line.partition(":")[2].strip() for line in text.splitlines() if "ref:" in line}
    return " ".join(sorted(refs))


def test_a_variant_reverted_by_hand_is_held_at_once_and_its_remedies_are_named(fleet: Fleet, undo):
    undo(fleet)
    assert fleet.states() == {AMS: "Held", CPH: "Drafted"}
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    table = fleet.run("get", "variants").out.splitlines()
    [row] = [it.split() for it in table if AMS in it]
    assert {"Held", "EditedDownstream", "Reverted"} <= set(row), table
    assert all(word in sentence for word in ("edge:sites/ams", "v2", "v3"))
    assert "fanout promote monitoring" in sentence
    plan = fleet.plan()
    assert plan.code == 3
    assert sentence in plan.err
    output = fleet.run("explain", f"monitoring/dev/edge:{AMS}").out
    assert ": Held, " in output
    assert "EditedDownstream" in output


def test_evidence_about_what_was_taken_back_does_not_count_for_it(fleet: Fleet):
    reverted(fleet)
    fleet.later(minutes=1).report("dev", "v3")
    fleet.settle()
    fleet.later(hours=2).settle()
    assert fleet.states()[AMS] == "Held"
    assert fleet.published()[CPH] == ""
    [name] = [it for it in names(fleet) if "ams" in it]
    refused = fleet.report("dev", "v3", "passed", "--variant", name)
    assert refused.code == 4
    assert "v3 is not published" in refused.err


def names(fleet: Fleet) -> list[str]:
    return [it["metadata"]["name"] for it in fleet.run("get", "variants", "-o", "json").items]


def test_a_publication_put_back_is_in_force_again(fleet: Fleet):
    head = reset(fleet)
    fleet.later(minutes=1).settle()
    fleet.repos["edge"].git("update-ref", "refs/heads/main", head)
    fleet.later(minutes=1).settle()
    assert fleet.states()[AMS] == "Verifying"
    assert fleet.repos["edge"].drafts() == []
    fleet.later(minutes=1).report("dev", "v3")
    fleet.settle()
    fleet.later(hours=2).settle()
    assert set(fleet.published().values()) == {"v3"}


@pytest.mark.parametrize("newer", [False, True], ids=["the same again", "a newer one"])
def test_a_person_goes_on_with_a_draft_that_is_no_mixture(fleet: Fleet, newer):
    undone_and_edited(fleet)
    expected = "v4" if newer else "v3"
    if newer:
        fleet.release("v4")
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v3"
    draft = "drafts/default/sites/ams/monitoring"
    assert lock(fleet, draft) == f"monitoring/{expected}"
    done = fleet.later(minutes=1).run("promote", "monitoring", "--stage", "dev", *WHY)
    assert done.code == 0, done.err
    fleet.settle()
    edge = fleet.repos["edge"]
    text = edge.file("main", DEPLOYMENT)
    assert f"replicas: {expected[1]}" in text
    assert PAUSED in text
    assert lock(fleet) == f"monitoring/{expected}"
    assert (fleet.published()[AMS], fleet.states()[AMS]) == (expected, "Verifying")
    fleet.later(minutes=1).report("dev", expected)
    assert fleet.states()[AMS] == "Ready"


def test_other_inputs_of_the_same_revision_are_taken_back(fleet: Fleet):
    before = fleet.repos["edge"].refs()["refs/heads/main"]
    fleet.site("ams", "dev", "edge", "30d")
    fleet.later(minutes=1).settle()
    assert "30d" in fleet.repos["edge"].file("main", f"{AMS}/settings.yaml")
    fleet.repos["edge"].git("update-ref", "refs/heads/main", before)
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    assert "tag sites/ams/v3" in sentence
    fleet.later(minutes=1).settle()
    assert fleet.run("promote", "monitoring", "--stage", "dev", *WHY).code == 0
    assert "30d" in fleet.repos["edge"].file("main", f"{AMS}/settings.yaml")
    assert PAUSED in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_without_the_branch_of_renderings_only_restoring_is_left(fleet: Fleet):
    fleet.repos["edge"].git("update-ref", "-d", RENDERED)
    head = reverted(fleet)
    fleet.release("v4")
    fleet.later(minutes=1).settle()
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    assert "restore it" in sentence
    assert fleet.repos["edge"].drafts() == []
    fleet.repos["edge"].git("update-ref", "refs/heads/main", head)
    assert fleet.condition(AMS)[0] != "EditedDownstream"


def test_a_package_that_is_pointed_elsewhere_is_held_until_a_person_decides(fleet: Fleet):
    edge = fleet.repos["edge"]
    text = edge.file("main", f"{AMS}/Kptfile")
    edge.commit("main", {f"{AMS}/Kptfile": text.replace("/monitoring\n", "/logging\n")})
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    assert "/logging" in sentence
    fleet.release("v4")
    fleet.later(minutes=1).settle()
    assert edge.drafts() == []


def test_edits_of_fanout_s_own_fields_are_not_kept(fleet: Fleet):
    edge = fleet.repos["edge"]
    text = edge.file("main", f"{AMS}/Kptfile")
    edge.commit("main", {f"{AMS}/Kptfile": text.replace("monitoring/v3", "main", 1)})
    assert fleet.states()[AMS] == "Verifying"
    fleet.release("v4")
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v4"
    assert lock(fleet) == "monitoring/v4"


def test_a_pin_of_the_reverted_revision_puts_it_in_force(fleet: Fleet):
    reverted(fleet)
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    fleet.write("policy.yaml", policy.replace('{semver: ">=1 <9"}', "{tag: v2}"))
    fleet.later(minutes=1).settle()
    assert (fleet.published()[AMS], fleet.states()[AMS]) == ("v2", "Verifying")
    assert fleet.repos["edge"].drafts() == []


def test_the_rendering_of_another_package_at_the_same_commit_is_no_base(tmp_path: Path):
    """Two directories of one repository, by commits: no tag tells the packages apart."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    edge, upstream = fleet.repos["edge"], fleet.repos["blueprints"]
    logging = {f"logging/{name}": text for name, text in PACKAGE.items()}
    first = upstream.commit("main", logging)
    second = upstream.commit("main", {"logging/notes.txt": "what is new\n"})
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    for package, commit in (("monitoring", first), ("logging", second)):
        rule = f"package: {package}, revision: {{commit: {commit}}}"
        fleet.write("policy.yaml", policy.replace(RULE, rule))
        fleet.later(minutes=1).settle()
        assert fleet.published() == {AMS: commit}
    # Nothing of this package was ever published at the first commit.
    text = edge.file("main", f"{AMS}/Kptfile").replace(second, first)
    edge.commit("main", {f"{AMS}/Kptfile": text, f"{AMS}/notes.txt": None})
    reason, sentence = fleet.condition(AMS)
    assert reason == "EditedDownstream"
    assert first[:7] in sentence
    assert "promote" not in sentence
