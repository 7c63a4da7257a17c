"""Retries of lost races.

Writers of a branch that all retry at once lose again; pauses of random length spread them
out.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from fanout.errors import Conflict

RETRY_TIMEOUT = 30.0  # seconds in total; a longer chain of lost races means a fault
_FIRST_PAUSE = 0.05  # seconds; the longest first pause
_MAX_PAUSE = 4.0

_Result = TypeVar("_Result")


def retry_conflicts(attempt: Callable[[], _Result]) -> _Result:
    """Call `attempt` until it raises no Conflict. Raise the last Conflict after half a minute."""
    deadline, max_pause = time.monotonic() + RETRY_TIMEOUT, _FIRST_PAUSE
    while True:
        try:
            return attempt()
        except Conflict:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                raise
        # Full jitter: with a fixed part, writers that collided once would stay in step.
        time.sleep(min(random.uniform(0, max_pause), remaining))  # noqa: S311 - no secret
        max_pause = min(2 * max_pause, _MAX_PAUSE)
