"""What the files of `-f` declare, for verbs that look at no repository too."""

import sys

from fanout.cli.settings import STANDARD_INPUT, Settings
from fanout.cluster.files import FileCluster
from fanout.cluster.parsed import ParsedFiles


def files_of(settings: Settings, parsed: ParsedFiles | None = None) -> FileCluster:
    """The files of `-f`; `-` is what stands on standard input now. Raises InvalidInput.

    `parsed` is what earlier commands have read; without it nothing is written.
    """
    files = settings.sources()
    if STANDARD_INPUT not in files:
        return FileCluster(files, parsed=parsed)
    named = [path for path in files if path != STANDARD_INPUT]
    return FileCluster(named, typed=sys.stdin.buffer.read(), parsed=parsed)
