"""Progress on stderr while something takes long, where a terminal is there to show it."""

import sys

from fanout.cli.loading import load
from fanout.cli.settings import Settings
from fanout.cli.terminal import colored
from fanout.telemetry.progress import Progress, Quiet


def progress_for(settings: Settings) -> Progress:
    """Bars on a terminal; nothing in a pipe or a log."""
    if not sys.stderr.isatty():
        return Quiet()
    bars: Progress = load("cli.bars").Bars(colour=colored(settings.color, sys.stderr))
    return bars
