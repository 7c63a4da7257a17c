"""Tables of a fleet in which policies of several namespaces have one name."""

import re
import shlex
from pathlib import Path

import pytest
from fleet import Fleet

ANN = ("--by", "Ann <ann@example.com>")
LAB = ("monitoring", "-n", "lab", "--reason", "because", *ANN)


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    """Return a fleet whose objects are in a second namespace, too, with paths of their own."""
    fleet = Fleet.build(tmp_path)
    directory = fleet.root / "policies"
    for path in sorted(directory.glob("*.yaml")):
        text = path.read_text().replace("metadata: {name:", "metadata: {namespace: lab, name:")
        (directory / f"lab-{path.name}").write_text(text.replace("sites/", "lab/"))
    return fleet


@pytest.mark.parametrize("resource_type", ["policies", "variants", "stages", "targets"])
def test_rows_have_their_namespace_where_there_are_several(fleet: Fleet, resource_type: str):
    both = fleet.run("get", resource_type).out.splitlines()
    assert both[0].startswith("NAMESPACE ")
    assert {line.split()[0] for line in both[1:]} == {"default", "lab"}
    one = fleet.run("get", resource_type, "-n", "lab").out.splitlines()
    assert "NAMESPACE" not in one[0]
    assert len(both) - 1 == 2 * (len(one) - 1)


def test_the_status_of_the_fleet_names_the_namespace(fleet: Fleet):
    both = fleet.run("status").out
    assert "default/monitoring" in both
    assert "lab/monitoring" in both
    assert "lab/monitoring" not in fleet.run("status", "-n", "lab").out


def printed(view: dict) -> list[str]:
    """Return all commands of an explanation: of blockers, of notes and in their sentences."""
    parts = [*view["status"]["blockers"], *view["status"]["notes"]]
    lines = [line for it in parts for line in it.get("commands", [it.get("command", "")])]
    commands = [line for it in parts for line in re.findall("`(fanout [^`]+)`", it["message"])]
    return [line for line in (*lines, *commands) if line]


def test_commands_name_the_namespace_where_several_have_the_policy(fleet: Fleet):
    fleet.settle()
    path, edge = "lab/ams/deployment.yaml", fleet.repos["edge"]
    text = edge.file("main", path)
    edge.commit("main", {path: text.replace("replicas: 1", "replicas: 7")})
    fleet.release("v2")
    swept = fleet.later(minutes=1).sweep()
    printed_commands = re.findall("`(fanout [^`]+)`", swept.err)
    assert {shlex.split(it)[1] for it in printed_commands} == {"diff", "resolve"}
    edge.commit("main", {path: text})
    fleet.later(minutes=1).settle()
    assert fleet.run("rollback", *LAB, "--stage", "dev", "--yes").code == 0
    assert fleet.run("skip", *LAB, "--stage", "dev", "--variant", "lab/ams").code in (0, 4)
    fleet.later(minutes=1).sweep()
    views = fleet.run("explain", "-o", "json").items
    commands = [(it["metadata"]["namespace"], line) for it in views for line in printed(it)]
    assert {"report", "withdraw"} <= {shlex.split(line)[1] for _, line in commands}
    for namespace, line in (*commands, *(("lab", it) for it in printed_commands)):
        assert line.endswith(f" -n {namespace}"), line
        verb, *rest = shlex.split(line)[1:]
        done = fleet.run(verb, *rest, *(() if verb == "diff" else ANN))
        assert done.code in (0, 1, 4), f"{line}: {done.err}"
        assert "several namespaces" not in done.err
