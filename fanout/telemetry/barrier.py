"""Barrier between the work on one author's object and the work on all others (design §3).

An exception that fanout did not expect is a bug of its own. Raised while one file, policy, target,
variant or repository is worked on, it is the outcome of that one: `BARRIER` turns it into a `Bug`
with the reason InternalError and the place that raised it, which the `except FanoutError` around
the work handles like every other outcome. KeyboardInterrupt and SystemExit pass.

The traceback is logged at debug level, for `-v`; messages for users name the place alone.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from traceback import walk_tb
from types import TracebackType
from typing import Final, TypeVar

from fanout.api.reasons import Reason
from fanout.errors import Bug, FanoutError

LOGGER: Final = "fanout.barrier"
_LONGEST: Final = 200  # characters of an exception's own text
_log = logging.getLogger(LOGGER)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class Barrier:
    """Context manager around the work on one object; stateless, so one serves all threads."""

    __slots__ = ("_passing",)

    def __init__(self, *passing: type[Exception]) -> None:
        """`passing` are exceptions that are no errors: control flow of the caller's."""
        self._passing: tuple[type[Exception], ...] = (FanoutError, *passing)

    def __enter__(self) -> None:
        """Begin the work."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the work. Raises Bug (InternalError) for an exception that nobody expected."""
        if not isinstance(error, Exception) or isinstance(error, self._passing):
            return
        bug = internal_error(error)
        _log.debug("%s", bug.problem, exc_info=error, extra={"origin": bug.problem})
        # Frames hold all local variables of the work, and an outcome may be kept for long.
        error.__traceback__ = None
        raise bug from None


BARRIER: Final = Barrier()


class TracesOnce(logging.Filter):
    """Lets the traceback of one internal error pass once: the same may come in every pass."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is no internal error, or one that is new."""
        origin = getattr(record, "origin", None)
        if origin in self._logged:
            return False
        if origin is not None:
            self._logged.add(origin)
        return True


def internal_error(error: Exception) -> Bug:
    """The outcome that stands for an exception nobody expected."""
    text = " ".join(str(error).split())
    shown = f" ({text[:_LONGEST]}{'…' if len(text) > _LONGEST else ''})" if text else ""
    return Bug(
        f"InternalError: {type(error).__name__} at {_origin(error)}{shown}",
        reason=str(Reason.INTERNAL_ERROR),
        remedy="this is a bug in fanout; report it with the trace that -v shows",
    )


def _origin(error: Exception) -> str:
    """`module:line` of the innermost frame of fanout's own code."""
    origin = "an unknown place"
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module == "fanout" or module.startswith("fanout."):
            origin = f"{module}:{line}"
    return origin


def run_contained(work: Callable[[], _Result]) -> _Result | FanoutError:
    """The result of the work, or the error that ended it."""
    try:
        with BARRIER:
            return work()
    except FanoutError as error:
        return error


def without_faulty(
    work: Callable[[Sequence[_Item]], _Result], items: Sequence[_Item]
) -> tuple[_Result, Mapping[int, FanoutError]]:
    """The result of work on many items at once, and the items left out of it, by their index.

    An internal error in such work does not say whose it is. So the work, which must have no
    effects, is then tried on each item alone, and done again without those that fail. Raises Bug
    where none fails alone, or the others still fail together; other errors as they are.
    """
    try:
        with BARRIER:
            return work(items), {}
    except Bug as error:
        together = error
    alone = enumerate(run_contained(partial(work, (item,))) for item in items)
    faulty = {index: it for index, it in alone if isinstance(it, FanoutError)}
    if not faulty:
        raise together
    with BARRIER:
        return work([it for index, it in enumerate(items) if index not in faulty]), faulty
