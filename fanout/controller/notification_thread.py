"""Delivery of notifications beside the loop: an address that hangs holds up no pass."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from threading import Event, Thread

import structlog

from fanout.controller.loop_health import LoopObserver, ScheduledPass
from fanout.errors import FanoutError
from fanout.present.notifications.notifier import Notifier
from fanout.telemetry.error_isolation import run_isolated

MAX_WAIT = 60.0  # seconds between looks at what waits
_GRACE = 1.0  # seconds that a delivery has when the process ends; what it does not reach waits

_log = structlog.get_logger()


class NotificationThread(LoopObserver):
    """Observer of the loop that has events of each pass delivered by a thread of its own."""

    def __init__(self, notifier: Notifier, clock: Callable[[], datetime]) -> None:
        """Create the observer; `run` starts the thread."""
        self._notifier = notifier
        self._clock = clock
        self._wake = Event()
        self._stopped = False
        self._problems: dict[str, str] = {}

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:  # noqa: ARG002 as of the protocol
        """Queue the events of a pass, and wake the thread."""
        if made_pass is not None:
            self._notifier.observe(made_pass.report, made_pass.declared)
            self._wake.set()

    @contextmanager
    def run(self) -> Iterator[None]:
        """Deliver while the block runs."""
        # A daemon: a process that ends must not wait for an address.
        thread = Thread(target=self._deliver, name="notifications", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped = True
            self._wake.set()
            thread.join(_GRACE)

    def _deliver(self) -> None:
        pause: float | None = 0.0
        while True:
            self._wake.wait(pause)
            self._wake.clear()
            if self._stopped:
                return
            now = self._clock()
            result = run_isolated(partial(self._notifier.deliver, now))
            if isinstance(result, FanoutError):
                self._log_changes({"fanout": str(result)})
                pause = MAX_WAIT
            else:
                self._log_changes(dict(result.problems))
                pause = None  # until a pass queues something
                if result.next is not None:
                    pause = min(max((result.next - now).total_seconds(), 0.1), MAX_WAIT)

    def _log_changes(self, problems: dict[str, str]) -> None:
        """Log each problem of an address once, not with every attempt."""
        for name, problem in problems.items():
            if self._problems.get(name) != problem:
                _log.warning("Notification is not delivered", notification=name, problem=problem)
        self._problems |= problems
