"""README: each claim has a test that shows it, and each transcript is in a guide that is run."""

import ast
import re
from pathlib import Path

import pytest
import yaml
from pages import parts

from fanout.cli.main import run_arguments

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = ROOT / "docs" / "guides" / "first-staged-rollout.md"
EXAMPLE = ROOT / "policies" / "clusters.yaml"

TESTS_BY_CLAIM = yaml.safe_load((ROOT / "tests" / "readme_claims.yaml").read_text(encoding="utf-8"))
CLAIMS = [(claim, test) for claim, tests in TESTS_BY_CLAIM.items() for test in tests]


@pytest.mark.parametrize(("claim", "test"), CLAIMS)
def test_a_claim_stands_in_readme_and_has_a_test(claim, test):
    assert claim in " ".join(README.split())
    file, _, name = test.partition("::")
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    names = {it.name for it in ast.walk(tree) if isinstance(it, ast.FunctionDef)}
    assert name in names if name else any(it.startswith("test_") for it in names)


def test_every_line_that_lists_what_fanout_does_has_a_claim():
    tables = README[README.index("| command | what it does |") :]
    rows = re.findall(r"^\| (?!command|\||---).+", tables, flags=re.MULTILINE)
    guarantees = README.partition("## Guarantees")[2].partition("\n## ")[0]
    items = [" ".join(it.split()) for it in re.split(r"^- ", guarantees, flags=re.MULTILINE)[1:]]
    assert (len(rows), len(items)) >= (12, 5)
    bare = [it for it in [*rows, *items] if not any(claim in it for claim in TESTS_BY_CLAIM)]
    assert bare == []


def test_the_policy_is_valid_beside_the_complete_example(tmp_path, capsys):
    [policy] = re.findall(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    objects = list(yaml.safe_load_all(EXAMPLE.read_text(encoding="utf-8")))
    others = [it for it in objects if it["kind"] != "UpstreamPolicy"]
    assert len(others) == len(objects) - 1
    text = yaml.safe_dump_all([yaml.safe_load(policy), *others])
    (tmp_path / "objects.yaml").write_text(text, encoding="utf-8")
    code = run_arguments(["validate", "-f", str(tmp_path)])
    assert (code, capsys.readouterr().out) == (0, f"{len(objects)} objects are valid\n")


def transcripts(text: str) -> list[tuple[str, str]]:
    """Return each command of a page with the output that is shown."""
    steps = parts(text)
    return [(line.removesuffix(" || true"), shown) for what, line, shown in steps if what == "run"]


def test_transcripts_of_the_readme_are_in_the_guide():
    shown = transcripts(README[README.index("## See what is stuck") :])
    assert len(shown) == 2
    assert set(shown) <= set(transcripts(GUIDE.read_text(encoding="utf-8")))
