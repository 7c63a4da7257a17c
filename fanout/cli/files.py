"""What the files of `-f` declare, for verbs that look at no repository too."""

import sys

from fanout.cli.settings import STANDARD_INPUT, Settings
from fanout.cluster.files import FileCluster


def files_of(settings: Settings) -> FileCluster:
    """The files of `-f`; `-` is what stands on standard input now. Raises InvalidInput."""
    files = settings.sources()
    if STANDARD_INPUT not in files:
        return FileCluster(files)
    named = [path for path in files if path != STANDARD_INPUT]
    return FileCluster(named, typed=sys.stdin.buffer.read())
