"""Tells the story: what a command does, the command, what it printed; and checks the world."""

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from datetime import datetime, timedelta
from pathlib import Path

from world import PINNED

WIDTH = max(72, min(shutil.get_terminal_size((80, 24)).columns, 120))
FANOUT = Path(sys.executable).with_name("fanout")


class NotAsToldError(Exception):
    """A result differs from the story's expectation."""


class Teller:
    """Runs commands in one directory, at the time that the story has reached."""

    def __init__(self, root: Path, now: datetime) -> None:
        self.root = root
        self.now = now
        self.steps = 0
        self._styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def chapter(self, title: str, **later: float) -> None:
        """Begin a chapter, some time after the one before."""
        self.now += timedelta(**later)
        when = f"{self.now:%a %H:%M}"
        line = f"─── {title} ".ljust(WIDTH - len(when) - 1, "─")
        self._print(f"\n{line} {when}", "1")

    def say(self, sentence: str) -> None:
        """Describe the next command in one line or two."""
        print("\n" + textwrap.fill(sentence, WIDTH))

    def fanout(self, line: str, *, leaves: int = 0, lines: int = 12) -> str:
        """Run `fanout LINE` as a user would; answers what it printed."""
        return self._run(f"fanout {line}", [str(FANOUT), *shlex.split(line)], leaves, lines)

    def git(self, line: str, *, lines: int = 12) -> str:
        """Run `git LINE` as a user would."""
        return self._run(f"git {line}", ["git", *shlex.split(line)], 0, lines)

    def check(self, found: object, expected: object, sentence: str) -> None:
        """Print that it is so. Raises NotAsToldError when it is not."""
        if found != expected:
            raise NotAsToldError(f"{sentence}: expected {expected}, found {found}")
        self._print(f"  ✓ {sentence}", "32")

    def _run(self, typed: str, command: list[str], leaves: int, lines: int) -> str:
        self.steps += 1
        for piece in textwrap.wrap(f"$ {typed}", WIDTH, subsequent_indent="    "):
            self._print(piece, "1;36")
        sys.stdout.flush()
        done = subprocess.run(
            command,
            cwd=self.root,
            env=self._environment(),
            text=True,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._show(done.stdout, lines)
        if done.returncode != leaves:
            raise NotAsToldError(f"`{typed}` left with {done.returncode} and not with {leaves}")
        return done.stdout

    def _environment(self) -> dict[str, str]:
        """The user's, without what would change the story; and each command is to start quickly."""
        hidden = ("FANOUT_", "PYTHONDONTWRITEBYTECODE")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
        date = self.now.isoformat()
        # Output is indented by two columns.
        screen = {"COLUMNS": str(WIDTH - 2), "LINES": "24"}
        return {**kept, **PINNED, **screen, "FANOUT_FILES": "policies", "FANOUT_NOW": date}

    def _show(self, text: str, lines: int) -> None:
        """The output, cut to the terminal: tables at its edge, sentences wrapped."""
        rows = text.splitlines()
        table = bool(rows) and rows[0].isupper()
        for row in rows[:lines]:
            if table or len(row) + 2 <= WIDTH:
                clipped = row if len(row) + 2 <= WIDTH else row[: WIDTH - 3] + "…"
                self._print(f"  {clipped}", "2")
                continue
            deep = " " * (len(row) - len(row.lstrip()) + 6)
            for piece in textwrap.wrap(row, WIDTH - 2, subsequent_indent=deep):
                self._print(f"  {piece}", "2")
        if len(rows) > lines:
            more = len(rows) - lines
            self._print(f"  … {more} more line{'s' if more > 1 else ''}", "2")

    def _print(self, text: str, style: str) -> None:
        print(f"\x1b[{style}m{text}\x1b[0m" if self._styled else text)
