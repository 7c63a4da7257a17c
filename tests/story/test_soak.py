"""A soak begins with what its verdict rests on, whoever looks and whenever a sweep sees it."""

from datetime import timedelta
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet

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
    late = reported.later(minutes=40).run(*line)
    assert early.out == late.out


def test_the_clock_starts_with_the_report_and_not_with_the_sweep(reported: Fleet):
    until = (reported.now + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    reason, sentence = reported.later(minutes=50).condition("sites/ber")
    assert (reason, until in sentence) == ("SoakRunning", True)
    reported.settle()
    assert until in reported.later(minutes=1).condition("sites/ber")[1]
    reported.later(minutes=8).settle()
    assert reported.published()["sites/ber"] == ""
    reported.later(minutes=1).settle()
    assert reported.published()["sites/ber"] == "v1"


def test_a_sweep_after_the_soak_publishes_at_once(reported: Fleet):
    reported.later(hours=5).settle()
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
