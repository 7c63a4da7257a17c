"""The pages about scenarios: what is shown can be played, and prints what stands there."""

import re
import shutil
from pathlib import Path

import pytest

from fanout.cli.main import run_arguments

ROOT = Path(__file__).parent.parent
GUIDE = (ROOT / "docs/guides/testing-policies-in-ci.md").read_text(encoding="utf-8")
CONCEPT = (ROOT / "docs/concepts/scenarios.md").read_text(encoding="utf-8")
TESTS = ROOT / "policies/clusters-tests.yaml"


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.DOTALL)


@pytest.fixture
def policies(tmp_path, monkeypatch):
    """The example with its tests, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policies").mkdir()
    for name in ("clusters.yaml", "clusters-tests.yaml"):
        shutil.copy(ROOT / "policies" / name, tmp_path / "policies")
    return tmp_path / "policies"


def test_the_guide_s_commands_print_what_is_shown(policies, capsys):
    good, bad = blocks(GUIDE, "console")
    assert run_arguments(["test", "policies"]) == 0
    assert f"$ fanout test policies\n{capsys.readouterr().out}" == good
    edit, _, shown = bad.partition("\n$ fanout test policies\n")
    old, new = re.fullmatch(r"\$ sed -i 's/(.+)/(.+)/' policies/clusters.yaml", edit).groups()
    text = (policies / "clusters.yaml").read_text(encoding="utf-8")
    assert text.count(old) == 1
    (policies / "clusters.yaml").write_text(text.replace(old, new), encoding="utf-8")
    assert run_arguments(["validate", "-f", "policies"]) == 0
    capsys.readouterr()
    assert run_arguments(["test", "policies"]) == 3
    assert capsys.readouterr().out == shown


def test_the_guide_shows_what_is_tested():
    [scenario] = blocks(GUIDE, "yaml")
    assert scenario in TESTS.read_text(encoding="utf-8")


def test_the_scenario_of_the_concept_page_comes_out(tmp_path):
    [scenario] = blocks(CONCEPT, "yaml")
    (tmp_path / "shown.yaml").write_text(scenario, encoding="utf-8")
    assert run_arguments(["test", str(tmp_path)]) == 0
