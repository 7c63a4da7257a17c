"""What people changed in a published package, or lost beside it, is shown before it matters."""

from pathlib import Path

import pytest
from companies import company
from fleet import PACKAGE, Fleet

AMS, BER = "sites/ams", "sites/ber"
DEPLOYMENT = f"{AMS}/deployment.yaml"
TEXT = PACKAGE["deployment.yaml"]
MARKED = TEXT.replace("  replicas: 1\n", "<<<<<<< a\n  replicas: 1\n=======\n>>>>>>> b\n")
RENDERED = "refs/heads/fanout/default/rendered"


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    made.settle()
    return made


def also(fleet: Fleet, path: str = AMS) -> dict[str, str]:
    """What holds of the variant beside whether it is ready, with the sentence."""
    conditions = fleet.variants()[path]["conditions"][1:]
    return {it["type"]: it["message"] for it in conditions if it["status"] == "True"}


EDITS = [
    ("another number of replicas", TEXT.replace("replicas: 1", "replicas: 9"), ["Edited"], ""),
    ("no YAML", "a: [\n", ["Edited", "Broken"], "sites/ams/deployment.yaml:2:"),
    ("conflict markers", MARKED, ["Edited", "Broken"], "sites/ams/deployment.yaml:6: the markers"),
]


@pytest.mark.parametrize(("_", "text", "types", "place"), EDITS, ids=[row[0] for row in EDITS])
def test_an_edit_of_a_published_package_is_shown(fleet: Fleet, _, text, types, place):
    assert also(fleet) == {}
    fleet.repos["edge"].commit("main", {DEPLOYMENT: text})
    assert list(also(fleet)) == types
    assert also(fleet, BER) == {}
    row = next(it for it in fleet.run("get", "variants").out.splitlines() if AMS in it)
    assert ",".join(types) in row
    [policy] = fleet.run("get", "policies", "-o", "json").items
    status = policy["status"]
    assert (status["editedVariants"], status["brokenVariants"]) == (1, len(types) - 1)
    output = fleet.run("explain", f"monitoring/dev/edge:{AMS}").out
    assert "Edited" in output
    assert place in output
    assert place in fleet.run("explain", "monitoring/dev").out
    assert ("PackageBroken" in fleet.plan("-o", "json").out) == bool(place)


def test_edits_that_the_next_revision_took_over_are_still_shown(fleet: Fleet):
    fleet.repos["edge"].commit("main", {DEPLOYMENT: TEXT + "  paused: true\n"})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.published()[AMS] == "v2"
    assert list(also(fleet)) == ["Edited"]


def test_a_lost_branch_of_renderings_is_reported_at_once(fleet: Fleet):
    edge = fleet.repos["edge"]
    edge.commit("main", {DEPLOYMENT: TEXT + "  paused: true\n"})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    before = edge.refs()[RENDERED]
    edge.git("update-ref", "-d", RENDERED)
    again = "edge: the vendor branch lacks published packages; run `fanout explain monitoring`"
    for line in (["plan"], ["sweep"]):
        assert fleet.run(*line).err.count(again) == 1
    output = fleet.run("explain", "monitoring").out
    sentence = (
        "branch fanout/default/rendered lacks 2 published packages, so edits cannot be told from"
        " upstream content; 1 with merged edits will be held at their next draft; push the branch"
        " again from a clone that has it"
    )
    assert sentence in output
    assert "fanout/default/rendered" in fleet.run("explain", f"monitoring/dev/edge:{AMS}").out
    edge.git("update-ref", RENDERED, before)
    assert again not in fleet.plan().err


def test_diff_does_not_dispute_what_a_commit_on_the_draft_has_decided(fleet: Fleet):
    edge, draft = fleet.repos["edge"], "drafts/default/sites/ams/monitoring"
    edge.commit("main", {DEPLOYMENT: TEXT.replace("replicas: 1", "replicas: 7")})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    diff = ("diff", f"edge:{AMS}", "--against", "draft")
    assert "# conflict:" in fleet.run(*diff).out
    text = edge.file(draft, DEPLOYMENT)
    edge.commit(draft, {DEPLOYMENT: text.replace("replicas: 2", "replicas: 5")})
    output = fleet.run(*diff).out
    assert "# conflict:" not in output
    assert "\n-  replicas: 2\n+  replicas: 5\n" in output


def test_a_link_is_reported_with_its_repository(fleet: Fleet):
    fleet.repos["edge"].commit("main", {f"{AMS}/link.yaml": ("120000", b"settings.yaml")})
    fleet.release("v2")
    result = fleet.later(minutes=1).sweep()
    assert "edge:sites/ams/link.yaml: " in result.err
    reason, sentence = fleet.condition(AMS)
    assert reason == "InvalidPackage"
    assert sentence.startswith("edge:sites/ams/link.yaml: ")
