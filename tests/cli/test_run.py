"""`fanout run` as a real process on real repositories."""

import json
import signal
import subprocess
from datetime import UTC, datetime, timedelta
from time import monotonic, sleep

import pytest
from fleet import POLICY, PROMOTION, Fleet
from run_process import PATIENCE, PLAIN, run_processes

from fanout.cli.process_exit import ExitCode

SECRET = "s3cret-t0ken-of-edge"
UNVERIFIED = POLICY.replace(", verification: [{name: e2e, report: {}}]", "").replace(
    ", soak: 1h", ""
)
TIMED = PROMOTION.rstrip() + '\n  schedule: "0 0 1 1 *"\n  timeZone: Europe/Oslo\n'
EDGE = """\
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {{name: edge}}
spec: {{url: {url}, secretRef: {{name: edge-token}}}}
"""
DRAFTS = ["sites/ams/monitoring", "sites/ber/monitoring"]
SWEEPS = "refs/heads/fanout/default/_sweeps"


@pytest.fixture
def start():
    with run_processes(FANOUT_SECRET_EDGE_TOKEN=SECRET) as begin:
        yield begin


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet.build(tmp_path, {"ams": ("dev", "edge"), "ber": ("prod", "edge")})
    fleet.write("policy.yaml", UNVERIFIED)
    fleet.write("repository-edge.yaml", EDGE.format(url=fleet.repos["edge"].path))
    fleet.now = datetime.now(UTC)
    return fleet


def at_rest(fleet):
    """Every repository is whole, and nobody has anything to do."""
    for repo in (*fleet.repos.values(), fleet.records()):
        repo.fsck()
    assert fleet.repos["edge"].drafts() == []
    fleet.now = datetime.now(UTC)
    plan = fleet.run("plan")
    assert (plan.code, plan.err) == (ExitCode.OK, "")


def test_quiet_logs_problems_only(fleet, start):
    running = start(fleet, "-q")
    running.until(lambda: fleet.repos["edge"].tags() == ["sites/ams/v1", "sites/ber/v1"])
    fleet.write(
        "policy.yaml", UNVERIFIED.replace("stages:\n  - {name: dev", "stages:\n  - {nam: dev")
    )
    running.until(running.log)
    assert {it["level"] for it in running.log()} == {"warning"}
    assert running.end() == ExitCode.OK


def test_without_a_schedule_all_stages_are_published_as_their_gates_open(fleet, start, monkeypatch):
    monkeypatch.setenv("FANOUT_SECRET_EDGE_TOKEN", SECRET)
    running = start(fleet, "--interval", "1h", program=PLAIN)
    edge = fleet.repos["edge"]
    running.until(lambda: edge.tags() == ["sites/ams/v1", "sites/ber/v1"])
    running.until(lambda: running.passes()[-1].keys().isdisjoint({"published", "recorded"}))
    assert running.end() == ExitCode.OK
    at_rest(fleet)
    log = running.log()
    assert [log[0]["event"], log[-1]["event"]] == ["Started", "Stopped"]
    assert sum(line.get("published", 0) for line in log) == 2
    did = [(it["event"], it["stage"], it["path"]) for it in log if "variant" in it]
    assert did == [
        ("Draft written", "dev", "sites/ams"),
        ("Draft written", "prod", "sites/ber"),
        ("Published", "dev", "sites/ams"),
        ("Published", "prod", "sites/ber"),
    ]
    assert {(it["policy"], it["revision"]) for it in log if "variant" in it} == {
        ("default/monitoring", "v1")
    }
    assert {line["level"] for line in log} <= {"info", "debug"}
    assert SECRET not in running.path.read_text()
    assert SWEEPS not in fleet.records().refs()


def test_a_new_upstream_revision_is_found_by_the_interval_and_a_new_site_by_its_file(fleet, start):
    running = start(fleet, "--interval", "1s")
    edge = fleet.repos["edge"]
    running.until(lambda: len(edge.tags()) == 2)
    running.until(lambda: "interval" in running.triggers())  # nothing is left to follow
    fleet.release("v2")
    running.until(lambda: "sites/ber/v2" in edge.tags())
    fleet.site("cph", "dev", "edge")
    running.until(lambda: "sites/cph/v1" in edge.tags())
    assert running.end(signal.SIGINT) == ExitCode.OK
    assert {"start", "interval", "declaration changed", "follow-up"} <= running.triggers()


def test_with_a_schedule_only_drafts_are_written_between_sweeps(fleet, start):
    fleet.write("promotion.yaml", TIMED)
    running = start(fleet, "--interval", "1s")
    running.until(lambda: len(running.passes()) >= 4)
    assert running.end() == ExitCode.OK
    assert fleet.repos["edge"].drafts() == DRAFTS
    assert fleet.repos["edge"].tags() == []
    assert {line["sweep"] for line in running.passes()} == {False}


def test_a_sweep_missed_while_nobody_ran_is_made_up_once(fleet, start):
    fleet.write("promotion.yaml", TIMED)
    first = start(fleet)
    first.until(fleet.repos["edge"].drafts)
    first.until(lambda: len(first.passes()) >= 2)
    assert first.end() == ExitCode.OK
    year = datetime.now(UTC).year
    backdate(fleet.records(), f"{year - 3}-06-01T00:00:00Z")

    second = start(fleet, "--interval", "1s")
    second.until(lambda: len(second.passes()) >= 4)
    assert second.end() == ExitCode.OK
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]
    assert [line["sweep"] for line in second.passes()].count(True) == 1
    assert second.passes()[0]["sweep"] is True
    swept = json.loads(fleet.records().git("show", f"{SWEEPS}:sweeps.json"))
    instant = datetime(year, 1, 1, tzinfo=UTC) - timedelta(hours=1)  # midnight in Oslo
    assert swept["default/everything"]["at"] == f"{instant:%Y-%m-%dT%H:%M:%SZ}"

    third = start(fleet)
    third.until(third.passes)
    assert third.end() == ExitCode.OK
    assert fleet.repos["edge"].tags() == ["sites/ams/v1"]


