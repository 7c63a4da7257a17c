"""Output on terminals and in pipes: colors, narrow lines, a watched fleet, an early end."""

import os
import pty
import re
import select
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from companies import company
from fleet import Fleet
from preloaded import FANOUT, PreloadedProcess
from pseudo_terminal import run_on_terminal

COLOR = re.compile(r"\x1b\[[\d;]*m")
VERBS = [
    ("status",), ("explain",), ("explain", "monitoring"), ("explain", "monitoring/prod/ber"),
    ("get", "variants"), ("get", "records"), ("history", "monitoring"), ("graph", "monitoring"),
]  # fmt: skip


@company
def fleet(root: Path) -> Fleet:
    made = Fleet.build(root)
    made.settle()
    return made


def line(fleet: Fleet, *verb: str) -> list[str]:
    state = ("--state-dir", str(fleet.root / fleet.state), "--now", fleet.now.isoformat())
    return [*verb, "-f", str(fleet.root / fleet.policies), *state]


BOLD, YELLOW, CYAN = "\x1b[1m", "\x1b[33m", "\x1b[36m"
COLORED = {("status",): {BOLD, YELLOW}, ("explain", "monitoring"): {BOLD, YELLOW}}


@pytest.mark.parametrize("verb", COLORED, ids=" ".join)
def test_colors_of_a_terminal_are_all_that_is_missing_without_them(
    fleet: Fleet, verb: tuple[str, ...]
):
    colored = run_on_terminal(line(fleet, *verb)).text
    assert set(COLOR.findall(colored)) - {"\x1b[0m"} == COLORED[verb]
    for variables in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        plain = run_on_terminal(line(fleet, *verb), environment=variables).text
        assert "\x1b" not in plain
        assert plain == COLOR.sub("", colored)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_lines_fit_20_columns_but_for_options_of_commands(fleet: Fleet, verb: tuple[str, ...]):
    screen = run_on_terminal(line(fleet, *verb), 20, {"NO_COLOR": "1"})
    assert screen.code == 0
    wider = [it for it in screen.lines if len(it) > 20]
    assert [it for it in wider if not it.startswith(("      --", "      -f "))] == []


@contextmanager
def watching(
    arguments: list[str], *, terminal: bool, kind: str = "xterm-256color"
) -> Iterator[Callable[[str], str]]:
    """Run a command that stays; yield a function that reads its output up to a text."""
    reading, writing = pty.openpty() if terminal else os.pipe()
    process = PreloadedProcess(
        [*FANOUT, *arguments],
        directory=Path.cwd(),
        environment={**os.environ, "TERM": kind},
        stdout=writing,
    )
    os.close(writing)

    def read_until(text: str) -> str:
        output, deadline = "", time.monotonic() + 60
        while text not in output:
            ready, _, _ = select.select([reading], [], [], max(0, deadline - time.monotonic()))
            chunk = os.read(reading, 65536) if ready else b""
            assert chunk, f"no {text!r} in {output!r}"
            output += chunk.decode()
        return output

    try:
        yield read_until
    finally:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        os.close(reading)


SCREENS = [(True, "xterm-256color", True), (True, "dumb", False), (False, "xterm-256color", False)]


@pytest.mark.parametrize(
    ("terminal", "kind", "cleared"), SCREENS, ids=["a terminal", "a dumb terminal", "a pipe"]
)
def test_a_watched_status_is_printed_again_when_it_changes(
    fleet: Fleet, terminal: bool, kind: str, cleared: bool
):
    watched = line(fleet, "status", "--watch")
    with watching(watched, terminal=terminal, kind=kind) as read_until:
        first = read_until("Fleet: 1 policy, 0 of 3 variants ready")
        assert "\x1b[2J" not in first
        fleet.report("dev", "v1")
        second = read_until("Fleet: 1 policy, 1 of 3 variants ready")
    assert ("\x1b[H\x1b[2J" in second) is cleared


def test_a_watched_table_prints_what_changed(fleet: Fleet):
    with watching(line(fleet, "get", "stages", "--watch"), terminal=False) as read_until:
        assert "prod" in read_until("\nmonitoring   prod")
        fleet.report("dev", "v1")
        assert "Passed" in read_until("Passed")


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_reader_that_stops_early_ends_the_command_without_a_word(
    fleet: Fleet, verb: tuple[str, ...]
):
    reading, writing = os.pipe()
    os.close(reading)
    errors = fleet.root / "errors"
    with errors.open("wb") as written:
        process = PreloadedProcess(
            [*FANOUT, *line(fleet, *verb)],
            directory=fleet.root,
            environment=os.environ,
            stdout=writing,
            stderr=written.fileno(),
        )
        os.close(writing)
        assert (process.wait(), errors.read_text()) == (141, "")
