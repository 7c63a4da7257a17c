"""Variants go by what people call them: the name of their cluster, in every verb that takes one."""

import re
from operator import itemgetter
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet

WHY = ("--reason", "because", "--by", "Ann <ann@example.com>")
KEY = "Cluster.infra.example.com/default/ams"


@company
def fleet(root: Path) -> Fleet:
    """Two clusters in dev, of which v1 is in force, and one in prod."""
    sites = {"ams": ("dev", "edge"), "amst": ("dev", "edge"), "ber": ("prod", "edge")}
    made = Fleet.build(root, sites)
    made.settle()
    return made


NAMES = [
    ("the target's name", "ams"),
    ("kind and name", "Cluster/ams"),
    ("kind and name, as kubectl writes it", "cluster/ams"),
    ("namespace and name", "default/ams"),
    ("the target's key", KEY),
    ("the path", "sites/ams"),
    ("the place", "edge:sites/ams"),
]


@pytest.mark.parametrize(("_", "name"), NAMES, ids=map(itemgetter(0), NAMES))
def test_a_variant_goes_by(fleet: Fleet, _: str, name: str):
    own = fleet.run("get", "variants", "-o", "json").items[0]["metadata"]["name"]
    assert fleet.run("render", name).out == fleet.run("render", own).out != ""
    assert fleet.run("diff", name).code == 0
    assert fleet.run("explain", f"monitoring/dev/{name}").out.startswith(
        "Variant monitoring/dev/ams: "
    )
    arguments = ("--variant", name, "--by", WHY[-1])
    lines = (
        ("report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "passed",
         "--revision", "v1", *arguments),
        ("suspend", "monitoring", *arguments, "--reason", "because"),
        ("resume", "monitoring", *arguments, "--reason", "because"),
    )  # fmt: skip
    for line in lines:
        assert fleet.run(*line).code == 0, line
    records = fleet.statements()
    assert [record["spec"]["variants"] for record in records] == [[own]] * 3
    fleet.remove("site-ams.yaml")
    removed = fleet.run("remove", "monitoring", name, *WHY)
    assert removed.code == 0, removed.err
    assert removed.out.splitlines()[1].startswith(f"{own} removed: sites/ams in ")
    assert "sites/ams" not in fleet.variants()


def test_a_draft_without_a_target_is_removed_by_its_place(tmp_path: Path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("dev", "edge")})
    fleet.sweep()
    fleet.remove("site-ams.yaml")
    removed = fleet.run("remove", "monitoring", "edge:sites/ams", *WHY)
    assert removed.code == 0, removed.err
    assert fleet.repos["edge"].drafts() == ["sites/ber/monitoring"]


def test_a_name_that_two_variants_have_names_both(fleet: Fleet):
    fleet.policy("logging")
    result = fleet.run("render", "ams")
    assert (result.code, result.out) == (1, "")
    assert "logging-ams-" in result.err
    assert f"(target {KEY}), monitoring-ams-" in result.err
    assert fleet.run("render", "logging/ams").out  # its path, which is its own
    assert fleet.run("suspend", "logging", "--variant", "ams", *WHY).code == 0


NEAR = [
    ("in a verb of one policy", ("suspend", "monitoring", "--variant", "berr", *WHY)),
    ("in a verb of all", ("render", "berr")),
    ("in a verb of a subject", ("explain", "monitoring/prod/berr")),
]


@pytest.mark.parametrize(("_", "line"), NEAR, ids=map(itemgetter(0), NEAR))
def test_a_name_that_is_near_is_proposed(fleet: Fleet, _: str, line: tuple[str, ...]):
    result = fleet.run(*line)
    assert result.code == 1
    assert re.search(r"\bberr\b.*\bber\b", result.err), result.err


def test_a_removal_without_a_name_lists_the_removable_variants(fleet: Fleet):
    fleet.remove("site-ams.yaml")
    result = fleet.run("remove", "monitoring", *WHY)
    assert result.code == 1
    assert "default/monitoring" in result.err
    assert "monitoring-ams-" in result.err


def test_a_removal_never_guesses_a_name(fleet: Fleet):
    for name in ("ams", "amst"):
        fleet.remove(f"site-{name}.yaml")
    before = fleet.refs()
    for name in ("am", "other/ams", "ConfigMap/ams"):
        result = fleet.run("remove", "monitoring", name, *WHY)
        assert (result.code, fleet.refs()) == (1, before)
        assert f"variant {name} " in result.err


def test_a_target_without_a_variant_says_why_by_its_short_name_too(fleet: Fleet):
    fleet.site("dub", "dev", "nowhere")
    result = fleet.run("explain", "monitoring/dev/dub")
    assert result.code == 3
    assert "Repository nowhere" in result.err


STAGELESS = [
    ("report", ("report", "monitoring", "--check", "e2e", "--status", "passed", "--revision", "v1",
                *WHY[2:])),
    ("promote", ("promote", "monitoring", *WHY)),
    ("promote at a revision", ("promote", "monitoring", "--revision", "v1", *WHY)),
]  # fmt: skip


@pytest.mark.parametrize(("_", "line"), STAGELESS, ids=map(itemgetter(0), STAGELESS))
def test_a_stage_that_is_not_named_is_asked_for(fleet: Fleet, _: str, line: tuple[str, ...]):
    result = fleet.run(*line)
    assert result.code == 1
    assert "--stage" in result.err
    assert "dev, prod" in result.err
    assert fleet.statements() == []
