"""Reports that a stage requires count once the draft was written, for as long as it is that."""

from pathlib import Path

from companies import company
from fleet import Fleet

PLAIN = "{name: dev, verification: [{name: e2e, report: {}}]}"
SCANNED = "{name: dev, requires: [{name: scan, report: {}}]}"
POLL = ("--check", "scan", "--status", "passed", "--revision", "v1")
BY = ("--by", "CI <ci@example.com>")


def require_scan(fleet: Fleet) -> None:
    path = fleet.root / fleet.policies / "policy.yaml"
    text = path.read_text(encoding="utf-8")
    assert PLAIN in text
    path.write_text(text.replace(PLAIN, SCANNED), encoding="utf-8")


def status_lines(fleet: Fleet) -> str:
    records, branch = fleet.records(), "refs/heads/fanout/default/default/monitoring"
    shards = records.git("ls-tree", "-r", "--name-only", branch).split()
    return "".join(records.git("show", f"{branch}:{it}") for it in shards if "status/" in it)


@company
def fleet(root: Path) -> Fleet:
    """One site whose stage requires a scan; its draft stands."""
    made = Fleet.build(root, {"ams": ("dev", "edge")})
    require_scan(made)
    made.sweep()
    assert made.repos["edge"].drafts() == ["sites/ams/monitoring"]
    return made


def scanned(fleet: Fleet) -> None:
    result = fleet.run("report", "monitoring", "--stage", "dev", *POLL, *BY)
    assert result.code == 0, result.err


def test_a_report_between_two_sweeps_counts(fleet: Fleet):
    fleet.later(minutes=10)
    scanned(fleet)
    fleet.later(minutes=10).settle()
    assert fleet.published()["sites/ams"] == "v1"


def test_a_fleet_that_waits_for_a_report_is_at_rest(fleet: Fleet):
    fleet.later(minutes=10).settle()
    head = fleet.records().refs()
    fleet.later(minutes=10).sweep()
    assert fleet.records().refs() == head


def test_a_report_about_other_inputs_does_not_count(fleet: Fleet):
    fleet.later(minutes=10)
    scanned(fleet)
    fleet.later(minutes=10).site("ams", "dev", "edge", retention="30d")
    fleet.settle()
    assert fleet.published()["sites/ams"] == ""
    early = "was recorded before v1 was drafted"
    assert early in fleet.condition("sites/ams")[1]
    fleet.later(minutes=10)
    scanned(fleet)
    fleet.later(minutes=10).settle()
    assert fleet.published()["sites/ams"] == "v1"


def test_a_draft_that_nobody_put_on_record_counts_from_when_it_is_seen(tmp_path: Path):
    """As after a pass that was killed, and for drafts of earlier versions."""
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge")})
    fleet.sweep()
    assert "draft/" not in status_lines(fleet)
    require_scan(fleet)
    fleet.later(minutes=10)
    assert "when the draft of monitoring-ams-047978a1d8 was first seen" in fleet.plan().out
    fleet.sweep()
    assert "draft/monitoring-ams" in status_lines(fleet)
    fleet.later(minutes=10)
    scanned(fleet)
    fleet.later(minutes=10).settle()
    assert fleet.published()["sites/ams"] == "v1"
    assert "draft/" not in status_lines(fleet), "what is published has no draft"
