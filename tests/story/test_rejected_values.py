"""What a merge conflict was decided against is told: in commits, conditions and explanations."""

import json
from pathlib import Path

import pytest
from companies import company
from editing import AMS, DEPLOYMENT, TEXT, conflict, draft, one_site
from fleet import PROMOTION, Fleet

BRANCH = "drafts/default/sites/ams/monitoring"
FIELD = "deployment.yaml: Deployment/prometheus: spec.replicas"
LINE = f"{FIELD}: upstream 2 stands, local 7 not taken (base 1)"
OTHER = f"{FIELD}: local 7 stands, upstream 2 not taken (base 1)"
BY = ("--reason", "why", "--by", "Ann <ann@x.org>")
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: {}\n"

MINE = """\
apiVersion: fanout.dev/v1alpha1
kind: PackageVariant
metadata: {name: mine}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  downstream: {repository: edge, package: own/mine}
"""


@company
def fleet(root: Path) -> Fleet:
    return one_site(root)


def message(fleet: Fleet) -> str:
    """Of the commit that published last."""
    return fleet.repos["edge"].git("log", "-1", "--format=%B", "main")


def condition(fleet: Fleet, name: str) -> dict[str, str]:
    """The condition of this type, of the variant at AMS."""
    return {it["type"]: it for it in fleet.variants()[AMS]["conditions"]}.get(name, {})


def accepted(fleet: Fleet) -> str:
    done = fleet.run(
        "promote", "monitoring", "--stage", "dev", "--variant", AMS, "--accept-conflicts", *BY
    )
    assert done.code == 0, done.err
    return LINE


def resolved(fleet: Fleet) -> str:
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    return OTHER


def committed(fleet: Fleet) -> str:
    text = draft(fleet).replace("replicas: 2", "replicas: 5")
    fleet.repos["edge"].commit(BRANCH, {DEPLOYMENT: text})
    return f"{LINE}; a commit on the draft has decided it since"


def ruled(fleet: Fleet) -> str:
    policy = (fleet.root / "policies" / "policy.yaml").read_text()
    local_wins = policy.replace("  stages:\n", "  onConflict: LocalWins\n  stages:\n")
    fleet.write("policy.yaml", local_wins)
    return OTHER


WAYS = [accepted, resolved, committed, ruled]


@pytest.mark.parametrize("decide", WAYS, ids=lambda it: it.__name__)
def test_rejected_values_are_shown_in_commits_conditions_and_explanations(fleet: Fleet, decide):
    conflict(fleet)
    line = decide(fleet)
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}
    assert line in message(fleet)
    assert message(fleet).splitlines()[-1].startswith("Fanout-")
    shown = condition(fleet, "ConflictsDecided")
    assert (shown["status"], shown["reason"]) == ("True", "ConflictDecided")
    assert line in shown["message"]
    assert line in fleet.run("explain", f"monitoring/dev/{AMS}").out
    row = next(it for it in fleet.run("get", "variants").out.splitlines() if AMS in it)
    assert "ConflictsDecided" in row


def test_the_undecided_conflict_of_a_draft_is_reported_with_both_values(fleet: Fleet):
    conflict(fleet)
    shown = condition(fleet, "MergeConflict")
    assert (shown["status"], shown["reason"]) == ("True", "MergeConflict")
    assert LINE in shown["message"]
    assert LINE in fleet.repos["edge"].git("log", "-1", "--format=%B", BRANCH)
    assert condition(fleet, "ConflictsDecided") == {}


def test_the_next_publication_without_a_conflict_tells_nothing(fleet: Fleet):
    conflict(fleet)
    accepted(fleet)
    fleet.release("v3")
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v3"}
    assert "Merge conflicts" not in message(fleet)
    assert condition(fleet, "ConflictsDecided") == {}


def test_a_message_from_a_template_tells_it_too(fleet: Fleet):
    template = json.dumps("Release {{ revision }}\n\nTicket: OPS-1")
    fleet.write("promotion.yaml", PROMOTION + f"  commitTemplate: {template}\n")
    conflict(fleet)
    accepted(fleet)
    assert message(fleet).startswith("Release v2\n\nMerge conflicts:\n* ")
    assert "\n\nTicket: OPS-1\nFanout-Records: " in message(fleet)


def test_no_value_of_a_secret_is_shown(fleet: Fleet):
    edge, path = fleet.repos["edge"], f"{AMS}/secret.yaml"
    fleet.release("v2", {"secret.yaml": SECRET.format("old-one")})
    fleet.later(minutes=1).settle()
    edge.commit("main", {path: SECRET.format("here-one")})
    fleet.release("v3", {"secret.yaml": SECRET.format("there-one")})
    fleet.later(minutes=1).settle()
    shown = [
        json.dumps(fleet.variants()),
        fleet.run("explain", f"monitoring/dev/{AMS}").out,
        edge.git("log", "-1", "--format=%B", BRANCH),
        fleet.run("sweep").err,
    ]
    accepted(fleet)
    shown += [message(fleet), json.dumps(fleet.variants())]
    assert "Secret/db: stringData.password: upstream (not shown) stands" in shown[-2]
    for text in shown:
        assert not {word for word in ("old-one", "here-one", "there-one") if word in text}


def test_a_variant_written_by_hand_is_held_and_reported_the_same(fleet: Fleet):
    fleet.remove("policy.yaml")
    fleet.write("mine.yaml", MINE)
    fleet.write("promotion.yaml", PROMOTION + "  variants: [mine]\n")
    fleet.settle()
    own = "own/mine/deployment.yaml"
    fleet.repos["edge"].commit("main", {own: TEXT.replace("replicas: 1", "replicas: 7")})
    fleet.release("v2")
    fleet.later(minutes=1).settle()
    assert fleet.condition("own/mine")[0] == "MergeConflict"
    assert "upstream won; undecided" in fleet.run("explain", "mine").out
    assert fleet.run("promote", "mine", *BY).code == 3
    assert fleet.published()["own/mine"] == "v1"
    done = fleet.run("promote", "mine", "--accept-conflicts", *BY)
    assert (done.code, fleet.published()["own/mine"]) == (0, "v2"), done.err
    assert LINE in message(fleet)
    assert LINE in fleet.run("explain", "mine").out
