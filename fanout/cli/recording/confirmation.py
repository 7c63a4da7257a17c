"""Confirmation by a person on a terminal, before a verb records something far-reaching."""

import sys
from collections.abc import Sequence

import click

from fanout.cli.command_errors import invalid_setting
from fanout.cli.terminal import escape_control
from fanout.errors import InvalidInput


def require_terminal() -> None:
    """Raise InvalidInput if nobody can be asked: stdin or stderr is no terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise invalid_setting(
            "confirmation is required, and there is no terminal",
            "add --yes, or use --dry-run to see the effect",
            "--yes",
        )


def confirm(lines: Sequence[str], question: str) -> None:
    """Show the lines and ask the question. Raises InvalidInput if the answer is no.

    Shown in spite of --quiet, because a person is to answer.
    """
    for line in lines:
        click.echo(escape_control(line), err=True)
    if not click.confirm(question, default=False, err=True):
        raise InvalidInput("not confirmed; nothing was recorded", reason="NothingToDo")
