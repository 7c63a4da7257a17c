"""Runner of the demo's commands: shows each with its output, and checks the results."""

import fcntl
import os
import pty
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path

from demo_fleet import GIT_ENVIRONMENT

WIDTH = max(72, min(shutil.get_terminal_size((80, 24)).columns, 120))
FANOUT = Path(sys.executable).with_name("fanout")


class UnexpectedResultError(Exception):
    """A result differs from the expected one."""


class CommandRunner:
    """Runs commands in one directory, at the time of the current chapter."""

    def __init__(self, root: Path, now: datetime) -> None:
        self.root = root
        self.now = now
        self.commands_run = 0
        self._styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def chapter(self, title: str, **delay: float) -> None:
        """Print a heading and advance the time; `delay` has the arguments of `timedelta`."""
        self.now += timedelta(**delay)
        time = f"{self.now:%a %H:%M}"
        line = f"─── {title} ".ljust(WIDTH - len(time) - 1, "─")
        self._print(f"\n{line} {time}", "1")

    def describe(self, text: str) -> None:
        """Print one or two sentences about the next command."""
        print("\n" + textwrap.fill(text, WIDTH))

    def fanout(self, line: str, *, exits_with: int = 0, lines: int = 12) -> str:
        """Run `fanout LINE` as a user would. Return what it printed."""
        return self._run(f"fanout {line}", [str(FANOUT), *shlex.split(line)], exits_with, lines)

    def git(self, line: str, *, lines: int = 12) -> str:
        """Run `git LINE` as a user would."""
        command = ["git", "-c", "color.ui=false", *shlex.split(line)]
        return self._run(f"git {line}", command, 0, lines)

    def check(self, actual: object, expected: object, result: str) -> None:
        """Print the result. Raise UnexpectedResultError if the values differ."""
        if actual != expected:
            raise UnexpectedResultError(f"{result}: expected {expected}, got {actual}")
        self._print(f"  ✓ {result}", "32")

    def _run(self, shown: str, command: list[str], exits_with: int, lines: int) -> str:
        self.commands_run += 1
        for part in textwrap.wrap(f"$ {shown}", WIDTH, subsequent_indent="    "):
            self._print(part, "1;36")
        sys.stdout.flush()
        errors, output, code = run_on_terminal(command, self.root, self._environment())
        self._show(errors, lines)
        self._show(output, lines)
        if code != exits_with:
            raise UnexpectedResultError(f"`{shown}` exited with {code}, expected {exits_with}")
        return output

    def _environment(self) -> dict[str, str]:
        """Return the environment without variables that change results or slow the start."""
        hidden = ("FANOUT_", "PYTHONDONTWRITEBYTECODE")
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        plain_output = {"NO_COLOR": "1", "GIT_PAGER": "cat", "PAGER": "cat"}
        settings = {"FANOUT_FILES": "policies", "FANOUT_NOW": self.now.isoformat()}
        return {**inherited, **GIT_ENVIRONMENT, **plain_output, **settings}

    def _show(self, text: str, lines: int) -> None:
        """Print the first lines of the output, wrapped to the terminal."""
        rows = text.splitlines()
        for row in rows[:lines]:
            indent = " " * (len(row) - len(row.lstrip()) + 6)
            for part in textwrap.wrap(row, WIDTH - 2, subsequent_indent=indent) or [""]:
                self._print(f"  {part}" if len(row) + 2 > WIDTH else f"  {row}", "2")
        if len(rows) > lines:
            hidden = len(rows) - lines
            self._print(f"  … {hidden} more line{'s' if hidden > 1 else ''}", "2")

    def _print(self, text: str, style: str) -> None:
        print(f"\x1b[{style}m{text}\x1b[0m" if self._styled else text)


def run_on_terminal(
    command: list[str], root: Path, environment: dict[str, str]
) -> tuple[str, str, int]:
    """Run a command with its output on a terminal of WIDTH - 2 columns, as output is indented.

    Return what it wrote to standard error and to the terminal, and its exit code.
    """
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, WIDTH - 2, 0, 0))
    process = subprocess.Popen(
        command,
        cwd=root,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    with ThreadPoolExecutor() as pool, process:
        output = pool.submit(read_terminal, master)
        errors = process.stderr.read().decode() if process.stderr else ""
        return errors, output.result(), process.wait()


def read_terminal(master: int) -> str:
    """Return the text written to a terminal until the last program closes it."""
    chunks = []
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # Linux: no program has the terminal open any more
            chunk = b""
        if not chunk:
            os.close(master)
            return b"".join(chunks).decode().replace("\r\n", "\n")
        chunks.append(chunk)
