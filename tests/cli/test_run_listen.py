"""`fanout run --listen` as a real process: what it serves, and what it refuses or warns of."""

import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime

import pytest
from fleet import POLICY, Fleet
from preloaded import FANOUT, run_preloaded
from run_process import PATIENCE, run_processes

from fanout.cli.process_exit import ExitCode
from fanout.serve.metric_table import METRICS

UNVERIFIED = POLICY.replace(", verification: [{name: e2e, report: {}}]", "").replace(
    ", soak: 1h", ""
)
WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from fanout.cli.main import run; run()"
CONFIGURATION = """\
apiVersion: fanout.dev/v1alpha1
kind: FanoutConfiguration
forges:
- host: git.example.com
  type: gitea
  secretRef: {name: token}
  webhookSecretRef: {name: hooks}
"""
TARGETS = {"canary-ams": ("dev", "edge"), "canary-ber": ("prod", "edge")}


@pytest.fixture
def fleet(tmp_path):
    fleet = Fleet.build(tmp_path, TARGETS)
    fleet.write("policy.yaml", UNVERIFIED)
    fleet.now = datetime.now(UTC)
    return fleet


@pytest.fixture
def start():
    with run_processes() as begin:
        yield begin


def address_of(running):
    def find():
        return [it for it in running.log() if it["event"] == "Serving metrics and health"]

    running.until(find)
    return find()[0]["address"]


