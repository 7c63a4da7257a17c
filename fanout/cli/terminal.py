"""Messages for people: always on stderr, colored only if that is wanted.

Imported by the entry point before any verb is loaded, so it imports little.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from enum import StrEnum
from typing import TextIO

import click

from fanout.control_characters import escape_unprintable
from fanout.message_commands import MessageCommands


class OutputClosed(Exception):
    """The reader of a pipe on stdout has exited, as in `fanout get variants | head`."""


class Color(StrEnum):
    """Values of `--color`."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def accepts_escapes(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the stream is a terminal that understands escape sequences."""
    return stream.isatty() and environment.get("TERM") != "dumb"


def is_colored(choice: Color, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether text on a stream is colored: a flag overrides NO_COLOR, that the terminal."""
    match choice:
        case Color.ALWAYS:
            return True
        case Color.NEVER:
            return False
        case Color.AUTO:
            return not environment.get("NO_COLOR") and accepts_escapes(stream, environment)


def terminal_width(stream: TextIO) -> int | None:
    """Return the columns of the terminal that the stream writes to; None if it is no terminal."""
    return shutil.get_terminal_size().columns if stream.isatty() else None


_LINE_LIMIT = 4000  # characters of one line of a message; files can have lines of any length
_MESSAGE_LIMIT = 1 << 16  # characters of a message; others' answers can have any length
_quiet: ContextVar[bool] = ContextVar("quiet", default=False)
_commands: ContextVar[MessageCommands | None] = ContextVar("commands", default=None)


def set_quiet(*, quiet: bool) -> None:
    """Set whether `print_message` prints errors only, for the rest of this command."""
    _quiet.set(quiet)


def set_commands(commands: MessageCommands) -> None:
    """Set how commands in messages are completed, for the rest of this command."""
    _commands.set(commands)


def complete_text(text: str) -> str:
    """Return the text with its commands in backticks as this command's caller can run them."""
    commands = _commands.get()
    return commands.complete_text(text) if commands is not None else text


def escape_control(text: str) -> str:
    """Return the text with control characters escaped; line breaks and tabs stay.

    No escape sequence in names and messages of files and servers must reach the terminal.
    """
    return escape_unprintable(text, "\n\t")


def cut_text(text: str, limit: int) -> str:
    """Return the beginning of a text that is too long, and its length."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def print_message(text: str, color: Color = Color.AUTO, **style: str | bool) -> None:
    """Print a message to stderr, styled as by `click.style` if color is wanted.

    Errors are red, and nothing else is. With --quiet only errors are printed.
    """
    if _quiet.get() and style.get("fg") != "red":
        return
    lines = escape_control(complete_text(cut_text(text, _MESSAGE_LIMIT))).split("\n")
    escaped = "\n".join(cut_text(line, _LINE_LIMIT) for line in lines)
    use_color = is_colored(color, sys.stderr)
    click.echo(click.style(escaped, **style) if use_color else escaped, err=True, color=use_color)  # type: ignore[arg-type]  # click.style takes each style by its own type
