"""Child processes that tests interrupt; they start with the default action for SIGINT."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def default_interrupt() -> Iterator[None]:
    """Start child processes with the default action for SIGINT.

    Background jobs of a shell ignore SIGINT, and children inherit that: without this a test that
    interrupts its child fails where the test run is such a job.
    """
    # A handler and not SIG_DFL: exec resets handlers in the child, and an interrupt of this process
    # still raises KeyboardInterrupt.
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def start_interruptible(*args: Any, **options: Any) -> subprocess.Popen[Any]:
    """Start a process, as `subprocess.Popen` does, that SIGINT interrupts."""
    with default_interrupt():
        return subprocess.Popen(*args, **options)
