"""Tables on terminals of any width, in pipes, and with names that are not meant well."""

import subprocess
import sys
from pathlib import Path

import pytest
from pseudo_terminal import run_on_terminal

from fanout.cli.output.text_layout import cell_width, cut_text, format_fitted, format_full
from fanout.cli.terminal import Color, is_colored, print_message, set_quiet

SCHEDULE = ("schedule", "windows", "--allow", "0 6 * * *", "--duration", "10h")
AT = ("--at", "2026-03-01T12:00:00Z", "--after", "")
HEADS = ("NAME", "STATE", "MESSAGE")
ROWS = (
    ("monitoring-ams-1a2b3c4d", "Held", "waits for an approval of the people of sre"),
    ("monitoring-ber-5e6f7a8b", "Ready", "published"),
)

FITTED = [
    (
        "wide enough: everything in full",
        100,
        [
            "NAME                      STATE   MESSAGE",
            "monitoring-ams-1a2b3c4d   Held    waits for an approval of the people of sre",
            "monitoring-ber-5e6f7a8b   Ready   published",
        ],
    ),
    (
        "sentences are cut before columns are left out",
        60,
        [
            "NAME                      STATE   MESSAGE",
            "monitoring-ams-1a2b3c4d   Held    waits for an approval of …",
            "monitoring-ber-5e6f7a8b   Ready   published",
        ],
    ),
    (
        "the least important column is left out, and a mark tells",
        40,
        [
            "NAME                      STATE   …",
            "monitoring-ams-1a2b3c4d   Held",
            "monitoring-ber-5e6f7a8b   Ready",
        ],
    ),
    (
        "20 columns: what identifies the row is cut last",
        20,
        ["NAME               …", "monitoring-ams-…", "monitoring-ber-…"],
    ),
]


@pytest.mark.parametrize(("sentence", "width", "expected"), FITTED, ids=lambda it: str(it)[:50])
def test_a_table_fits_the_terminal(sentence, width, expected):
    text = format_fitted(HEADS, ROWS, width, (0, 1, 2), (0, 0, 12))
    assert text.splitlines() == expected, sentence
    assert max(map(len, expected)) <= width


def test_cells_are_cut_before_the_head_of_another_column():
    heads, rows = ("POLICY", "REVISION", "WAITS FOR"), [("monitoring", "v1", "ApprovalMissing +1")]
    text = format_fitted(heads, rows, 36, (0, 2, 1), (1, 1, 1))
    assert text.splitlines() == [
        "POLICY       REVISION   WAITS FOR",
        "monitoring   v1         ApprovalMis…",
    ]


def test_a_table_without_heads_has_no_mark():
    text = format_fitted((), ROWS, 40, (0, 1, 2), (0, 0, 12))
    assert text.splitlines() == [
        "monitoring-ams-1a2b3c4d   Held",
        "monitoring-ber-5e6f7a8b   Ready",
    ]


def test_characters_of_two_cells_are_counted_as_two():
    assert (cell_width("監視"), cut_text("監視監視", 5)) == (4, "監視…")
    text = format_fitted(("NAME", "X"), [("監視", "a"), ("ams1", "b")], 80, (0, 1), (0, 0))
    assert text.splitlines()[1:] == ["監視   a", "ams1   b"]


def test_a_line_of_10_kb_is_cut_in_a_pipe_too():
    text = format_full([("NAME", "MESSAGE"), ("a", "x" * 10_000), ("b", "y")])
    assert max(map(len, text.splitlines())) < 1100
    assert text.splitlines()[1].endswith("x…")


def test_a_message_of_10_kb_is_cut(capsys):
    print_message("x" * 10_000)
    assert capsys.readouterr().err == f"{'x' * 4000}… (10000 characters)\n"


def test_a_message_of_many_lines_is_cut(capsys):
    print_message(("x" * 999 + "\n") * 1000, fg="red")
    assert 60_000 < len(capsys.readouterr().err) < 70_000


HOSTILE = {
    "an escape sequence": ("\x1b]0;owned\x07\x1b[2J", "\\x1b]0;owned\\x07\\x1b[2J"),
    "a mark for right to left": ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
    "a character without width": ("a\u200bb", "a\\u200bb"),
    "a carriage return": ("good\rbad", "good\\rbad"),
}


@pytest.mark.parametrize("sentence", HOSTILE)
def test_a_hostile_name_is_escaped(sentence, capsys):
    text, expected = HOSTILE[sentence]
    print_message(text)
    assert capsys.readouterr().err == f"{expected}\n"


def test_quiet_leaves_errors_alone(capsys):
    set_quiet(quiet=True)
    try:
        print_message("note: something")
        print_message("failed", fg="red")
    finally:
        set_quiet(quiet=False)
    assert capsys.readouterr().err == "failed\n"


class Terminal:
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


COLORS = {
    "a terminal has colors": ({"TERM": "xterm"}, True),
    "NO_COLOR takes them away": ({"TERM": "xterm", "NO_COLOR": "1"}, False),
    "a dumb terminal has none": ({"TERM": "dumb"}, False),
}


@pytest.mark.parametrize("sentence", COLORS)
def test_colors(sentence):
    environment, colored = COLORS[sentence]
    assert is_colored(Color.AUTO, Terminal(), environment) is colored


@pytest.mark.parametrize("columns", [20, 40, 80])
def test_no_line_is_wider_than_a_real_terminal(columns: int):
    screen = run_on_terminal([*SCHEDULE, "--now", "2026-03-01T12:00:00Z"], columns)
    assert screen.code == 0
    assert 0 < max(map(len, screen.lines)) <= columns


@pytest.mark.parametrize("variables", [{"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=str)
def test_a_plain_terminal_gets_no_escape_sequence(variables, tmp_path: Path):
    screen = run_on_terminal(["get", "variants", "-f", str(tmp_path / "none")], 80, variables)
    assert screen.code == 1
    assert "\x1b" not in screen.text


def test_a_terminal_gets_errors_in_color(tmp_path: Path):
    assert "\x1b[31m" in run_on_terminal(["get", "variants", "-f", str(tmp_path / "none")]).text


def test_a_pipe_gets_every_column():
    done = subprocess.run(
        [sys.executable, "-m", "fanout", *SCHEDULE, "--now", "2026-03-01T12:00:00Z"],
        capture_output=True,
        text=True,
        check=True,
        env={"COLUMNS": "20", "PATH": "/usr/bin:/bin"},
    )
    assert "…" not in done.stdout
    assert "PUBLICATION" in done.stdout
