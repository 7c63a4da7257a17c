"""The pages about operations: the transcript is run, and the files to copy are checked."""

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import click
import pytest
import yaml
from pages import play, play_in_shell

from fanout.calendar.cron_schedule import parse_schedule
from fanout.cli.main import cli

DOCS = Path(__file__).parent.parent / "docs"
OPERATIONS = DOCS / "operations"
UNITS = sorted(OPERATIONS.glob("*.service"))
TIMER = OPERATIONS / "fanout-sweep.timer"
CRON = (OPERATIONS / "fanout.cron").read_text(encoding="utf-8")
OBJECTS = list(yaml.safe_load_all((OPERATIONS / "kubernetes.yaml").read_text(encoding="utf-8")))
PROGRAM = "/opt/fanout/bin/fanout"


def read_unit(path):
    unit = ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read(path, encoding="utf-8")
    return unit


def refuse_unknown_options(arguments):
    """Parse the arguments as the program does, without running the verb."""
    # A command remembers its option for help, so the context is the one of the program.
    context = click.Context(cli, info_name="fanout", **cli.context_settings)
    command = cli.get_command(context, arguments[0])
    assert command is not None, arguments[0]
    command.make_context(arguments[0], arguments[1:], parent=context)


def test_records_are_backed_up_lost_and_restored(tmp_path, monkeypatch):
    tutorial = (DOCS / "tutorial" / "getting-started.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    play(tutorial, monkeypatch)  # test_getting_started.py runs it in a shell
    page = (OPERATIONS / "backup.md").read_text(encoding="utf-8")
    assert play_in_shell(page, tmp_path) > 15


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_service_runs_a_command_that_exists(path):
    program, *arguments = shlex.split(read_unit(path)["Service"]["ExecStart"])
    assert program == PROGRAM
    refuse_unknown_options(arguments)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_accepts_the_units(tmp_path):
    for path in (*UNITS, TIMER):
        text = path.read_text(encoding="utf-8").replace(PROGRAM, str(shutil.which("true")))
        (tmp_path / path.name).write_text(text, encoding="utf-8")
    verified = subprocess.run(
        ["systemd-analyze", "verify", *sorted(map(str, tmp_path.iterdir()))],
        text=True,
        check=False,
        capture_output=True,
    )
    assert (verified.returncode, verified.stderr) == (0, "")


def test_the_timer_starts_a_service_that_is_there():
    assert TIMER.with_suffix(".service") in UNITS
    assert read_unit(TIMER)["Timer"]["OnCalendar"] == "*:0/10"


def test_the_line_of_cron_sweeps_every_ten_minutes():
    pattern = r"^((?:\S+ ){5})(\w+) cd \S+ && .* && (\S+) (.+)$"
    line = re.findall(pattern, CRON, flags=re.MULTILINE)
    ((schedule, user, program, arguments),) = line
    parse_schedule(schedule.strip())
    assert (schedule, user, program) == ("*/10 * * * * ", "fanout", PROGRAM)
    refuse_unknown_options(arguments.split())


def test_the_line_of_cron_loads_the_secrets(tmp_path):
    secrets, program = tmp_path / "secrets.env", tmp_path / "fanout"
    secrets.write_text("FANOUT_SECRET_EDGE_TOKEN='ann:pa$$ #\"word'\n", encoding="utf-8")
    program.write_text('#!/bin/sh\nprintf %s "$FANOUT_SECRET_EDGE_TOKEN"\n', encoding="utf-8")
    program.chmod(0o755)
    command = CRON.splitlines()[-1].partition(" fanout cd ")[2]
    command = command.replace(PROGRAM, str(program)).replace("/var/lib/fanout", str(tmp_path))
    command = f"cd {command.replace('/etc/fanout/secrets.env', str(secrets))}"
    ran = subprocess.run(["sh", "-c", command], text=True, check=False, capture_output=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, 'ann:pa$$ #"word', "")


def test_every_example_has_the_configuration_and_reads_the_secrets():
    for path in UNITS:
        service = read_unit(path)["Service"]
        assert "--config /etc/fanout/fanout.yaml" in service["ExecStart"]
        assert service["EnvironmentFile"] == "-/etc/fanout/secrets.env"
    assert "--config /etc/fanout/fanout.yaml" in CRON
    for item in OBJECTS:
        spec = item["spec"].get("jobTemplate", item)["spec"]["template"]["spec"]
        (container,) = spec["containers"]
        assert "/configuration/fanout.yaml" in container["args"]
        assert container["envFrom"] == [{"secretRef": {"name": "fanout-secrets"}}]


@pytest.mark.parametrize("item", OBJECTS, ids=lambda item: item["kind"])
def test_a_container_of_the_example_runs_the_image_as_it_is_built(item):
    spec = item["spec"].get("jobTemplate", item)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    refuse_unknown_options(container["args"])
    containerfile = (DOCS.parent / "Containerfile").read_text(encoding="utf-8")
    user, home = spec["securityContext"]["runAsUser"], "/var/lib/fanout"
    assert f"USER {user}:{user}\n" in containerfile
    assert f"--home-dir {home}" in containerfile
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    assert f"{home}/.ssh" in {mount["mountPath"] for mount in container["volumeMounts"]}


def test_the_probes_of_the_example_are_at_the_address_of_the_program():
    (deployment,) = (item for item in OBJECTS if item["kind"] == "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    address = container["args"][container["args"].index("--listen") + 1]
    assert address.endswith(f":{container['ports'][0]['containerPort']}")
    paths = {container[f"{name}Probe"]["httpGet"]["path"] for name in ("liveness", "readiness")}
    assert paths == {"/healthz", "/readyz"}
