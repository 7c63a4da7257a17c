"""A plan that is saved where it cannot be, or read from what is none, is told in a sentence."""

from operator import itemgetter
from pathlib import Path

import pytest
from fleet import Fleet

OUT = [
    ("a directory that is not there", "nowhere/plan.json", "there is no directory "),
    ("below a file", "policies/policy.yaml/plan.json", "there is no directory "),
    ("a name that is too long", "x" * 300, "File name too long"),
]


@pytest.mark.parametrize(("_", "name", "words"), OUT, ids=map(itemgetter(0), OUT))
def test_a_plan_that_cannot_be_saved_is_reported(fleet: Fleet, _: str, name: str, words: str):
    result = fleet.plan("--out", str(fleet.root / name))
    assert (result.code, result.out) == (1, "")
    assert "the plan cannot be saved as" in result.err
    assert words in result.err
    assert "bug" not in result.err


SAVED = [
    ("a file that is not there", None, "there is no file "),
    ("no JSON", b"actions: []", " is not a plan; run `fanout plan --out FILE`"),
    ("no text", b"\xff\xfe\x00", " is not a plan; "),
    ("JSON of something else", b"[1]", " is not a plan; "),
    ("an object of something else", b'{"kind": "List"}', " is not a plan; "),
]


@pytest.mark.parametrize(("_", "content", "words"), SAVED, ids=map(itemgetter(0), SAVED))
def test_a_malformed_plan_is_refused(
    fleet: Fleet, tmp_path: Path, _: str, content: bytes | None, words: str
):
    saved = tmp_path / "plan.json"
    if content is not None:
        saved.write_bytes(content)
    before = fleet.refs()
    result = fleet.sweep("--plan", str(saved))
    assert result.code == (1 if content is None else 2)
    assert (result.out, fleet.refs()) == ("", before)
    assert words in result.err
    assert "Errno" not in result.err
