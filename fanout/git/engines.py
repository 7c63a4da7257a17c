"""Which engine writes: the one that the administrator chose, another where that one cannot."""

from pathlib import Path

from fanout.api.configuration import GitEngine
from fanout.git.command import GitProgram
from fanout.git.engine import Engine, Objects
from fanout.git.fastimport import FastImport
from fanout.git.inprocess import InProcess
from fanout.git.pack import LARGEST, PackTooLargeError
from fanout.plan.repository import RepositoryChange


def engine_of(choice: GitEngine, git: GitProgram, largest: int = LARGEST) -> Engine:
    """The engine of this name; `largest` is the size in bytes that no pack made here reaches."""
    portable = FastImport(git)
    if choice is GitEngine.FAST_IMPORT:
        return portable
    return _FastWherePossible(InProcess(largest), portable)


class _FastWherePossible:
    """Takes the portable engine for what one pack of the fast one cannot hold."""

    def __init__(self, fast: Engine, portable: Engine) -> None:
        self._fast = fast
        self._portable = portable

    def write(self, mirror: Path, change: RepositoryChange) -> Objects:
        """As the protocol says."""
        try:
            return self._fast.write(mirror, change)
        except PackTooLargeError:
            return self._portable.write(mirror, change)
