"""Wrapped sentences, aligned rows, commands to paste, and times relative to now."""

import shlex
from datetime import UTC, datetime, timedelta

import pytest

from fanout.cli.output.text_layout import (
    format_relative,
    text_width,
    wrap_command,
    wrap_rows,
    wrap_text,
)

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
COMMAND = "fanout report web --stage prod --variant 'a b' --check e2e --status passed"


@pytest.mark.parametrize("width", [24, 40, 80])
def test_a_wrapped_command_is_the_same_command(width):
    lines = list(wrap_command(COMMAND, width, "  "))
    assert max(map(len, lines)) <= width
    # A shell drops a backslash with the end of its line.
    assert shlex.split("\n".join(lines).replace("\\\n", "")) == shlex.split(COMMAND)


def test_an_option_stays_beside_its_value():
    lines = list(wrap_command(COMMAND, 50, "  "))
    assert [line.strip(" \\").split()[0] for line in lines] == ["fanout", "--check"]


def test_rows_are_aligned_and_wrapped_below_their_last_cell():
    rows = [("dev", "NoDraft", "a draft is written by the next sweep"), ("prod", "Halted", "x")]
    assert list(wrap_rows(rows, 46, "  ")) == [
        "  dev   NoDraft  a draft is written by the",
        "                 next sweep",
        "  prod  Halted   x",
    ]
    assert list(wrap_rows(rows, None, "")) == [
        "dev   NoDraft  a draft is written by the next sweep",
        "prod  Halted   x",
    ]


def test_a_narrow_terminal_gets_the_sentence_below():
    rows = [("production", "ApprovalMissing", "two people approve it")]
    lines = list(wrap_rows(rows, 30, ""))
    assert lines == ["production ApprovalMissing", "  two people approve it"]


@pytest.mark.parametrize("width", [None, 80, 30])
def test_a_row_may_end_in_an_empty_cell(width):
    rows = [("prod", "Halted", ""), ("dev", "NoDraft", " ")]
    lines = [line.split() for line in wrap_rows(rows, width, "  ")]
    assert lines == [["prod", "Halted"], ["dev", "NoDraft"]]
    assert not any(line.endswith(" ") for line in wrap_rows(rows, width, "  "))


HOSTILE = ["\x1b[31mred", "\u202eright to left", "a\x07b", "x" * 10_000]


@pytest.mark.parametrize("text", HOSTILE, ids=["color", "direction", "bell", "long"])
def test_a_hostile_name_never_reaches_the_terminal(text):
    lines = [*wrap_text(text, 40), *wrap_rows([(text[:20], text)], 40, "")]
    assert all(line.isprintable() for line in lines)
    assert max(map(len, lines)) <= 40


def test_in_a_pipe_lines_are_wrapped_only_if_columns_is_set(monkeypatch):
    monkeypatch.delenv("COLUMNS", raising=False)
    assert text_width() is None
    monkeypatch.setenv("COLUMNS", "60")
    assert text_width() == 60
    monkeypatch.setenv("COLUMNS", "3")
    assert text_width() == 20


TIMES = [(0, "now"), (90, "in 90s"), (7200, "in 2h"), (5 * 86400, "in 5d"), (-600, "10m ago")]


@pytest.mark.parametrize(("seconds", "shown"), TIMES, ids=[row[1] for row in TIMES])
def test_times_are_relative(seconds, shown):
    assert format_relative(NOW + timedelta(seconds=seconds), NOW) == shown
