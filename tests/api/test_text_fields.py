"""Words of messages: numbers with their nouns."""

import pytest

from fanout.api.text_fields import pluralize

COUNTED = [
    (1, "stage", "1 stage"),
    (2, "stage", "2 stages"),
    (0, "draft", "0 drafts"),
    (1, "status", "1 status"),
    (7, "status", "7 statuses"),
]


@pytest.mark.parametrize(("number", "noun", "expected"), COUNTED)
def test_pluralize(number: int, noun: str, expected: str):
    assert pluralize(number, noun) == expected
