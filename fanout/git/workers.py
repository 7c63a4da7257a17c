"""Many repositories at once: those far away are waited for, those at home take the processors."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TypeVar

AT_HOME = 2 * (os.cpu_count() or 1)  # more would take memory and win no time

_Work = TypeVar("_Work")
_Result = TypeVar("_Result")


class Workers:
    """Threads for one batch after the other; each piece of work is for a repository of its own."""

    def __init__(self, most: int, stop: Callable[[], None]) -> None:
        """`most` at once; `stop` ends what runs when whoever waits is interrupted."""
        self._most = most
        self._stop = stop

    def each(
        self,
        work: Mapping[str, _Work],
        do: Callable[[_Work], _Result],
        near: Callable[[str], bool],
    ) -> dict[str, _Result]:
        """The result for each key, in the order of the keys; work is begun in that order too.

        What is `near`, by its key, is done apart from the rest, `AT_HOME` at once: it holds up
        nobody who only waits for an answer, and nobody far away holds it up. What `do` raises is
        raised.
        """
        if len(work) < 2:
            return {key: do(one) for key, one in work.items()}
        with ExitStack() as stack:
            pools = {
                here: stack.enter_context(ThreadPoolExecutor(min(self._most, most)))
                for here, most in ((True, AT_HOME), (False, self._most))
            }
            begun = {key: pools[near(key)].submit(do, one) for key, one in work.items()}
            try:
                return {key: future.result() for key, future in begun.items()}
            except BaseException:
                for pool in pools.values():
                    pool.shutdown(wait=False, cancel_futures=True)
                self._stop()
                raise
