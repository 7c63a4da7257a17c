"""The pages about windows: what is shown is valid, and prints what stands there."""

import re
from pathlib import Path

import pytest
import yaml

from fanout.cli.main import run_arguments
from fanout.cluster.file_cluster import FileCluster

DOCS = Path(__file__).parent.parent / "docs"
GUIDE = (DOCS / "guides" / "change-freeze-over-christmas.md").read_text(encoding="utf-8")
CONCEPT = (DOCS / "concepts" / "windows.md").read_text(encoding="utf-8")
POLICY = """\
apiVersion: fanout.dev/v1alpha1
kind: UpstreamPolicy
metadata: {name: monitoring, namespace: platform}
spec:
  upstream: {repository: blueprints, package: monitoring, revision: {latest: true}}
  targets: [{repositories: [{name: edge}], template: {stage: dev}}]
  stages: [{name: dev, verification: [{name: e2e, report: {}}]}]
---
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: blueprints, namespace: platform}
spec: {url: https://git.example.com/blueprints.git}
---
apiVersion: fanout.dev/v1alpha1
kind: Repository
metadata: {name: edge, namespace: platform}
spec: {url: https://git.example.com/edge.git}
"""
CONSOLE = re.findall(r"```console\n(.*?)```", GUIDE, flags=re.DOTALL)
COMMANDS = [
    tuple(part.split("\n", 1))
    for block in CONSOLE
    for part in block.removeprefix("$ ").split("\n$ ")
]


def blocks(page: str) -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", page, flags=re.DOTALL)


@pytest.fixture
def policies(tmp_path, monkeypatch):
    """The guide's policy beside one that it binds, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(POLICY)
    (tmp_path / "policies" / "freeze.yaml").write_text(blocks(GUIDE)[0])
    return tmp_path / "policies"


@pytest.mark.parametrize(("command", "shown"), COMMANDS, ids=[row[0] for row in COMMANDS])
def test_the_guide_s_commands_print_what_is_shown(command, shown, policies, capsys):
    assert run_arguments(command.split()[1:]) == 0
    assert capsys.readouterr().out.rstrip("\n") == shown.rstrip("\n")


def test_the_windows_of_the_concept_page_are_valid(policies):
    spec = {"policies": ["*"], **yaml.safe_load(blocks(CONCEPT)[0])}
    data = {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "PromotionPolicy",
        "metadata": {"name": "shown", "namespace": "platform"},
        "spec": spec,
    }
    (policies / "shown.yaml").write_text(yaml.safe_dump(data))
    assert FileCluster([policies]).read().faults == ()
