"""Pages that are generated say what the program says; links lead somewhere."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from fanout.api.validators.object_validation import validate_object
from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_generated_pages_are_as_make_docs_writes_them():
    pages = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    stale = [
        page.name
        for page, text in pages.items()
        if not page.exists() or page.read_text(encoding="utf-8") != text
    ]
    assert stale == [], "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    ours = [target for target in targets if "://" not in target]
    assert [target for target in ours if not (page.parent / target).exists()] == []


def test_the_readme_s_policy_is_valid():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    assert blocks
    for block in blocks:
        assert validate_object(yaml.safe_load(block))[1] == ()


def test_the_expressions_and_templates_that_are_shown_compile():
    text = (ROOT / "docs" / "concepts" / "expressions.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    lines = [yaml.safe_load(line) for line in blocks[0].splitlines()]
    expressions = [value for line in lines for value in line.values()]
    templates = list(yaml.safe_load(blocks[1]).values())
    with ProcessSandbox(WorkerLimits(), Counters()) as sandbox:
        assert sandbox.compile(expressions, templates) == {}
    assert len(expressions) >= 5
