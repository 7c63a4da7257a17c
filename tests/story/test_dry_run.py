"""`--dry-run`: says what would be recorded and what would follow, and writes nothing."""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml
from companies import company
from editing import conflict, one_site
from fleet import Fleet
from pseudo_terminal import Screen, run_on_terminal
from verb_statuses import (
    ANN,
    BER,
    PROD,
    VERB_ROWS,
    WHY,
    Change,
    automatic,
    build_waiting_release,
    nothing,
    published,
    remove_site,
    signed,
    suspended,
)


@company
def fleet(root: Path) -> Fleet:
    """Two sites in prod, published at v1 and drafted at v2, which a person is to publish."""
    return build_waiting_release(root)


RECORDING = (
    "promote",
    "rollback",
    "skip",
    "retry",
    "remove",
    "approve",
    "revoke",
    "withdraw",
    "suspend",
    "resume",
    "report",
    "resolve",
    "sweep",
)
ROWS = [row for row in VERB_ROWS if row[2][0] in RECORDING and "--plan" not in row[2]]


def kept(fleet: Fleet) -> dict[str, object]:
    """Every ref of every repository, the records, and the files that later passes rely on."""
    state = fleet.root / fleet.state
    lasting = [path for name in ("heads", "rest") for path in sorted((state / name).rglob("*"))]
    files = {
        str(path.relative_to(state)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in lasting
        if path.is_file()
    }
    records = fleet.records()
    return {**fleet.refs(), "records": records.refs() if records.path.is_dir() else {}, **files}


@pytest.mark.parametrize(
    ("change", "line", "status"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS]
)
def test_a_dry_run_writes_nothing_and_foretells_the_status(
    fleet: Fleet,
    change: Change,
    line: Sequence[str],
    status: int,
):
    change(fleet)
    fleet.plan()
    before = kept(fleet)
    result = fleet.run(*line, "--dry-run")
    assert result.code == status, (result.out, result.err)
    assert kept(fleet) == before


def test_a_promotion_shows_its_record_and_its_actions(fleet: Fleet):
    result = fleet.run("promote", *PROD, *WHY, "--dry-run")
    first, _, rest = result.out.partition("would be recorded:\n")
    assert first.split()[1:] == ["recorded", "for", "v2", "(dry", "run)"]
    record, _, table = rest.partition("ACTION")
    spec = yaml.safe_load(record)["spec"]
    assert (spec["action"], spec["revision"], spec["reason"]) == ("Publish", "v2", "as agreed")
    assert "Plan: 2 to be released, 2 to be published" in table
    assert fleet.published() == {"sites/ber": "v1", "sites/cph": "v1"}


def test_a_decision_without_an_action_shows_its_effect_alone(fleet: Fleet):
    line = ("skip", *PROD, "--variant", BER, *WHY)
    shown, done = fleet.run(*line, "--dry-run"), fleet.run(*line)
    _, effect = done.out.splitlines()
    assert shown.out.splitlines()[-1] == effect
    assert "nothing to do" not in shown.out


def test_a_command_does_what_its_dry_run_showed(fleet: Fleet):
    line = ("promote", *PROD, *WHY)
    shown = fleet.run(*line, "--dry-run", "-o", "json").json
    done = fleet.run(*line, "-o", "json").json
    assert [it["kind"] for it in shown["records"]] == ["Decision"]
    assert [(it["kind"], it["variant"]) for it in shown["actions"]] == [
        (it["kind"], it["variant"]) for it in done["outcomes"]
    ]


def test_an_approval_shows_what_the_next_sweep_would_do(fleet: Fleet):
    signed(fleet)
    automatic(fleet)
    line = ("approve", *PROD, "--revision", "v2", *ANN)
    result = fleet.run(*line, "--dry-run")
    assert "approval.fanout.dev/" in result.out
    assert "the next sweep would do:\n" in result.out
    assert "2 to be published" in result.out
    assert fleet.run("get", "approvals").out == ""


def test_a_removal_is_shown_and_not_done(fleet: Fleet):
    remove_site(fleet)
    result = fleet.run("remove", "monitoring", "cph", *WHY, "--dry-run")
    assert "sites/cph" in result.out
    assert all("(dry run)" in line for line in result.out.splitlines() if "fanout.dev/2" in line)
    assert "sites/cph/deployment.yaml" in fleet.repos["core"].files()


def test_resuming_everything_is_shown(fleet: Fleet):
    suspended(fleet)
    result = fleet.run("suspend", "--all", *WHY, "--dry-run")
    assert "action: Suspend" in result.out
    assert fleet.run("get", "decisions").out.count("Suspend") == 1


def test_a_sweep_is_shown_as_its_plan(fleet: Fleet):
    fleet.release("v3")
    plan = fleet.run("plan").out
    dry = fleet.run("sweep", "--dry-run").out
    assert dry
    assert plan.startswith(dry)


def test_a_saved_plan_is_compared_and_not_executed(fleet: Fleet, tmp_path: Path):
    fleet.release("v3")
    saved = str(tmp_path / "plan.json")
    fleet.plan("--out", saved)
    before = fleet.refs()
    assert fleet.sweep("--plan", saved, "--dry-run").code == 0
    fleet.release("v4")
    assert fleet.sweep("--plan", saved, "--dry-run").code == 4
    assert {name: refs for name, refs in fleet.refs().items() if name != "blueprints"} == {
        name: refs for name, refs in before.items() if name != "blueprints"
    }


def test_conflicts_stay_undecided(tmp_path: Path):
    made = one_site(tmp_path)
    conflict(made)
    made.later(minutes=1).sweep("--drafts-only")
    before = kept(made)
    result = made.run("resolve", "monitoring", *WHY, "--dry-run")
    assert (result.code, "action: Resolve" in result.out) == (0, True)
    assert kept(made) == before


def test_a_rollback_is_shown(fleet: Fleet):
    published(fleet)
    result = fleet.run("rollback", "--yes", *PROD, *WHY, "--variant", BER, "--dry-run")
    assert "action: Rollback" in result.out
    assert fleet.published()[BER] == "v2"


def rollback_on_terminal(fleet: Fleet, typed: str) -> Screen:
    options = ("-f", str(fleet.root / "policies"), "--state-dir", str(fleet.root / "state"))
    now = ("--now", fleet.now.isoformat())
    return run_on_terminal(["rollback", *PROD, *WHY, *options, *now], typed=typed)


def test_a_rollback_asks_on_a_terminal(fleet: Fleet):
    published(fleet)
    refused = rollback_on_terminal(fleet, "n\n")
    assert refused.code == 4
    assert "monitoring-ber-928771694f: v2 -> v1" in refused.text
    assert "Roll back to v1? [y/N]" in refused.text
    assert set(fleet.published().values()) == {"v2"}
    assert rollback_on_terminal(fleet, "y\n").code == 0
    assert set(fleet.published().values()) == {"v1"}


def test_a_rollback_without_a_terminal_needs_yes(fleet: Fleet):
    published(fleet)
    refused = fleet.run("rollback", *PROD, *WHY)
    assert refused.code == 1
    assert "--yes" in refused.err
    assert set(fleet.published().values()) == {"v2"}


def test_a_dry_run_over_an_unswept_fleet_makes_no_records_repository(tmp_path: Path):
    made = Fleet.build(tmp_path)
    nothing(made)
    assert made.sweep("--dry-run").code == 0
    assert not (tmp_path / "state" / "records.git").exists()
