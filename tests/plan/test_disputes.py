"""What draft commits write down about disputes, and which of them commits on a draft decide."""

import pytest

from fanout.package.merge.conflicts import Side
from fanout.plan.disputes import Dispute, read, settled_by, written

OPEN = Dispute("0123456789abcdef", Side.UPSTREAM, decided=False, file="a b/straße@1.yaml")
DECIDED = Dispute("fedcba9876543210", Side.LOCAL, decided=True)


def test_what_is_written_is_read_as_it_was():
    assert read(written([OPEN, DECIDED])) == (OPEN, DECIDED)
    assert written([OPEN]).isascii()
    assert len(written([OPEN]).split()) == 1


def test_the_file_need_not_be_written_down():
    assert read("0123456789abcdef=upstream?") == (Dispute(OPEN.key, Side.UPSTREAM),)


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
    dispute = Dispute("0123456789abcdef", Side.UPSTREAM, file=file)
    assert settled_by([dispute], WROTE, made) == (frozenset([dispute.key]) if settled else set())
