"""A policy that is stopped as a whole does nothing, and what is known of it stays visible."""

from collections.abc import Callable
from operator import itemgetter
from pathlib import Path

import pytest
from fleet import Fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """v1 is in force in dev and drafted in prod."""
    made = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
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
def test_what_is_on_record_and_in_the_repositories_stays_visible(
    fleet: Fleet, _: str, happens: Callable[[Fleet], None], reason: str
):
    happens(fleet)
    before = fleet.refs()
    assert fleet.sweep().code == 3
    assert fleet.refs() == before
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": ""}
    assert set(fleet.states().values()) == {"Held"}
    assert fleet.condition("sites/ams")[0] == reason
    stages = {it["stage"]: it for it in fleet.run("get", "stages", "-o", "json").items}
    assert {name: stage["counts"] for name, stage in stages.items()} == {
        "dev": {"Held": 1},
        "prod": {"Held": 1},
    }
    assert {hold["reason"] for stage in stages.values() for hold in stage["holds"]} == {reason}
    drafts = [it["path"] for it in fleet.run("get", "drafts", "-o", "json").items]
    assert drafts == ["sites/ber"]
    [policy] = fleet.run("get", "policies", "-o", "json").items
    assert policy["status"]["variants"] == 2
    assert {it["reason"] for it in policy["status"]["conditions"]} == {reason}


def test_what_is_asked_of_its_variants_is_answered_with_what_stops_it(fleet: Fleet):
    moved_tag(fleet)
    for verb in ("diff", "render"):
        told = fleet.run(verb, "sites/ams")
        assert told.code == 2
        assert "tag monitoring/v1 pointed to" in told.err


def test_verdicts_on_record_stay_visible(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.sweep()
    moved_tag(fleet)
    dev, prod = fleet.run("get", "stages", "-o", "json").items
    assert (dev["verdicts"], prod["verdicts"]) == ({"v1": "passed"}, {})
    assert (dev["candidate"], dev["verdict"]) == ("", "pending")


def test_what_nobody_wants_any_more_is_told_of_a_stopped_policy_too(fleet: Fleet):
    moved_tag(fleet)
    fleet.remove("site-ams.yaml")
    targets = fleet.run("get", "targets", "-o", "json").items
    assert {it["holds"][0]["reason"] for it in targets} == {"TagMoved", "TargetGone"}
