"""Retries of lost races: exponential backoff with full jitter, bounded in total.

Whoever writes a branch of the records by compare-and-swap may lose to others. A process that tries
again at once loses to all who do the same; pauses of random length spread them out.
"""

import random
import time
from collections.abc import Callable
from typing import TypeVar

from fanout.errors import Conflict

PATIENCE = 30.0  # seconds in total, after which somebody must hold the branch up
_FIRST = 0.05  # seconds; the longest first pause
_LONGEST = 4.0

_Result = TypeVar("_Result")


def until_it_wins(attempt: Callable[[], _Result]) -> _Result:
    """Call `attempt` until it raises no Conflict; after half a minute, raise the last one."""
    deadline, longest = time.monotonic() + PATIENCE, _FIRST
    while True:
        try:
            return attempt()
        except Conflict:
            left = deadline - time.monotonic()
            if left <= 0:
                raise
        time.sleep(min(random.uniform(0, longest), left))  # noqa: S311 - no secret
        longest = min(2 * longest, _LONGEST)
