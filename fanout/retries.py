"""Retries: pauses of random length, and attempts repeated after a lost race.

Whoever retries at once with all others loses again with them; random pauses spread them out.
"""

import time
from collections.abc import Callable
from random import SystemRandom
from typing import TypeVar

from fanout.errors import Conflict

RETRY_TIMEOUT = 30.0  # seconds in total; a longer chain of lost races means a fault
_FIRST_PAUSE = 0.05  # seconds; the longest first pause
_MAX_PAUSE = 4.0

_Result = TypeVar("_Result")

# Not the state of the module `random`, which forked processes share: they would stay in step.
_RANDOM = SystemRandom()


def choose_pause(shortest: float, longest: float) -> float:
    """Return a random number of seconds between both."""
    return _RANDOM.uniform(shortest, longest)


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
        time.sleep(min(choose_pause(0, max_pause), remaining))
        max_pause = min(2 * max_pause, _MAX_PAUSE)
