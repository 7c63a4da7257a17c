"""Records that were put back to an older state are noticed, and accepted only by a decision."""

import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet
from rewinding import ACCEPT, RECORDS_BRANCH, SUSPEND, WHY, head, held, moved, put_back


@company
def fleet(root: Path) -> Fleet:
    """Dev has v1 published; prod follows without a soak once dev is verified."""
    made = Fleet.build(root)
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.settle()
    return made


def test_a_dry_run_shows_what_would_be_accepted_and_accepts_nothing(fleet: Fleet):
    fleet.report("dev", "v1")
    assert fleet.run(*SUSPEND).code == 0
    fleet.records().git("update-ref", RECORDS_BRANCH, f"{RECORDS_BRANCH}^")
    before = fleet.refs(), head(fleet)
    shown = fleet.run(*ACCEPT, "--dry-run")
    assert shown.code == 0, (shown.out, shown.err)
    assert "(dry run)" in shown.out
    assert shown.err.startswith("missing from now on: Decision ")
    assert "Suspend stage prod" in shown.err
    assert (fleet.refs(), head(fleet)) == before
    held(fleet)


def test_a_suspension_is_not_forgotten_when_the_branch_is_put_back(fleet: Fleet):
    fleet.report("dev", "v1")
    assert fleet.run(*SUSPEND).code == 0
    fleet.records().git("update-ref", RECORDS_BRANCH, f"{RECORDS_BRANCH}^")
    output = held(fleet)
    assert "branch fanout/default/default/monitoring of " in output
    assert "Suspend stage prod" in output
    assert "fanout accept-records monitoring" in output
    assert held(fleet) == output, "it is not forgotten by looking"


def test_rewound_records_are_held_even_after_an_idle_pass_at_that_commit(fleet: Fleet):
    assert fleet.sweep().out == "nothing to do\n"
    before = head(fleet)
    fleet.run(*SUSPEND)
    put_back(fleet, before)
    held(fleet)


def test_a_branch_that_was_deleted_is_missed_also_before_anything_is_written(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    assert fleet.run(*SUSPEND).code == 0
    fleet.policy("other")
    assert fleet.run("suspend", "other", *WHY).code == 0
    fleet.records().git("update-ref", "-d", RECORDS_BRANCH)
    assert RECORDS_BRANCH.removeprefix("refs/heads/") in held(fleet)


def test_the_branch_is_restored_and_all_goes_on(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.run(*SUSPEND)
    newest = head(fleet)
    fleet.records().git("update-ref", RECORDS_BRANCH, f"{RECORDS_BRANCH}^")
    held(fleet)
    put_back(fleet, newest)
    fleet.settle()
    assert fleet.states()["sites/ber"] == "Suspended"


def test_no_record_is_appended_to_rewound_records(fleet: Fleet):
    fleet.run(*SUSPEND)
    fleet.records().git("update-ref", RECORDS_BRANCH, f"{RECORDS_BRANCH}^")
    before = head(fleet)
    assert fleet.report("dev", "v1").code == 3
    assert head(fleet) == before


def published_everywhere(fleet: Fleet) -> str:
    """Publish v1 in prod and v2 in dev; answers where the records were before that."""
    before = head(fleet)
    fleet.later(minutes=1).report("dev", "v1")
    fleet.settle()
    fleet.later(minutes=1).release("v2")
    fleet.settle()
    assert fleet.published()["sites/ams"] == "v2"
    assert fleet.published()["sites/ber"] == "v1"
    return before


def test_a_publication_names_the_last_record_of_its_release(fleet: Fleet):
    published_everywhere(fleet)
    names = [
        Path(name).stem for name in fleet.records().files(RECORDS_BRANCH) if "records/" in name
    ]
    [trailer] = [
        line
        for line in fleet.repos["edge"].git("log", "-1", "--format=%B", "sites/ber/v1").splitlines()
        if line.startswith("Fanout-Records: ")
    ]
    assert [trailer.partition(": ")[2]] == names


def test_a_fresh_machine_notices_by_the_publications(fleet: Fleet):
    put_back(fleet, published_everywhere(fleet))
    output = held(moved(fleet, "another"))
    assert "sites/ams/v2" in output
    assert "fanout accept-records monitoring" in output


@pytest.mark.parametrize("fresh", [False, True], ids=["the same machine", "a fresh one"])
def test_an_old_copy_is_restored_on_purpose(fleet: Fleet, fresh: bool):
    before = published_everywhere(fleet)
    assert fleet.run(*SUSPEND).code == 0
    refs, published = fleet.refs(), fleet.published()
    put_back(fleet, before)
    if fresh:
        moved(fleet, "another")
    held(fleet)
    accepted = fleet.later(minutes=1).run(*ACCEPT)
    assert accepted.code == 0, accepted.err
    names_missing = "missing from now on: " in accepted.err and "Suspend stage prod" in accepted.err
    assert names_missing is not fresh
    assert ("the missing records are unknown" in accepted.err) is fresh
    fleet.settle()
    assert fleet.published() == published
    assert (
        fleet.refs()["edge"].items()
        >= {ref: oid for ref, oid in refs["edge"].items() if ref.startswith("refs/tags/")}.items()
    )
    assert fleet.sweep().out == "nothing to do\n"
    again = fleet.run(*ACCEPT)
    assert (again.code, "nothing to do" in again.err) == (0, True)
    fleet.later(minutes=1).report("dev", "v2")
    fleet.settle()
    assert set(fleet.published().values()) == {"v2"}


def test_records_rewound_after_an_acceptance_are_held_again(fleet: Fleet):
    put_back(fleet, published_everywhere(fleet))
    fleet.later(minutes=1).run(*ACCEPT)
    fleet.settle()
    accepted = head(fleet)
    fleet.later(minutes=1).report("dev", "v2")
    fleet.settle()
    put_back(fleet, accepted)
    held(fleet)
    held(moved(fleet, "another"))


def test_another_machine_goes_by_what_was_accepted(fleet: Fleet):
    before = published_everywhere(fleet)
    shutil.copytree(fleet.root / "state" / "heads", fleet.root / "heads-of-another")
    put_back(fleet, before)
    fleet.later(minutes=1).run(*ACCEPT)
    fleet.settle()
    shutil.rmtree(fleet.root / "state" / "heads")
    (fleet.root / "heads-of-another").rename(fleet.root / "state" / "heads")
    assert fleet.sweep().code == 0


def test_begin_anew_asks_for_nothing_that_was_seen(fleet: Fleet):
    fleet.records().git("update-ref", "-d", RECORDS_BRANCH)
    assert fleet.sweep("--new-records").code == 0
    assert fleet.sweep().code == 0