def get(address, path):
    """Status and text of an answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"http://{address}/{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def samples(page):
    """Values by series, without the comments."""
    lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}


def test_metrics_tell_what_the_fleet_is_like_and_what_passes_did(fleet, start):
    running = start(fleet, "--interval", "1h", "--listen", "127.0.0.1:0")
    address = address_of(running)
    ready = 'fanout_variants{namespace="default",policy="monitoring",stage="%s",state="Ready"}'
    running.until(lambda: samples(get(address, "metrics")[1]).get(ready % "prod") == 1)
    assert get(address, "healthz") == (200, "ok\n")
    assert get(address, "readyz") == (200, "ok\n")
    _, page = get(address, "metrics")
    values = samples(page)
    assert values[ready % "dev"] == 1
    assert values['fanout_policies{namespace="default",policy="monitoring",state="Ready"}'] == 1
    stage = 'fanout_stages{namespace="default",policy="monitoring",stage="prod",state="Passed"}'
    assert values[stage] == 1
    assert values['fanout_actions_total{kind="Publish",result="done"}'] == 2
    assert values['fanout_reconcile_total{result="success"}'] >= 2
    assert values['fanout_reconcile_total{result="error"}'] == 0
    assert values["fanout_reconcile_duration_seconds_count"] >= 2
    assert values['fanout_git_operations_total{operation="push",result="success"}'] >= 2
    assert values['fanout_git_operation_duration_seconds_count{operation="push"}'] >= 2
    assert values['fanout_reconcile_phase_seconds_total{phase="writing"}'] > 0
    assert values["fanout_sweep_last_success_timestamp_seconds"] >= fleet.now.timestamp()
    assert values["process_resident_memory_bytes"] > 0
    assert values['workqueue_adds_total{name="fanout"}'] >= 1
    # One series for each variant or target would be as many as the fleet has clusters.
    assert "canary" not in page
    assert running.end() == ExitCode.OK


def test_every_metric_of_the_table_is_served_with_its_type_and_labels(fleet, start):
    running = start(fleet, "--listen", "127.0.0.1:0")
    address = address_of(running)
    running.until(lambda: get(address, "readyz")[0] == 200)
    _, page = get(address, "metrics")
    types = dict(re.findall(r"^# TYPE (\S+) (\S+)$", page, flags=re.MULTILINE))
    assert {it.name: it.type.value for it in METRICS} == {
        name: kind for name, kind in types.items() if not name.startswith("process_")
    }
    labels = {
        (series.partition("{")[0], tuple(sorted(re.findall(r'(\w+)="', series))))
        for series in samples(page)
    }
    for name, label_names in labels:
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        for metric in METRICS:
            if metric.name in (name, base):
                assert set(label_names) - {"le"} == set(metric.labels), name


def test_a_pass_that_cannot_read_the_records_is_not_ready_and_is_counted(fleet, start):
    running = start(
        fleet,
        "--interval",
        "1s",
        "--listen",
        "127.0.0.1:0",
        "--records",
        str(fleet.root / "none" / "x"),
    )
    (fleet.root / "none").write_text("a file, where a directory would be made")
    address = address_of(running)
    running.until(
        lambda: samples(get(address, "metrics")[1])['fanout_reconcile_total{result="error"}'] >= 1
    )
    status, text = get(address, "readyz")
    assert (status, text) == (503, "the last pass failed; see the log\n")
    assert get(address, "healthz")[0] == 200  # a restart would not help
    reasons = [it for it in samples(get(address, "metrics")[1]) if "reconcile_errors" in it]
    assert len(reasons) == 1


def test_without_listen_nothing_else_is_served_beside_hooks(fleet, start):
    configure(fleet)
    running = start(fleet, "--hooks", "127.0.0.1:0", "--config", str(fleet.root / "config.yaml"))
    running.until(lambda: [it for it in running.log() if it["event"] == "Receiving webhooks"])
    address = next(it for it in running.log() if it["event"] == "Receiving webhooks")["address"]
    assert get(address, "metrics")[0] == 404
    assert get(address, "hooks/git.example.com")[0] == 405


def test_hooks_and_metrics_share_one_address(fleet, start):
    configure(fleet)
    options = ("--hooks", "127.0.0.1:0", "--listen", "127.0.0.1:0")
    running = start(fleet, *options, "--config", str(fleet.root / "config.yaml"))
    address = address_of(running)
    assert get(address, "healthz")[0] == 200
    assert get(address, "hooks/git.example.com")[0] == 405


def configure(fleet):
    (fleet.root / "config.yaml").write_text(CONFIGURATION)
    secrets = fleet.root / "state" / "secrets"
    secrets.mkdir(parents=True, exist_ok=True)
    (secrets / "hooks").write_text("canary-of-the-webhook")
    (secrets / "hooks").chmod(0o600)


@pytest.mark.parametrize(
    ("address", "warned"), [("0.0.0.0:0", True), ("127.0.0.1:0", False), ("[::1]:0", False)]
)
def test_an_address_that_others_reach_is_warned_of(fleet, start, address, warned):
    running = start(fleet, "--listen", address)
    address_of(running)
    running.until(lambda: [it for it in running.log() if it["event"] == "Started"])
    warnings = [it for it in running.log() if "everybody" in it["event"]]
    assert [it["level"] for it in warnings] == ["warning"] * warned


def refused(fleet, address):
    """Code and output of a command that must end by itself."""
    line = [*FANOUT, "run", "-f", "policies", "--listen", address]
    return run_preloaded(line, directory=fleet.root, environment=os.environ)


def refused_without(fleet, library):
    """Code and errors of a command, where a library is not installed."""
    done = subprocess.run(
        [
            *(sys.executable, "-c", WITHOUT, library),
            *("run", "-f", "policies", "--listen", "127.0.0.1:0"),
        ],
        cwd=fleet.root,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return done.returncode, done.stderr


def test_a_port_in_use_is_refused(fleet):
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        code, errors = refused(fleet, address)
    assert code == ExitCode.ERROR
    assert f"--listen: cannot listen on {address}: Address already in use" in errors


def test_a_malformed_address_is_refused(fleet):
    code, errors = refused(fleet, "9090")
    assert code == ExitCode.ERROR
    assert "--listen: '9090' is not an address" in errors


def test_the_extra_is_not_installed(fleet):
    code, errors = refused_without(fleet, "prometheus_client")
    assert code == ExitCode.ERROR
    assert "--listen: the library prometheus_client is not installed" in errors
    assert "pip install 'fanout-gitops[serve]'" in errors
