"""Durations, instants and amounts as people write them."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.durations import (
    format_duration,
    parse_duration,
    parse_instant,
    parse_retry_after,
)
from fanout.api.field_errors import InvalidValue
from fanout.api.stages import parse_amount


@given(st.integers(min_value=0, max_value=87600 * 3600))
def test_a_formatted_duration_parses_to_the_same_duration(seconds):
    assert parse_duration(format_duration(timedelta(seconds=seconds))) == timedelta(seconds=seconds)


@given(st.text(alphabet="0123456789hmsd. -+", max_size=12))
def test_any_text_is_a_duration_or_a_sentence(text):
    try:
        assert parse_duration(text) >= timedelta(0)
    except InvalidValue as error:
        assert error.problem
        assert error.remedy


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1h30m10s", 5410), ("90m", 5400), ("0s", 0), ("87600h", 87600 * 3600), ("1h10s", 3610)],
)
def test_hours_minutes_and_seconds(text, seconds):
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1d",
        "1.5h",
        "1h 30m",
        "30s1h",
        "1h1h",
        "-1h",
        "87601h",
        "10",
        "h",
        "٣h",
        "1H",
        "999999999h",
        "1h|",  # Open Cluster Management's pattern takes it, and "1h1" too
        "1h1",
    ],
)
def test_a_malformed_duration_is_refused(text):
    with pytest.raises(InvalidValue):
        parse_duration(text)


def test_instants_are_in_utc():
    assert parse_instant("2030-01-31T16:00:00+01:00") == datetime(2030, 1, 31, 15, tzinfo=UTC)
    assert parse_instant(datetime(2030, 1, 31, tzinfo=UTC)).tzinfo is UTC


@pytest.mark.parametrize(
    "value", ["2030-01-31", "2030-01-31T16:00Z", "soon", datetime(2030, 1, 31), 5], ids=str
)
def test_a_malformed_instant_is_refused(value):
    with pytest.raises(InvalidValue):
        parse_instant(value)


@pytest.mark.parametrize(
    ("value", "amount"), [(0, 0), (3, 3), ("0%", 0), ("60%", Fraction(3, 5)), ("100%", 1)]
)
def test_amounts(value, amount):
    assert parse_amount(value) == amount


@pytest.mark.parametrize("value", [-1, True, "101%", "1.5%", "60", "-1%", 2.5, None])
def test_a_malformed_amount_is_refused(value):
    with pytest.raises(InvalidValue):
        parse_amount(value)


RETRY_AFTER = [
    ("3", 3),
    ("0", 0),
    ("-5", 0),
    (None, 1),
    ("", 1),
    ("soon", 1),
    ("nan", 5),
    ("inf", 5),
    ("999999999", 5),
    ("Mon, 02 Mar 2026 09:00:04 GMT", 4),
    ("Mon, 02 Mar 2026 11:00:00 GMT", 5),
    ("Mon, 02 Mar 2020 09:00:00 GMT", 0),
    ("Mon, 02 Mar 2026 09:00:04 -0000", 4),
    ("Mon, 99 Mar 2026 09:00:04 GMT", 1),
]


@pytest.mark.parametrize(("text", "seconds"), RETRY_AFTER)
def test_a_retry_after_header_has_seconds_or_a_date(text: str | None, seconds: float):
    now = datetime(2026, 3, 2, 9, tzinfo=UTC)
    assert parse_retry_after(text, now, 1.0, 5.0) == seconds
