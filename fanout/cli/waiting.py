"""A spinner while something takes long, where a terminal is there to show it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from fanout.cli.settings import Settings
from fanout.cli.terminal import colored


@contextmanager
def waiting(settings: Settings, what: str) -> Iterator[None]:
    """Show on stderr that work is going on; shows nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        yield
        return
    console = Console(stderr=True, no_color=not colored(settings.color, sys.stderr))
    with console.status(what):
        yield
