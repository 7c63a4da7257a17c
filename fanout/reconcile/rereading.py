"""Reading of a mirror that turns out damaged while it is read.

A damaged mirror is marked, and made again by the next look: one more lets the same pass go on.
"""

from collections.abc import Callable
from typing import TypeVar

from fanout.api.reasons import Reason
from fanout.errors import FanoutError
from fanout.plan.repository import Look
from fanout.ports import GitStore

_DAMAGED = frozenset({Reason.MIRROR_DAMAGED, Reason.MIRROR_MISSING, Reason.OBJECT_MISSING})
_Result = TypeVar("_Result")


def read_again(git: GitStore, look: Look, read: Callable[[], _Result]) -> _Result:
    """Return what `read` returns; where it finds a damaged mirror, look and read once more.

    Raises what `read` raises, and what the look answers.
    """
    try:
        return read()
    except FanoutError as error:
        if error.reason not in _DAMAGED:
            raise
    answer = git.look([look])[look.remote.url]
    if isinstance(answer, FanoutError):
        raise answer
    return read()
