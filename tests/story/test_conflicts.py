"""Where upstream and local changed the same: the variant is held until a person decides."""

from pathlib import Path

import pytest
from companies import company
from editing import AMS, DEPLOYMENT, TEXT, conflict, draft, one_site
from fleet import PACKAGE, Fleet


@company
def fleet(root: Path) -> Fleet:
    return one_site(root)


def test_upstream_wins_in_a_conflict_and_automation_waits_for_a_decision(fleet: Fleet):
    conflict(fleet)
    assert "replicas: 2" in draft(fleet)
    reason, sentence = fleet.condition(AMS)
    assert reason == "MergeConflict"
    assert sentence.startswith("1 ")
    assert "replicas: 7" in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_a_conflict_is_reported_in_full_when_the_draft_is_written_and_then_in_short(fleet: Fleet):
    text = TEXT.replace("replicas: 1", "replicas: 7")
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    fleet.release("v2")
    full, short = (
        "fanout resolve monitoring",
        "fanout explain monitoring",
    )
    outputs = [fleet.plan().err, fleet.sweep().err, fleet.sweep().err, fleet.plan().err]
    assert [full in err for err in outputs] == [True, True, False, False]
    assert [short in err for err in outputs] == [False, False, True, True]
    [held] = fleet.plan("-o", "json").json["held"]
    assert full in held["message"]


def test_accepting_conflicts_prints_the_publication(fleet: Fleet):
    conflict(fleet)
    lines = fleet.run(*PROMOTE, "--variant", AMS, "--accept-conflicts", *BY)
    assert fleet.published()[AMS] == "v2"
    assert "its draft is published with 1 merge conflict that a person accepted" in lines.err
    assert "fanout resolve" not in lines.err
    assert fleet.sweep().err == ""


def test_diff_names_the_conflict_with_its_three_values(fleet: Fleet):
    conflict(fleet)
    first_line = fleet.run("diff", "sites/ams").out.splitlines()[0]
    assert first_line.startswith("# conflict: deployment.yaml:")
    assert "Deployment/prometheus: spec.replicas: both changed" in first_line
    assert "(base 1, upstream 2, local 7); upstream won" in first_line


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


NOT_ACCEPTED = [
    ("a promotion of the stage", (), 3),
    ("a promotion that names the variant", ("--variant", AMS), 3),
    ("conflicts accepted without a variant", ("--accept-conflicts",), 1),
]


@pytest.mark.parametrize(("_", "args", "code"), NOT_ACCEPTED, ids=[row[0] for row in NOT_ACCEPTED])
def test_a_promotion_does_not_decide_a_conflict_by_silence(fleet: Fleet, _, args, code):
    conflict(fleet)
    before = fleet.records().refs()
    refused = fleet.run(*PROMOTE, *args, *BY)
    assert (refused.code, fleet.records().refs()) == (code, before), refused.err
    assert "--accept-conflicts" in refused.err
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v1"}
    assert "replicas: 7" in fleet.repos["edge"].file("main", DEPLOYMENT)


WORDS = [
    ("Hold", "v1", "replicas: 7"),
    ("UpstreamWins", "v2", "replicas: 2"),
    ("LocalWins", "v2", "replicas: 7"),
]


@pytest.mark.parametrize(("word", "published", "value"), WORDS, ids=[row[0] for row in WORDS])
def test_the_policy_says_what_a_conflict_does(fleet: Fleet, word, published, value):
    on_conflict(fleet, word)
    conflict(fleet)
    assert fleet.published() == {AMS: published}
    assert value in fleet.repos["edge"].file("main", DEPLOYMENT)


def test_an_open_draft_takes_the_value_that_the_policy_says_since(fleet: Fleet):
    conflict(fleet)
    on_conflict(fleet, "LocalWins")
    fleet.later(minutes=1).sweep("--drafts-only")
    assert "replicas: 7" in draft(fleet)
    on_conflict(fleet, "Hold")  # what a rule decided holds no longer than the rule
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "MergeConflict"
    assert fleet.published() == {AMS: "v1"}


def on_conflict(fleet: Fleet, word: str) -> None:
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    others = "".join(it for it in policy.splitlines(keepends=True) if "onConflict:" not in it)
    fleet.write("policy.yaml", others.replace("  stages:\n", f"  onConflict: {word}\n  stages:\n"))


OTHER = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
PROMOTE = ("promote", "monitoring", "--stage", "dev")
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


def test_a_resolved_conflict_is_not_raised_again_by_the_next_revision(fleet: Fleet):
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
    assert fleet.condition(AMS)[0] == "MergeConflict"


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
    assert fleet.condition(AMS)[0] == "MergeConflict"
    assert fleet.published() == {AMS: "v1"}
    fleet.release("v3", {"service.yaml": OTHER})  # people's commits are taken along, undecided
    fleet.later(minutes=1).settle()
    assert fleet.condition(AMS)[0] == "MergeConflict"
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
    lines = fleet.run("diff", "sites/ams").out.splitlines()
    [replicas] = [it for it in lines if it.startswith("# conflict") and "replicas" in it]
    [paused] = [it for it in lines if it.startswith("# conflict") and "paused" in it]
    keys = [it.rpartition("[")[2].removesuffix("]") for it in (replicas, paused)]
    assert fleet.run("resolve", "monitoring", "--take", f"{keys[0]}=local", *BY).code == 0
    fleet.later(minutes=1).settle()
    assert "replicas: 7" in draft(fleet)
    reason, sentence = fleet.condition(AMS)
    assert (reason, "1 undecided merge conflict" in sentence) == ("MergeConflict", True)
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
    ("a word that is no side", "theirs", "neither SIDE nor KEY=SIDE"),
    ("a key without a side", "0123456789abcdef=", "neither SIDE nor KEY=SIDE"),
    ("a key that no draft has", "0123456789abcdef=local", "has such a conflict"),
]


@pytest.mark.parametrize(("_", "take", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_an_unusable_choice_of_a_side_is_refused(fleet: Fleet, _, take, words):
    conflict(fleet)
    before = fleet.records().refs()
    refused = fleet.run("resolve", "monitoring", "--take", take, *BY)
    assert refused.code in (1, 4)
    assert fleet.records().refs() == before
    assert words in refused.err
