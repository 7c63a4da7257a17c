"""What `fanout validate` prints about files with one mistake each, in the examples of policies/."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import run_line

TABLE = Path(__file__).parent / "broken_files.yaml"
EXAMPLES = Path(__file__).parent.parent.parent / "policies"
ROWS: list[dict[str, Any]] = yaml.safe_load(TABLE.read_text(encoding="utf-8"))


def break_example(row: dict[str, Any]) -> str:
    """Return the example of the row with its mistake."""
    text = (EXAMPLES / row["file"]).read_text(encoding="utf-8")
    for edit in row["edits"]:
        assert edit["from"] in text
        text = text.replace(edit["from"], edit["to"])
    return text


@pytest.mark.parametrize("row", ROWS, ids=[row["description"] for row in ROWS])
def test_a_broken_file(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("objects.yaml").write_text(break_example(row), encoding="utf-8")
    assert run_line("fanout validate -f objects.yaml") == (row["code"], row["output"])


def test_every_finding_names_file_line_and_field():
    """Errors of YAML syntax have no field, since the objects are not known."""
    for row in ROWS:
        for line in row["output"].splitlines():
            if line.startswith(("objects.yaml", "warning: objects.yaml")):
                file, number, *_ = line.removeprefix("warning: ").split(":")
                assert (file, number.isdigit()) == ("objects.yaml", True), line
