"""`fanout get conflicts`, and what other tables show of merge conflicts."""

from pathlib import Path

import pytest
from companies import company
from editing import AMS, DEPLOYMENT, conflict, draft, one_site
from fleet import Fleet

BRANCH = "drafts/default/sites/ams/monitoring"
BY = ("--reason", "why", "--by", "Ann <ann@x.org>")
SECRET = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\nstringData:\n  password: {}\n"


@company
def fleet(root: Path) -> Fleet:
    return one_site(root)


def conflicts(fleet: Fleet) -> list[dict]:
    return fleet.run("get", "conflicts", "-o", "json").views


def outcome(view: dict) -> tuple[str, str, bool]:
    return view["place"], view["inForce"], view["decided"]


def test_an_undecided_conflict_is_in_every_table(fleet: Fleet):
    conflict(fleet)
    [view] = conflicts(fleet)
    shown = ("policy", "stage", "targetName", "path", "file", "object", "field", "revision")
    assert [view[name] for name in shown] == [
        "monitoring",
        "dev",
        "ams",
        AMS,
        "deployment.yaml",
        "Deployment/prometheus",
        "spec.replicas",
        "v2",
    ]
    assert (view["base"], view["upstream"], view["local"]) == ("1", "2", "7")
    assert outcome(view) == ("Draft", "Upstream", False)
    [row] = fleet.run("get", "drafts", "-o", "json").items
    assert view["since"] == row["metadata"]["creationTimestamp"]
    [variant] = fleet.run("get", "variants", "-o", "json").views
    assert (variant["state"], variant["conflicts"]) == ("Held", [view["key"]])
    [stage, _] = fleet.run("get", "stages", "-o", "json").views
    [policy] = fleet.run("get", "policies", "-o", "json").views
    assert (stage["conflicts"], policy["conflicts"]) == (1, 1)
    by_key = fleet.run("get", "conflicts", view["key"], "-o", "name")
    assert by_key.out == f"conflictview.fanout.dev/{view['variant']}/v2/{view['key']}\n"


def test_a_side_that_was_taken_is_in_force_and_stays_listed_once_published(fleet: Fleet):
    conflict(fleet)
    assert fleet.run("resolve", "monitoring", "--take", "local", *BY).code == 0
    fleet.later(minutes=1).settle()
    assert fleet.published() == {AMS: "v2"}
    [view] = conflicts(fleet)
    assert outcome(view) == ("Published", "Local", True)
    assert (view["base"], view["upstream"], view["local"]) == ("1", "2", "7")
    assert view["since"] == fleet.variants()[AMS]["published"]["at"]
    [policy] = fleet.run("get", "policies", "-o", "json").views
    assert policy["conflicts"] == 0


def test_a_commit_on_the_draft_decides_with_a_value_of_its_own(fleet: Fleet):
    conflict(fleet)
    fleet.repos["edge"].commit(
        BRANCH, {DEPLOYMENT: draft(fleet).replace("replicas: 2", "replicas: 5")}
    )
    [view] = conflicts(fleet)
    assert outcome(view) == ("Draft", "Edited", True)


def test_a_draft_that_is_accepted_as_it_stands_has_no_undecided_conflict(fleet: Fleet):
    conflict(fleet)
    assert fleet.run("resolve", "monitoring", *BY).code == 0
    [view] = conflicts(fleet)
    assert outcome(view) == ("Draft", "Upstream", True)


def test_no_value_of_a_secret_is_shown(fleet: Fleet):
    fleet.release("v2", {"secret.yaml": SECRET.format("first")})
    fleet.later(minutes=1).settle()
    fleet.repos["edge"].commit("main", {f"{AMS}/secret.yaml": SECRET.format("here")})
    fleet.release("v3", {"secret.yaml": SECRET.format("there")})
    fleet.later(minutes=1).settle()
    [view] = conflicts(fleet)
    assert {view["base"], view["upstream"], view["local"]} == {"(not shown)"}
    assert "Secret" in fleet.run("get", "conflicts").out


@pytest.mark.parametrize("words", [("nope",), ("--policy", "nope")])
def test_a_name_that_no_conflict_has(fleet: Fleet, words: tuple[str, ...]):
    conflict(fleet)
    assert fleet.run("get", "conflicts", *words).code == 1
