"""What was learnt of expressions outlives the process, and is believed only as it was written."""

import json
import os
from pathlib import Path

import pytest

from fanout.sandbox.evaluator import ProcessSandbox
from fanout.sandbox.worker_protocol import WorkerLimits
from fanout.telemetry.metrics import Counters

SIMPLE = "target.name + '-x'"
ROWS = [{"target": {"name": "a"}}, {"target": {"name": "b"}}]
ANSWERS = [["a-x", "b-x"]]


def asked(kept: Path, *texts: str) -> tuple[list[list[object]], int]:
    """The answers of a new sandbox, and how many children it had to start."""
    with ProcessSandbox(WorkerLimits(), Counters(), kept) as sandbox:
        answers = sandbox.evaluate(texts or [SIMPLE], ROWS)
        return answers, len(sandbox._expressions.workers._workers)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a sandbox leaves in a directory that was not there."""
    path = tmp_path_factory.mktemp("earlier") / "state" / "expressions.json"
    assert asked(path) == (ANSWERS, 1)
    return path.read_bytes()


@pytest.fixture
def kept(tmp_path: Path, written: bytes) -> Path:
    """A file that an earlier sandbox has left."""
    path = tmp_path / "state" / "expressions.json"
    path.parent.mkdir()
    path.write_bytes(written)
    return path


def test_a_cached_expression_needs_no_worker(kept: Path):
    assert asked(kept) == (ANSWERS, 0)


def test_a_new_one_is_learnt_beside_those_that_are_known(kept: Path):
    assert asked(kept, SIMPLE, "target.name")[1] == 1
    assert asked(kept, SIMPLE, "target.name") == ([*ANSWERS, ["a", "b"]], 0)


def test_a_complex_expression_asks_a_worker_each_time(kept: Path):
    text = "target.name.matches('a')"
    assert asked(kept, text) == ([[True, False]], 1)
    assert asked(kept, text) == ([[True, False]], 1)


def test_a_malformed_expression_is_not_cached(kept: Path):
    before = kept.read_bytes()
    (broken,), _ = asked(kept, "target.")
    assert broken[0].reason == "ExpressionError"
    assert kept.read_bytes() == before


def lie(content: bytes) -> bytes:
    """The outline says something else than the expression."""
    return content.replace(b"-x", b"-y")


LIES = [
    ("another outline", lie),
    ("cut off", lambda content: content[:-10]),
    ("empty", lambda content: b""),
    ("no text", lambda content: os.urandom(100)),
    ("no outlines", lambda content: b"0\n[]"),
    ("of another version", lambda content: b"0" * 64 + content[64:]),
    ("absurdly deep", lambda content: content[:65] + b"[" * 100_000),
]


@pytest.mark.parametrize("made", [pytest.param(made, id=name) for name, made in LIES])
def test_a_file_that_is_not_as_it_was_written_is_not_believed(kept: Path, made):
    kept.write_bytes(made(kept.read_bytes()))
    assert asked(kept) == (ANSWERS, 1)
    assert asked(kept) == (ANSWERS, 0), "it was written anew"


def test_a_directory_in_its_place_is_no_fault(tmp_path: Path):
    assert asked(tmp_path) == (ANSWERS, 1)
    assert asked(tmp_path) == (ANSWERS, 1)


def test_the_file_is_plain_json_after_its_digest(kept: Path):
    digest, _, body = kept.read_text().partition("\n")
    assert len(digest) == 64
    assert set(json.loads(body)) == {SIMPLE}
