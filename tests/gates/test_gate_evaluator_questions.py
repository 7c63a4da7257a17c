"""Each question of other engines' users is answered by a test that there is, or by a sentence."""

import re
from functools import cache
from pathlib import Path

import pytest
from gates.questions import QUESTIONS

TEST = re.compile(r"^def test_(\w+)", re.MULTILINE)


@cache
def _known() -> frozenset[str]:
    """The names of all tests."""
    files = Path(__file__).parents[1].rglob("test_*.py")
    texts = (file.read_text(encoding="utf-8") for file in files)
    return frozenset(
        it for text in texts for it in re.findall(r"^def test_(\w+)", text, re.MULTILINE)
    )


def test_the_48_questions_are_in_order():
    assert [it.number for it in QUESTIONS] == list(range(1, 49))


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda it: f"{it.number}: {it.asked}")
def test_each_question_has_tests_or_a_reason(question):
    assert bool(question.tests) != bool(question.why_not)
    for name in question.tests.split():
        assert name in _known(), name
