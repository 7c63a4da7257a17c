"""Words for people: always on stderr, in colour only where that is wanted.

Light on purpose: the entry point imports it before any verb is loaded.
"""

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

import click


class ReaderGone(Exception):  # not an error: who read our output has enough
    """Stdout is a pipe that nobody reads any more, as in `fanout get variants | head`."""


class Color(StrEnum):
    """`--color`."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def colored(choice: Color, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Is text on this stream to be coloured? A flag wins over NO_COLOR, that over the terminal."""
    match choice:
        case Color.ALWAYS:
            return True
        case Color.NEVER:
            return False
        case Color.AUTO:
            return not environment.get("NO_COLOR") and stream.isatty()


def printable(text: str) -> str:
    """The text with control characters spelled out.

    Names and messages come from files and from other people's servers; an escape sequence in one
    must not reach the terminal.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()
        for char in text
    )


def say(text: str, color: Color = Color.AUTO, **style: str | bool) -> None:
    """One line to stderr, styled as `click.style` does where colour is wanted."""
    words = printable(text)
    dressed = colored(color, sys.stderr)
    click.echo(click.style(words, **style) if dressed else words, err=True, color=dressed)  # type: ignore[arg-type]  # click.style takes each style by its own type
