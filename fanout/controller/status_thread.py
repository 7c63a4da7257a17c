"""Statuses beside the loop: they are written between rounds, by a thread of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from time import monotonic

import structlog

from fanout.controller.loop_health import ScheduledPass
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.plan.written_objects import ObjectName, WrittenObject
from fanout.ports import StatusWriter
from fanout.present.status_queue import StatusQueue
from fanout.reconcile.validation.expression_validation import ErrorsByObject
from fanout.telemetry.error_isolation import run_isolated

SETTLE_TIME = 0.1  # seconds in which a round that follows at once begins
MAX_DELAY = 60.0  # seconds for which rounds that follow each other put off all writes
WRITE_PAUSE = 0.25  # seconds for which a running round puts off one write of each connection
RETRY_PAUSE = 30.0  # seconds, after a write that failed
_GRACE = 5.0  # seconds that writes have when the process ends

_log = structlog.get_logger()


class StatusThread:
    """Observer of the loop that has statuses of each pass written by a thread of its own.

    Writes wait while a round runs: the drafts of the next policy come first.
    """

    def __init__(
        self,
        writer: StatusWriter,
        find_problem: Callable[[], FanoutError | None] = lambda: None,
        find_errors: Callable[[DeclaredObjects], ErrorsByObject] = lambda _: {},
        find_obstacle: Callable[[], str] = lambda: "",
    ) -> None:
        """Create the observer; `run` starts the thread.

        `find_problem` returns a problem that all policies are to show, `find_errors` the errors of
        declared objects. The loop's thread calls both. `find_obstacle` returns why nothing is
        written, or "".
        """
        self._find_obstacle = find_obstacle
        self._find_errors = find_errors
        self._find_problem = find_problem
        self._writer = writer
        self._queue = StatusQueue()
        self._declared = DeclaredObjects()
        self._wake, self._stopped = Event(), Event()
        self._quiet = Event()  # no round is running
        self._quiet.set()
        self._failed: frozenset[ObjectName] = frozenset()
        self._problem = ""
        self._is_writing = False

    def begin_round(self, waits: Sequence[float], declared: DeclaredObjects) -> None:  # noqa: ARG002 as of the protocol
        """Put writes off until the round ends."""
        # Not at its end: a request for a pass that came meanwhile is not handled yet.
        self._declared = declared
        self._quiet.clear()

    def end_round(self, made_pass: ScheduledPass | None, failure: FanoutError | None) -> None:
        """Take in the results of the round, or why it failed, and wake the thread."""
        report = made_pass.report if made_pass is not None else None
        errors = run_isolated(lambda: self._find_errors(self._declared))
        if isinstance(errors, FanoutError):
            _log.warning("Declared objects are not validated", problem=str(errors))
            errors = {}
        self._queue.update(report, self._declared, self._find_problem(), failure, errors)
        self._quiet.set()
        self._wake.set()

    @property
    def is_idle(self) -> bool:
        """True if all results so far are written. For any thread."""
        return not (self._wake.is_set() or self._is_writing or self._queue.has_waiting)

    @contextmanager
    def run(self) -> Iterator[None]:
        """Write while the block runs. Raises InvalidInput, Unavailable or Denied at once."""
        self._writer.start(self._wake.set)
        thread = Thread(target=self._work, name="statuses", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            self._wake.set()
            thread.join(_GRACE)
            self._writer.stop()

    def _work(self) -> None:
        pause: float | None = None
        while True:
            self._wake.wait(pause)
            if self._stopped.is_set():
                return
            # Until rounds no longer follow each other.
            end = monotonic() + MAX_DELAY
            while not self._stopped.wait(SETTLE_TIME):
                if monotonic() >= end or self._quiet.is_set():
                    break
                self._quiet.wait(end - monotonic())
            self._is_writing = True
            self._wake.clear()
            result = run_isolated(self.show)
            self._is_writing = False
            problem = str(result) if isinstance(result, FanoutError) else result
            if problem and problem != self._problem:  # once, not with every attempt
                _log.warning("Status is not written", problem=problem)
            self._problem = problem
            pause = RETRY_PAUSE if self._problem else None

    def show(self) -> str:
        """Write what is queued and what others have changed; return a problem, or ""."""
        # Before the first round nothing is known to be declared, and all would seem obsolete.
        if not self._queue.version:
            return ""
        if obstacle := self._find_obstacle():
            self._queue.take(())  # events are not kept; what waits stays
            return obstacle
        batch = self._queue.take({*self._writer.find_changed(), *self._failed})

        def list_objects() -> Iterator[WrittenObject]:
            # Until the process ends, and not until a newer result is queued: while rounds follow
            # each other, each batch would write the same first objects, and none of the others.
            # What has changed since is in the next one.
            for item in batch.list_objects(self._writer.list_records(), self._queue.has_result):
                if self._stopped.is_set():
                    return
                yield item
            self._queue.finish(batch)

        results = [self._writer.record(batch.events)]
        results.append(self._writer.write(list_objects(), self.await_turn))
        self._failed = results[-1].failed
        # After a round that failed nothing goes: what is declared was not evaluated.
        if self._queue.version == batch.version and batch.failure is None:
            obsolete = self._queue.find_obsolete(self._writer.list_made(), batch)
            results.append(self._writer.remove(obsolete))
        return next((it.problem for it in results if it.problem), "")

    def await_turn(self) -> None:
        """Let a running round go first, for a moment. For any thread."""
        if not self._stopped.is_set():
            self._quiet.wait(WRITE_PAUSE)
