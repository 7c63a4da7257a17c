"""Clocks that run ahead: what they recorded counts for nothing yet and holds nothing up."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from companies import company
from fleet import START, Fleet, two_stages

WHY = ("--reason", "why", "--by", "Ann <ann@example.com>")
LIFTS = ("--override", "after", "--override", "soak")
FAR = datetime(2400, 1, 1, tzinfo=UTC)


@company
def fleet(root: Path) -> Fleet:
    """Two sites in dev and prod; dev has v1 published and waits for its evidence."""
    made = Fleet.build(root, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    made.settle()
    return made


def from_ahead(fleet: Fleet, then: Callable[[Fleet], object]) -> str:
    """Record something with a clock that runs ahead; answers the record's name."""
    before = fleet.now
    fleet.now = FAR
    then(fleet)
    fleet.now = before
    records = fleet.run("get", "records", "-o", "json").items
    return str(records[-1]["metadata"]["name"])


def state_of(fleet: Fleet, name: str) -> str:
    records = fleet.run("get", "records", "-o", "json").items
    return next(it["status"].get("state", "") for it in records if it["metadata"]["name"] == name)


def test_a_report_from_ahead_does_not_hold_later_ones(fleet: Fleet):
    name = from_ahead(fleet, lambda it: it.report("dev", "v1", "failed"))
    assert fleet.condition("sites/ams")[0] == "FromTheFuture"
    assert state_of(fleet, name) == "Ahead"
    assert f"Evidence {name} of Ci <ci@example.com> is dated 2400-01-01T00:00:00Z" in (
        fleet.run("explain", "monitoring").out
    )
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    assert fleet.states()["sites/ams"] == "Ready"
    fleet.later(hours=1).settle()
    assert fleet.published() == {"sites/ams": "v1", "sites/ber": "v1"}


def test_evidence_from_ahead_is_withdrawn(fleet: Fleet):
    name = from_ahead(fleet, lambda it: it.report("dev", "v1"))
    withdrawn = fleet.run("withdraw", "monitoring", f"evidence.fanout.dev/{name}", *WHY)
    assert (withdrawn.code, state_of(fleet, name)) == (0, "Withdrawn")
    assert name not in fleet.run("explain", "monitoring").out
    fleet.now = FAR + timedelta(days=1)
    fleet.settle()
    assert fleet.states()["sites/ams"] != "Ready"
    again = fleet.run("withdraw", "monitoring", name, *WHY)
    assert (again.code, "is already withdrawn" in again.err) == (0, True)


def test_a_decision_after_a_record_from_the_future_counts(fleet: Fleet):
    from_ahead(fleet, lambda it: it.report("dev", "v1"))
    fleet.later(minutes=1)
    promote = ("promote", "monitoring", "--stage", "prod", *LIFTS, *WHY)
    assert fleet.run(*promote).code == 0
    fleet.settle()
    assert fleet.published()["sites/ber"] == "v1"


def test_a_failure_is_retried_after_a_record_from_ahead(fleet: Fleet):
    fleet.report("dev", "v1", "failed")
    from_ahead(fleet, lambda it: it.report("dev", "v1"))
    fleet.later(minutes=1)
    assert fleet.run("retry", "monitoring", "--stage", "dev", *WHY).code == 0
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    assert fleet.states()["sites/ams"] == "Ready"


def test_a_rollback_after_a_record_from_ahead_counts(tmp_path):
    fleet = two_stages(tmp_path, {"ams": ("dev", "edge")})
    fleet.release("v2")
    fleet.settle()
    assert fleet.published() == {"sites/ams": "v2"}
    from_ahead(fleet, lambda it: it.report("dev", "v2"))
    back = fleet.later(minutes=1).run("rollback", "--yes", "monitoring", "--stage", "dev", *WHY)
    assert back.code == 0
    fleet.settle()
    assert fleet.published() == {"sites/ams": "v1"}


def test_a_promotion_is_not_carried_out_twice_when_a_record_from_ahead_comes_due(fleet: Fleet):
    """At 11:00 all that was recorded since 9:00 would be dated 11:00, after its publication."""
    before = fleet.now
    fleet.later(hours=2).report("dev", "v1")
    fleet.now = before + timedelta(minutes=1)
    promote = ("promote", "monitoring", "--stage", "prod", *LIFTS, *WHY)
    assert fleet.run(*promote).code == 0
    fleet.settle()
    decisions = fleet.run("get", "decisions", "-o", "json").items
    assert [it["status"]["state"] for it in decisions] == ["Applied"]
    fleet.now = before + timedelta(hours=2)
    fleet.settle()
    after = fleet.run("get", "decisions", "-o", "json").items
    assert [it["status"]["state"] for it in after] == ["Applied"]
    assert after[0]["metadata"]["creationTimestamp"] == "2026-03-02T09:01:00Z"


def test_a_sweep_from_ahead_does_not_hold_what_is_reported_later(tmp_path):
    """Its grants, publications and verdicts are dated 2400, and evidence of today is older."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    fleet.now = FAR
    fleet.settle()
    fleet.now = START
    fleet.settle()
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    assert fleet.states()["sites/ams"] == "Ready"
    fleet.later(hours=1).settle()
    assert fleet.published()["sites/ber"] == "v1"


def test_a_suspension_from_ahead_stops_at_once_and_is_resumed(fleet: Fleet):
    """What stops counts at once: a person who stops a fleet is not told that the clock is wrong."""
    fleet.report("dev", "v1")
    from_ahead(fleet, lambda it: it.run("suspend", "monitoring", "--stage", "prod", *WHY))
    fleet.settle()
    fleet.later(hours=2).settle()
    assert fleet.published()["sites/ber"] == ""
    assert fleet.run("resume", "monitoring", "--stage", "prod", *WHY).code == 0
    fleet.settle()
    assert fleet.published()["sites/ber"] == "v1"