def backdate(repo, instant):
    """As if the last sweep had been long ago."""
    swept = json.loads(repo.git("show", f"{SWEEPS}:sweeps.json"))
    for line in swept.values():
        line["at"] = instant
    repo.commit("fanout/default/_sweeps", {"sweeps.json": json.dumps(swept)})


def test_records_that_cannot_be_reached_do_not_end_it(fleet, start):
    place = fleet.root / "elsewhere.git"
    place.mkdir()
    running = start(fleet, "--records", f"file://{place}", "--interval", "1s")
    running.until(lambda: any(line["event"] == "Pass failed" for line in running.log()))
    subprocess.run(["git", "init", "-q", "--bare", str(place)], check=True)
    running.until(lambda: len(fleet.repos["edge"].tags()) == 2)
    assert running.end() == ExitCode.OK
    assert [line["event"] for line in running.log()].count("Passes succeed again") == 1


AGAIN = "Problem of a policy is gone"


def test_a_repository_that_is_gone_holds_its_own_variants_and_is_reported_once(fleet, start):
    fleet.repository("core")
    fleet.site("cph", "dev", "core")
    missing_path = fleet.repos["core"].path
    missing_path.rename(fleet.root / "away")
    running = start(fleet, "--interval", "1s")
    running.until(lambda: "sites/ams/v1" in fleet.repos["edge"].tags())
    running.until(lambda: len(running.passes()) >= 6)
    warnings = [line for line in running.log() if line["level"] == "warning"]
    assert len(warnings) == 1
    assert str(missing_path) in warnings[0]["problem"]
    (fleet.root / "away").rename(missing_path)
    running.until(lambda: fleet.repos["core"].tags() == ["sites/cph/v1"])
    assert running.end() == ExitCode.OK
    events = [line for line in running.log() if line["event"] == AGAIN]
    assert [line["problem"] for line in events] == [warnings[0]["problem"]]


@pytest.fixture
def gate(fleet):
    """Holds every push to edge until it is opened; answers whether one is held, and the opener."""
    pushing, opened = fleet.root / "pushing", fleet.root / "opened"
    hook = fleet.repos["edge"].path / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    # It ends with the directory of the test, too.
    waits = f"while [ -e {pushing} -a ! -e {opened} ]; do sleep 0.1; done"
    hook.write_text(f"#!/bin/sh\ntouch {pushing}\n{waits}\n")
    hook.chmod(0o755)
    yield pushing.exists, opened.touch
    opened.touch()


def test_a_stop_in_the_middle_of_a_push_waits_for_it(fleet, start, gate):
    pushing, let_go = gate
    running = start(fleet)
    running.until(pushing)
    running.process.send_signal(signal.SIGTERM)
    let_go()
    assert running.process.wait(PATIENCE) == ExitCode.OK
    assert fleet.repos["edge"].drafts() == DRAFTS
    assert [line.get("drafts_written") for line in running.passes()] == [2]


def test_a_second_signal_does_not_wait(fleet, start, gate):
    pushing, _ = gate
    running = start(fleet)
    running.until(pushing)
    deadline = monotonic() + PATIENCE
    while running.process.poll() is None and monotonic() < deadline:
        running.process.send_signal(signal.SIGTERM)  # two at once may be delivered as one
        sleep(0.05)
    assert running.process.returncode == -signal.SIGTERM
    assert fleet.repos["edge"].drafts() == []


REFUSED = [
    ("an interval of nothing", ["--interval", "0s"], "--interval: the interval is zero"),
    ("an interval in days", ["--interval", "1d"], "--interval: 1d is in days"),
    ("no interval at all", ["--interval", "soon"], "--interval: 'soon' is not a duration"),
    ("a pretended time", [], "--now: --now is not supported by a process that runs continuously"),
]


@pytest.mark.parametrize(
    ("sentence", "options", "problem"), REFUSED, ids=[row[0] for row in REFUSED]
)
def test_run_refuses_unusable_options(tmp_path, sentence, options, problem):
    result = Fleet(tmp_path).run("run", *options)
    assert result.code == ExitCode.ERROR
    assert problem in result.err


@pytest.mark.parametrize("lost", ["state-loop", "state-loop/mirrors"])
def test_a_state_directory_that_goes_away_is_made_again(fleet, start, lost):
    records = ("--records", str(fleet.root / "records.git"))
    running = start(fleet, "--interval", "2s", *records, name="-loop")
    edge = fleet.repos["edge"]
    running.until(lambda: edge.tags() == ["sites/ams/v1", "sites/ber/v1"])
    (fleet.root / lost).rename(fleet.root / "lost")  # at once, while the process writes to it
    fleet.release("v2")
    running.until(lambda: "sites/ber/v2" in edge.tags())
    assert (fleet.root / "state-loop" / "mirrors").stat().st_mode & 0o777 == 0o700
    assert running.end() == ExitCode.OK
