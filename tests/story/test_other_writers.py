"""Two processes of one installation, as when a node is lost and its pod goes on.

They have the repositories and the records in common, and nothing else.
"""

from pathlib import Path

from companies import company
from fleet import Fleet

from fanout.cli.startup import Program, open_program
from fanout.reconcile.pass_scope import PassMode

RECENT = PassMode(listing_age=3600.0)
SITES = {"ams": ("dev", "edge"), "ber": ("dev", "core")}


@company
def fleet(root: Path) -> Fleet:
    fleet = Fleet.build(root, SITES)
    fleet.settle()
    return fleet


def publish_elsewhere(fleet: Fleet, *line: str) -> None:
    """Sweep in a process with a state directory of its own."""
    records = str(fleet.records().path)
    for _ in range(2):  # drafts, then publications
        fleet.run("sweep", "--state-dir", str(fleet.root / "other"), "--records", records, *line)


def count_listings(program: Program) -> int:
    program.world.counters.reset()
    report = program.sweep(RECENT)
    assert report.pass_plan.problems == ()
    return program.world.counters.read()["listings"]


def test_a_publication_of_another_process_is_no_removal_by_hand(fleet: Fleet):
    with open_program(fleet.settings(), long_running=True) as program:
        program.sweep(PassMode())
        fleet.release("v2")
        publish_elsewhere(fleet)
        assert fleet.published() == {"sites/ams": "v2", "sites/ber": "v2"}
        count_listings(program)
        assert program.sweep(RECENT).outcomes == ()


def test_repositories_are_listed_once_after_another_process_wrote_the_status(fleet: Fleet):
    with open_program(fleet.settings(), long_running=True) as program:
        program.sweep(PassMode())
        records_alone = count_listings(program)
        fleet.release("v2")
        publish_elsewhere(fleet)
        assert count_listings(program) == records_alone + 3
        assert count_listings(program) == records_alone
        fleet.report("dev", "v2")  # which changes records, and no status
        assert count_listings(program) == records_alone
