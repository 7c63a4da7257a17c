"""A record that stops something is named in each repository of its policy.

So a process that has never read the records notices that they were put back to an older state.
"""

import shutil
from pathlib import Path

import pytest
from companies import company
from fleet import POLICY, Fleet
from rewinding import ACCEPT, RECORDS_BRANCH, SUSPEND, WHY, head, held, moved, put_back

TRACES = "refs/heads/fanout/default/_records"
REPOSITORIES = ("edge", "core")


@company
def fleet(root: Path) -> Fleet:
    """Dev has v1 published; prod follows without a soak once dev is verified."""
    made = Fleet.build(root)
    made.write("policy.yaml", POLICY.replace(", soak: 1h", ""))
    made.settle()
    return made


def traces(fleet: Fleet, policy: str = "default/monitoring") -> dict[str, str]:
    """Return what each repository names of the policy, by repository."""
    return {
        name: fleet.repos[name].git("show", f"{TRACES}:{policy}")
        for name in REPOSITORIES
        if TRACES in fleet.repos[name].refs() and policy in fleet.repos[name].files(TRACES)
    }


def last_record(fleet: Fleet) -> str:
    form = "--format=%(trailers:key=Fanout-Record,valueonly)"
    return fleet.records().git("log", form, RECORDS_BRANCH).split()[0]


def test_a_suspension_is_not_forgotten_by_a_machine_that_never_read_it(fleet: Fleet):
    fleet.report("dev", "v1")
    before = head(fleet)
    assert fleet.run(*SUSPEND).code == 0
    put_back(fleet, before)
    output = held(moved(fleet, "another"))
    assert "is named in" in output
    assert "fanout accept-records monitoring" in output


def test_a_suspension_is_missed_when_no_pass_followed_the_loss_of_its_branch(fleet: Fleet):
    assert fleet.run(*SUSPEND).code == 0
    fleet.policy("other")
    fleet.settle()
    fleet.records().git("update-ref", "-d", RECORDS_BRANCH)
    swept = moved(fleet, "another").sweep()
    assert swept.code == 3
    assert "default/monitoring" in swept.err


def test_all_records_lost_before_anything_was_drafted_are_missed(tmp_path: Path):
    fleet = Fleet.build(tmp_path)
    assert fleet.run(*SUSPEND).code == 0
    fleet.state = "another"
    swept = fleet.sweep()
    assert swept.code == 2
    assert "_records" in swept.err
    assert fleet.sweep("--new-records").code == 0
    assert traces(fleet) == {}
    assert fleet.sweep().code == 0


DECISIONS = {
    "suspend": ["suspend", "monitoring", *WHY],
    "suspend of a variant": ["suspend", "monitoring", "--variant", "cph", *WHY],
    "suspend of all": ["suspend", "--all", *WHY],
    "skip": ["skip", "monitoring", "--revision", "v1", "--stage", "prod", "--variant", "ber", *WHY],
}


@pytest.mark.parametrize("line", DECISIONS.values(), ids=DECISIONS)
def test_each_decision_that_stops_something_is_named_in_all_repositories(fleet: Fleet, line):
    fleet.report("dev", "v1")
    before = head(fleet)
    assert traces(fleet) == {}
    assert fleet.run(*line).code == 0
    named = traces(fleet)
    assert set(named) == set(REPOSITORIES)
    assert all(last_record(fleet) in it for it in named.values())
    refs = fleet.refs()
    fleet.sweep()
    assert traces(fleet) == named
    assert {name: it[TRACES] for name, it in fleet.refs().items() if TRACES in it} == {
        name: it[TRACES] for name, it in refs.items() if TRACES in it
    }, "it is written once"
    put_back(fleet, before)
    held(moved(fleet, "another"))


def test_a_record_that_stops_no_variant_leaves_no_trace(fleet: Fleet):
    fleet.report("dev", "v1")
    fleet.settle()
    fleet.later(minutes=1).release("v2")
    fleet.settle()
    promote = ("promote", "monitoring", "--stage", "prod", "--override", "after", "--override")
    assert fleet.run(*promote, "soak", *WHY).code == 0
    assert not any(TRACES in it for it in fleet.refs().values())


def test_a_withdrawal_and_a_resumption(fleet: Fleet):
    fleet.report("dev", "v1")
    evidence = last_record(fleet)
    assert fleet.run("withdraw", "monitoring", evidence, *WHY).code == 0
    withdrawn = traces(fleet)
    assert all(last_record(fleet) in it for it in withdrawn.values())
    assert set(withdrawn) == set(REPOSITORIES)
    assert fleet.later(minutes=1).run(*SUSPEND).code == 0
    suspended = traces(fleet)
    assert fleet.later(minutes=1).run("resume", "monitoring", "--stage", "prod", *WHY).code == 0
    fleet.sweep()
    assert traces(fleet) == suspended != withdrawn, "to resume stops nothing"


