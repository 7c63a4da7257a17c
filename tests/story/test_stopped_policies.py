"""A policy that is stopped as a whole does nothing, and what is known of it stays visible."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet


@company
def fleet(root: Path) -> Fleet:
    """v1 is in force in dev and drafted in prod."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    made.settle()
    assert made.published() == {"sites/ams": "v1", "sites/ber": ""}
    return made


def moved_tag(fleet: Fleet) -> None:
    upstream = fleet.repos["blueprints"]
    upstream.git("update-ref", "refs/tags/monitoring/v1", fleet.release("v2"))


def no_revision(fleet: Fleet) -> None:
    fleet.repos["blueprints"].git("update-ref", "-d", "refs/tags/monitoring/v1")


def upstream_away(fleet: Fleet) -> None:
    fleet.repos.pop("blueprints").path.rename(fleet.root / "away")


def upstream_undeclared(fleet: Fleet) -> None:
    fleet.remove("repository-blueprints.yaml")


STOPS: list[tuple[str, Callable[[Fleet], None], str]] = [
    ("a tag has moved", moved_tag, "TagMoved"),
    ("upstream has no revision any more", no_revision, "NoRevision"),
    ("upstream does not answer", upstream_away, "RemoteNotFound"),
    ("upstream is not declared any more", upstream_undeclared, "UnknownRepository"),
]


@pytest.mark.parametrize(("_", "happens", "reason"), STOPS, ids=map(itemgetter(0), STOPS))
def test_records_and_publications_of_a_stopped_policy_stay_visible(
    fleet: Fleet, _: str, happens: Callable[[Fleet], None], reason: str
):
    happens(fleet)
    before = fleet.refs()
    assert fleet.sweep().code == 3
    assert fleet.refs() == before
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": ""}
    assert set(fleet.states().values()) == {"Held"}
    assert fleet.condition("sites/ams")[0] == reason
    stages = {it["stage"]: it for it in fleet.run("get", "stages", "-o", "json").views}
    assert {name: stage["counts"] for name, stage in stages.items()} == {
        "dev": {"Held": 1},
        "prod": {"Held": 1},
    }
    assert {hold["reason"] for stage in stages.values() for hold in stage["holds"]} == {reason}
    drafts = [it["path"] for it in fleet.run("get", "drafts", "-o", "json").views]
    assert drafts == ["sites/ber"]
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["variants"] == 2
    assert {it["reason"] for it in policy["status"]["conditions"]} == {reason}


def test_commands_about_variants_of_a_stopped_policy_print_the_cause(fleet: Fleet):
    moved_tag(fleet)
    for verb in ("diff", "render"):
        result = fleet.run(verb, "sites/ams")
        assert result.code == 3
        assert "tag monitoring/v1 pointed to" in result.err


def test_verdicts_on_record_stay_visible(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.sweep()
    moved_tag(fleet)
    dev, prod = fleet.run("get", "stages", "-o", "json").views
    assert (dev["verdicts"], prod["verdicts"]) == ({"v1": "Passed"}, {})
    assert (dev["candidate"], dev["verdict"]) == ("", "Pending")


def test_orphans_of_a_stopped_policy_are_reported_too(fleet: Fleet):
    moved_tag(fleet)
    fleet.remove("site-ams.yaml")
    targets = fleet.run("get", "targets", "-o", "json").views
    assert {it["holds"][0]["reason"] for it in targets} == {"TagMoved", "TargetGone"}


WHY = ("--reason", "because", "--by", "Ann <ann@example.com>")
FAILED = ("report", "monitoring", "--stage", "dev", "--check", "e2e", "--status", "failed")


@pytest.mark.parametrize(("_", "happens", "reason"), STOPS, ids=map(itemgetter(0), STOPS))
def test_failures_and_suspensions_of_a_stopped_policy_are_recorded(
    fleet: Fleet, _: str, happens: Callable[[Fleet], None], reason: str
):
    happens(fleet)
    commit = fleet.repos["edge"].refs()["refs/heads/main"]
    for about in (("--revision", "v1"), ("--commit", commit)):
        reported = fleet.run(*FAILED, *about, *WHY[2:])
        assert reported.code == 0, reported.err
    for where in ((), ("--stage", "prod"), ("--variant", "sites/ams")):
        suspended = fleet.run("suspend", "monitoring", *where, *WHY)
        assert suspended.code == 0, suspended.err
    kinds = [it["kind"] for it in fleet.statements()]
    assert kinds == ["Evidence"] * 2 + ["Decision"] * 3


def test_a_report_during_a_moved_tag_counts_when_the_tag_is_back(fleet: Fleet):
    upstream, tag = fleet.repos["blueprints"], "refs/tags/monitoring/v1"
    was = upstream.refs()[tag]
    moved_tag(fleet)
    assert fleet.run(*FAILED, "--revision", "v1", *WHY[2:]).code == 0
    upstream.git("update-ref", "-d", "refs/tags/monitoring/v2")
    upstream.git("update-ref", tag, was)
    assert fleet.states()["sites/ams"] == "Failed"


def test_evidence_about_what_is_not_published_is_refused_there_too(fleet: Fleet):
    moved_tag(fleet)
    refused = fleet.run(*FAILED, "--revision", "v2", *WHY[2:])
    assert refused.code == 4
    assert "published there: v1" in refused.err


NEEDS_MORE = [
    ("promoting", ("promote", "monitoring", "--stage", "prod", *WHY)),
    ("comparing", ("diff", "sites/ams")),
    ("rendering", ("render", "sites/ams")),
]


@pytest.mark.parametrize(("_", "line"), NEEDS_MORE, ids=map(itemgetter(0), NEEDS_MORE))
@pytest.mark.parametrize(
    ("happens", "words"),
    [(moved_tag, "monitoring/v1"), (upstream_away, "git/blueprints.git")],
    ids=["a tag has moved", "upstream does not answer"],
)
def test_commands_that_need_a_revision_exit_like_a_sweep(
    fleet: Fleet, _: str, line: tuple[str, ...], happens: Callable[[Fleet], None], words: str
):
    happens(fleet)
    result = fleet.run(*line)
    assert (result.code, result.out) == (3, "")
    assert "default/monitoring: " in result.err
    assert words in result.err


def test_no_record_is_written_for_a_policy_with_lost_records(fleet: Fleet):
    fleet.policy("logging")
    fleet.sweep("--drafts-only")
    records, records_branch = fleet.records(), "refs/heads/fanout/default/default/monitoring"
    records.git("update-ref", "-d", records_branch)
    upstream_away(fleet)
    for line in (("suspend", "monitoring", *WHY), (*FAILED, "--revision", "v1", *WHY[2:])):
        assert fleet.run(*line).code == 3
    assert records_branch not in records.refs()
