"""What draft commits write down about disputes, and which of them commits on a draft decide."""

import pytest

from fanout.api.gate_vocabulary import ConflictWinner
from fanout.plan.edits.merge_disputes import (
    MergeDispute,
    format_disputes,
    parse_disputes,
    settled_keys,
)

OPEN = MergeDispute(
    "0123456789abcdef", ConflictWinner.UPSTREAM, is_decided=False, file="a b/straße@1.yaml"
)
DECIDED = MergeDispute("fedcba9876543210", ConflictWinner.LOCAL, is_decided=True)


def test_written_disputes_are_read_back():
    assert parse_disputes(format_disputes([OPEN, DECIDED])) == (OPEN, DECIDED)
    assert format_disputes([OPEN]).isascii()
    assert len(format_disputes([OPEN]).split()) == 1


def test_the_file_need_not_be_written_down():
    assert parse_disputes("0123456789abcdef=upstream?") == (
        MergeDispute(OPEN.key, ConflictWinner.UPSTREAM),
    )


WROTE = {"web.yaml": "1", "other.yaml": "1"}
ROWS = [
    ("changed", "web.yaml", {**WROTE, "web.yaml": "2"}, True),
    ("deleted", "web.yaml", {"other.yaml": "1"}, True),
    ("left alone", "web.yaml", {**WROTE, "other.yaml": "2"}, False),
    ("moved since", "old.yaml", {**WROTE, "other.yaml": "2"}, True),
    ("brought back", "gone.yaml", {**WROTE, "gone.yaml": "1"}, True),
    ("not known", "", {**WROTE, "other.yaml": "2"}, True),
]


@pytest.mark.parametrize(("_", "file", "made", "settled"), ROWS, ids=[row[0] for row in ROWS])
def test_a_commit_decides_about_a_file_that_it(_, file, made, settled):
    dispute = MergeDispute("0123456789abcdef", ConflictWinner.UPSTREAM, file=file)
    assert settled_keys([dispute], WROTE, made) == (frozenset([dispute.key]) if settled else set())
