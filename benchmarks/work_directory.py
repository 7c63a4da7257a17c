"""Directories of benchmark runs, in memory if there is enough of it."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")
_BYTES_PER_TARGET = 120_000  # the most that a target takes, with all yardsticks
_FEWEST_TARGETS = 10_000  # smaller runs need memory as if they had so many


def choose_parent(targets: int) -> Path:
    """Return a directory in memory if there is enough of it, so that no disk is measured."""
    needed = _BYTES_PER_TARGET * max(targets, _FEWEST_TARGETS)
    if os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > needed:
        return _MEMORY
    return Path(tempfile.gettempdir())


@contextmanager
def work_directory(targets: int) -> Iterator[Path]:
    """Create a directory for a run with so many targets; it is removed afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="fanout-bench-", dir=choose_parent(targets)))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)
