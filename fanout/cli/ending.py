"""How the process ends: with its status, and without taking apart what it holds.

Whoever leaves through the interpreter's front door frees every object one by one first. After a
pass over 10,000 targets that is half a second in which nothing is done for anybody: files and
children are closed by then, and the system takes the memory back at once.
"""

import atexit
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn


def end_with(work: Callable[[], int]) -> NoReturn:
    """Do the work and end the process with the status that it answers.

    As at every end, threads are waited for first and `atexit` calls whom it was asked to; ours is
    registered before the work, so it is the last to be called. Where the work raises, or what was
    printed cannot be delivered, the interpreter ends as it always does.
    """
    ending = _Ending()
    atexit.register(ending.leave)
    _ours.append(ending)
    ending.status = work()
    sys.exit(ending.status)


def hold(value: object) -> None:
    """In a process that ends so, nobody takes this apart before, though it is needed no more."""
    for ending in _ours:
        ending.held.append(value)


@dataclass(slots=True)
class _Ending:
    status: int | None = None
    held: list[object] = field(default_factory=list)

    def leave(self) -> None:
        if self.status is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):
            return  # the interpreter flushes again, and says what is wrong
        os._exit(self.status)


_ours: list[_Ending] = []  # none where somebody else runs a command line, as tests do
