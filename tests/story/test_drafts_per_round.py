"""`draftsPerRound`: a policy with many outdated drafts does not keep the others waiting."""

import threading
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
from companies import company
from fleet import POLICY, Fleet

from fanout.cli.continuous_operation import build_dependencies
from fanout.cli.startup import open_program
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassMode
from fanout.schedule import run_loop
from fanout.schedule.run_loop import RunLoop
from fanout.values import replace

SITES = ("ams", "ber", "cph", "dub", "esp")
PATIENCE = 60  # seconds, for a slow machine
STAGE = "stageExpr: target.metadata.labels.tier\n"
PRIORITY = """\
      priorityExpr: "target.metadata.name == 'esp' ? 2 : target.metadata.name == 'ams' ? 1 : 0"
"""


@company
def fleet(root: Path) -> Fleet:
    return Fleet.build(root, dict.fromkeys(SITES, ("dev", "edge")))


def drafts(fleet: Fleet) -> set[str]:
    """Return the sites with a draft."""
    return {it.split("/")[-2] for it in fleet.repos["edge"].drafts()}


def make_round(fleet: Fleet, *, limit: int, publish: bool = False) -> PassReport:
    """Make one pass as `fanout run` does."""
    with fleet.opened() as program:
        return program.sweep(PassMode(draft_limit=limit, publish=publish))


def test_a_policy_writes_no_more_than_its_share_and_goes_on_in_the_next_round(fleet: Fleet):
    written = []
    for _ in range(4):
        report = make_round(fleet, limit=2)
        assert report.fix_count == 0
        written.append((len(drafts(fleet)), len(report.outcomes)))
    assert written == [(2, 2), (4, 2), (5, 1), (5, 0)]
    assert fleet.plan("--drafts-only", "--detailed-exitcode").code == 0  # nothing is left to write


def test_the_first_drafts_are_those_of_the_highest_priority(fleet: Fleet):
    fleet.write("policy.yaml", POLICY.replace(STAGE, STAGE + PRIORITY))
    make_round(fleet, limit=2)
    assert drafts(fleet) == {"ams", "esp"}


def test_an_outdated_draft_is_not_published_while_it_waits_to_be_written_again(fleet: Fleet):
    make_round(fleet, limit=5)
    fleet.site("dub", "dev", "edge", retention="30d")
    report = make_round(fleet, limit=0, publish=True)
    held = {it.subject: it.reason for it in report.pass_plan.problems}
    assert [reason for name, reason in held.items() if "dub" in name] == ["NoDraft"]
    assert drafts(fleet) == {"dub"}  # those of the others are published
    make_round(fleet, limit=1, publish=True)
    make_round(fleet, limit=1, publish=True)
    published = fleet.repos["edge"].file("main", "sites/dub/Kptfile")
    assert "monitoring" in published


def test_fanout_run_writes_all_of_them_round_by_round(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(run_loop, "FILE_CHECK_INTERVAL", 0.01)
    configuration = fleet.root / "fanout.yaml"
    configuration.write_text(
        "apiVersion: fanout.dev/v1alpha1\nkind: FanoutConfiguration\ndraftsPerRound: 2\n"
    )
    settings = replace(fleet.settings(), config=configuration)
    with open_program(settings, long_running=True) as program:
        limit = program.configuration.drafts_per_round
        loop = RunLoop(build_dependencies(program), timedelta(hours=1), "", limit)
        thread = threading.Thread(target=loop.run)
        thread.start()
        try:
            deadline = monotonic() + PATIENCE
            while sum(it.endswith("/Kptfile") for it in fleet.repos["edge"].files()) < len(SITES):
                assert monotonic() < deadline
                assert thread.is_alive()
                sleep(0.05)
        finally:
            loop.stop()
            thread.join(PATIENCE)
