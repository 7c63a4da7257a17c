"""Messages for people: always on stderr, colored only if that is wanted.

Imported by the entry point before any verb is loaded, so it imports little.
"""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

import click


class OutputClosed(Exception):
    """Stdout is a pipe whose reader has exited, as in `fanout get variants | head`.

    Not an error.
    """


class Color(StrEnum):
    """Values of `--color`."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def is_colored(choice: Color, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether text on this stream is colored.

    A flag overrides NO_COLOR, and NO_COLOR the terminal.
    """
    match choice:
        case Color.ALWAYS:
            return True
        case Color.NEVER:
            return False
        case Color.AUTO:
            return not environment.get("NO_COLOR") and stream.isatty()


def escape_control(text: str) -> str:
    """Return the text with control characters escaped.

    Names and messages come from files and from other servers; an escape sequence in one of
    them must not reach the terminal.
    """
    # Nearly every cell of a table is printable, and this test is one call in C.
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def print_message(text: str, color: Color = Color.AUTO, **style: str | bool) -> None:
    """Print one line to stderr, styled as by `click.style` if color is wanted."""
    escaped = escape_control(text)
    use_color = is_colored(color, sys.stderr)
    click.echo(click.style(escaped, **style) if use_color else escaped, err=True, color=use_color)  # type: ignore[arg-type]  # click.style takes each style by its own type
