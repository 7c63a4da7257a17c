"""`fanout docs` and `fanout version`: what is installed, and from which commit."""

import json
import re
from pathlib import Path

import pytest

from fanout.cli.main import run_arguments

ROOT = Path(__file__).parent.parent.parent


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    code = run_arguments(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_list_names_every_page_with_its_title(capsys):
    code, out, _ = run(capsys, "docs")
    lines = [re.split(r"\s{2,}", line) for line in out.splitlines()]
    assert (code, lines[0]) == (0, ["TOPIC", "TITLE"])
    assert ["concepts/gates", "Gates"] in lines
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "policies").iterdir()]
    assert len(lines) == 1 + len(pages)
    assert [line for line in lines if len(line) != 2] == []


@pytest.mark.parametrize(
    ("topic", "file"),
    [
        ("concepts/gates", "docs/concepts/gates.md"),
        ("gates", "docs/concepts/gates.md"),
        ("gates.md", "docs/concepts/gates.md"),
        ("policies/clusters.yaml", "policies/clusters.yaml"),
    ],
)
def test_a_topic_is_printed_or_its_path(capsys, topic, file):
    assert run(capsys, "docs", topic) == (0, (ROOT / file).read_text(encoding="utf-8"), "")
    assert run(capsys, "docs", topic, "--path") == (0, f"{ROOT / file}\n", "")


def test_the_directory_is_printed(capsys):
    assert run(capsys, "docs", "--path") == (0, f"{ROOT}\n", "")


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("gaets", "there is no topic gaets; did you mean gates?\n"),
        (
            "nothing/such",
            "there is no topic nothing/such; run `fanout docs` for the list of topics\n",
        ),
        ("../README", "there is no topic ../README; did you mean README?\n"),
    ],
)
def test_an_unknown_topic_is_an_error(capsys, topic, message):
    code, out, err = run(capsys, "docs", topic)
    assert (code, out) == (1, "")
    assert err.startswith(message)


def test_the_version_has_a_commit(capsys):
    code, out, _ = run(capsys, "version", "-o", "json")
    assert code == 0
    assert re.fullmatch(r"[0-9a-f]{7,40}|unknown", json.loads(out)["commit"])
