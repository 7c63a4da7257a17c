"""A soak begins when a sweep puts the verdict on record; who only looks starts no clock."""

from datetime import timedelta
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet

from fanout.gates import gate_wording

LINES = [
    ("get stages", ("get", "stages", "-o", "json")),
    ("explain", ("explain", "monitoring/prod", "-o", "json")),
    ("plan", ("plan", "-o", "json")),
]


@company
def reported(root: Path) -> Fleet:
    """Dev is published and verified, and no sweep has seen it yet."""
    made = Fleet.build(root)
    made.settle()
    assert made.later(minutes=5).report("dev", "v1").code == 0
    return made


@pytest.mark.parametrize("line", [row[1] for row in LINES], ids=[row[0] for row in LINES])
def test_looking_again_later_shows_the_same(reported: Fleet, line: tuple[str, ...]):
    early = reported.later(minutes=1).run(*line)
    late = reported.later(hours=5).run(*line)
    assert early.out == late.out


def test_the_clock_starts_with_the_sweep_and_not_with_the_report(reported: Fleet):
    reason, sentence = reported.later(hours=5).condition("sites/ber")
    hour = timedelta(hours=1)
    unrecorded = gate_wording.describe_unrecorded_soak("v1", "dev", hour)
    assert (reason, sentence) == ("SoakRunning", unrecorded)
    reported.settle()
    swept = reported.now
    until = swept.replace(hour=swept.hour + 1).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert until in reported.later(minutes=30).condition("sites/ber")[1]
    reported.later(minutes=29).settle()
    assert reported.published()["sites/ber"] == ""
    reported.later(minutes=1).settle()
    assert reported.published()["sites/ber"] == "v1"


def test_a_publication_that_no_sweep_has_seen_has_no_instant_yet(fleet: Fleet):
    fleet.sweep("--drafts-only")
    core, draft = fleet.repos["core"], "refs/heads/drafts/default/sites/cph/monitoring"
    merge = core.git("commit-tree", f"{draft}^{{tree}}", "-p", "main", "-p", draft, "-m", "merged")
    core.git("update-ref", "refs/heads/main", merge)
    early = fleet.run("get", "variants", "-o", "json").out
    assert early == fleet.later(hours=1).run("get", "variants", "-o", "json").out
    assert "at" not in fleet.variants()["sites/cph"]["published"]
    fleet.sweep()
    assert fleet.variants()["sites/cph"]["published"]["at"] == "2026-03-02T10:00:00Z"