def test_a_dry_run_leaves_no_trace(fleet: Fleet):
    assert fleet.run(*SUSPEND, "--dry-run").code == 0
    assert traces(fleet) == {}


@pytest.mark.parametrize("refused", ["by a hook", "by silence"])
def test_a_repository_that_cannot_take_it_is_reported_and_written_when_it_answers(
    fleet: Fleet, refused: str
):
    fleet.report("dev", "v1")
    before, core = head(fleet), fleet.repos["core"]
    if refused == "by a hook":
        core.hook("pre-receive", "echo not today; exit 1")
    else:
        core.path.rename(core.path.with_suffix(".away"))
    suspended = fleet.run(*SUSPEND)
    assert suspended.code == 0, suspended.err
    assert str(core.path) in suspended.err
    assert "does not name it yet" in suspended.err
    swept = fleet.sweep()
    assert "does not name it yet" in swept.err
    if refused == "by a hook":
        (core.path / "hooks" / "pre-receive").unlink()
    else:
        core.path.with_suffix(".away").rename(core.path)
    fleet.later(minutes=1).sweep()
    assert set(traces(fleet)) == set(REPOSITORIES)
    assert "does not name it yet" not in fleet.sweep().err
    fleet.repos["edge"].git("update-ref", "-d", TRACES)
    put_back(fleet, before)
    held(moved(fleet, "another"))


def test_a_process_that_ended_between_the_record_and_its_traces_loses_none(fleet: Fleet):
    assert fleet.run(*SUSPEND).code == 0
    named = traces(fleet)
    for name in REPOSITORIES:  # as if it had not come to them
        fleet.repos[name].git("update-ref", "-d", TRACES)
    fleet.sweep()
    assert traces(fleet) == named


def test_a_plan_names_the_traces_that_a_sweep_writes(fleet: Fleet):
    assert fleet.run(*SUSPEND).code == 0
    named = traces(fleet)
    fleet.settle()
    assert fleet.plan().out == "nothing to do\n"
    for name in REPOSITORIES:
        fleet.repos[name].git("update-ref", "-d", TRACES)
    for _ in range(2):  # the second one may be answered by the first
        text = fleet.plan().out
        assert "2 record traces to be written" in text
        assert text.endswith("2 refs to push\n")
        for name in REPOSITORIES:
            assert f"fanout/default/_records of {name}: name {last_record(fleet)}" in text
    planned = fleet.plan("-o", "json").json
    assert [it["kind"] for it in planned["actions"]] == ["WriteTrace", "WriteTrace"]
    assert planned["estimate"] == {"refs": 2, "hosts": []}
    fleet.sweep()
    assert traces(fleet) == named
    assert fleet.plan().out == "nothing to do\n"


def test_an_old_copy_is_accepted_once_and_an_older_one_is_held_again(fleet: Fleet):
    fleet.report("dev", "v1")
    before = head(fleet)
    fleet.run(*SUSPEND)
    put_back(fleet, before)
    held(moved(fleet, "another"))
    accepted = fleet.later(minutes=1).run(*ACCEPT)
    assert accepted.code == 0, accepted.err
    assert "the missing records are unknown" in accepted.err
    fleet.settle()
    assert fleet.published()["sites/ber"] == "v1"
    assert fleet.sweep().out == "nothing to do\n"
    put_back(fleet, before)
    held(moved(fleet, "third"))


def test_policies_of_one_repository_have_their_own_traces(fleet: Fleet):
    fleet.policy("other")
    fleet.settle()
    assert fleet.run("suspend", "--all", *WHY).code == 0
    for policy in ("default/monitoring", "default/other"):
        assert set(traces(fleet, policy)) == set(REPOSITORIES)
    for name in REPOSITORIES:
        fleet.repos[name].git("update-ref", "-d", TRACES)
    fleet.sweep()
    for policy in ("default/monitoring", "default/other"):
        assert set(traces(fleet, policy)) == set(REPOSITORIES)
    assert fleet.repos["edge"].git("rev-list", "--count", TRACES) == "1", "one push for both"


def test_a_trace_that_somebody_edited_is_written_anew(fleet: Fleet):
    fleet.run(*SUSPEND)
    named = traces(fleet)
    fleet.repos["edge"].commit("fanout/default/_records", {"default/monitoring": "what?"})
    fleet.sweep()
    assert traces(fleet) == named


def test_an_empty_repository_gets_no_branch_of_traces_as_its_first(fleet: Fleet):
    shutil.rmtree(fleet.repos["core"].path)
    fleet.repository("core", first=False)
    assert fleet.run(*SUSPEND).code == 0
    assert set(traces(fleet)) == {"edge"}
    assert fleet.repos["core"].refs() == {}
