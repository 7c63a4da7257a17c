"""Isolation of internal errors: failures do not affect other objects.

An exception that fanout did not expect is a bug of its own. Raised while one file, policy, target,
variant or repository is processed, it is the result of that one: `BARRIER` turns it into a `Bug`
with the reason InternalError and the place that raised it, and the `except FanoutError` around the
work handles it. KeyboardInterrupt and SystemExit pass.

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

LOGGER_NAME: Final = "fanout.barrier"
_MAX_ORIGINS: Final = 1_000  # internal errors of which a filter knows that they were logged
_MAX_EXCEPTION_TEXT: Final = 200  # characters of an exception's message
_log = logging.getLogger(LOGGER_NAME)

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class ErrorBarrier:
    """Context manager around the work on one object; stateless, so all threads share it."""

    __slots__ = ("_passing",)

    def __init__(self, *expected: type[Exception]) -> None:
        """Let `expected` exceptions pass, which the caller handles."""
        self._passing: tuple[type[Exception], ...] = (FanoutError, *expected)

    def __enter__(self) -> None:
        """Begin the work."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the work. Raises Bug (InternalError) for an unexpected exception."""
        if not isinstance(error, Exception) or isinstance(error, self._passing):
            return
        bug = build_internal_error(error)
        _log.debug("%s", bug.problem, exc_info=error, extra={"origin": bug.problem})
        # Frames hold all local variables of the work, and an outcome may be kept for long.
        error.__traceback__ = None
        raise bug from None


BARRIER: Final = ErrorBarrier()


class TracebackFilter(logging.Filter):
    """Log filter that lets the traceback of one internal error pass once, not with each pass."""

    def __init__(self) -> None:
        super().__init__()
        self._logged: set[object] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is no internal error or a new one."""
        if (origin := getattr(record, "origin", None)) in self._logged:
            return False
        if origin is not None:
            # Texts of errors vary, and a process may run for months.
            if len(self._logged) >= _MAX_ORIGINS:
                self._logged.clear()
            self._logged.add(origin)
        return True


def build_internal_error(error: Exception) -> Bug:
    """Build the Bug that stands for an unexpected exception."""
    text = " ".join(str(error).split())
    if len(text) > _MAX_EXCEPTION_TEXT:
        text = f"{text[:_MAX_EXCEPTION_TEXT]}…"
    quote = f" ({text})" if text else ""
    origin = "an unknown place"  # `module:line` of the innermost frame of fanout's own code
    for frame, line in walk_tb(error.__traceback__):
        module = str(frame.f_globals.get("__name__", ""))
        if module == "fanout" or module.startswith("fanout."):
            origin = f"{module}:{line}"
    return Bug(
        f"InternalError: {type(error).__name__} at {origin}{quote}",
        reason=str(Reason.INTERNAL_ERROR),
        remedy="this is a bug in fanout; report it with the trace that -v shows",
    )


def run_isolated(work: Callable[[], _Result]) -> _Result | FanoutError:
    """Return the result of the work, or the error that ended it."""
    try:
        with BARRIER:
            return work()
    except FanoutError as error:
        return error


def run_without_faulty(
    work: Callable[[Sequence[_Item]], _Result], items: Sequence[_Item]
) -> tuple[_Result, Mapping[int, FanoutError]]:
    """Run work on many items at once; return its result and the errors of items left out.

    The errors are by index. An internal error in such work does not say which item caused
    it. So the work, which must have no effects, is then tried on each item alone, and
    repeated without those that fail. Raises Bug if no item fails alone or if the others
    still fail together; other errors pass unchanged.
    """
    try:
        with BARRIER:
            return work(items), {}
    except Bug as error:
        combined_error = error
    # Quadratic at worst, but only after an internal error, and only for pure work.
    results = enumerate(run_isolated(partial(work, (item,))) for item in items)
    faulty = {index: it for index, it in results if isinstance(it, FanoutError)}
    if not faulty:
        raise combined_error
    with BARRIER:
        return work([it for index, it in enumerate(items) if index not in faulty]), faulty
