"""A whole number and a fraction are compared as numbers."""

import pytest

from fanout.sandbox.cel_worker import CelEngine
from fanout.sandbox.worker_protocol import RefusedError

ROWS = [
    ("r < 0.05", 0.0, True),  # the fraction 0.0 of a file is the whole number 0
    ("0.05 > r", 0, True),
    ("r <= 1", 0.5, True),
    ("r >= 1", 0.5, False),
    ("r == 0.5", 1, False),
    ("r != 0.5", 1, True),
    ("1.0 == r", 1, True),
    ("r > 9007199254740992.0", 2**53 + 1, True),
    ("uint(2) < r", 2.5, True),
    ("1 < r + 0.5", 0.75, True),  # a sum of fractions is one, too
    ("1 == r + 0.5", 0.75, False),
    ("[0, 1].all(i, i < r)", 1.5, True),
]


@pytest.mark.parametrize(("text", "value", "expected"), ROWS, ids=[row[0] for row in ROWS])
def test_compared(text, value, expected):
    assert CelEngine().evaluate(text, {"r": value}) is expected


@pytest.mark.parametrize("text", ["r < 0.5", "r >= 0.5", "r + 0.5 > 0.0"])
def test_texts_are_not_converted_for_comparison_or_addition(text):
    with pytest.raises(RefusedError):
        CelEngine().evaluate(text, {"r": "1" if "+" not in text else 1})
