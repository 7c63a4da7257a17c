"""Work on many remotes at once, of which none is waited for longer than patience lasts.

Each remote is worked on in a thread. What takes too long leaves the batch: its result is
`RemoteUnavailable`, and the attempt goes on beside it, alone on that remote. Until the remote has
answered in time again, batches hardly wait for it, and it is asked later and later.

Only time spent on waiting for others counts: for a git process that talks to the remote, or for
a process that holds the mirror. How long fanout itself computes says nothing about a server.
"""

import os
import signal
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import monotonic
from typing import Any, TypeVar

from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, FanoutError, Unavailable
from fanout.values import Value

_Task = TypeVar("_Task")
_Result = TypeVar("_Result")

LOCAL_CONCURRENCY = 2 * (os.cpu_count() or 1)  # more would cost memory without saving time
_BRIEF = 0.2  # seconds for a remote that has left a batch and not answered in time since
# Seconds for any other remote once patience is used up: that of a round, and a shared one. A tenant
# with a hundred remotes that hang must not keep a round for a hundred times as long.
_LEAST, _LEAST_SHARED = 1.0, 5.0
_FIRST_PAUSE, _MAX_PAUSE = 1.0, 300.0  # seconds between attempts on a remote that hangs
_MAX_BESIDE = 64  # attempts beside the batches; over it, the oldest is ended
_JOIN_SECONDS = 10.0  # for threads whose git processes have been ended
_LOOK_SECONDS, _LONGEST_LOOK = 0.02, 0.5  # seconds between two looks at what is under way


class RemoteTimeout(Value):
    """Time for which a batch waits for one remote."""

    seconds: float
    # for a remote that took longer before: twice as long as it took, at most this
    longest: float
    # True: what was waited in vain is not waited again by later batches, nor for a fetch that
    # still receives data
    is_shared: bool = False


ROUND_PATIENCE = RemoteTimeout(3.0, 6.0)
COMMAND_PATIENCE = RemoteTimeout(60.0, 60.0, is_shared=True)


@dataclass(slots=True)
class RemoteTask:
    """Work on one remote by one thread."""

    key: str
    waited: float = 0.0  # seconds for others, before what it is waiting for now
    waiting_since: float | None = None  # by the monotonic clock
    group: int = 0  # process group of the git that it waits for
    mirror: Path | None = None
    received: int = 0  # bytes of the pack that is being fetched, as last seen
    is_done: bool = False
    is_left: bool = False
    is_ended: bool = False

    def measure_wait(self, now: float) -> float:
        """Return the seconds that it has waited for others."""
        since = self.waiting_since
        return self.waited + (now - since if since is not None else 0.0)

    def end(self) -> None:
        """End the git process that it waits for."""
        self.is_ended = True
        if self.group:
            with suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGTERM)


_current: ContextVar[RemoteTask | None] = ContextVar("attempt", default=None)


@contextmanager
def waiting_for_remote(mirror: Path) -> Iterator[None]:
    """Count the block as time that the attempt of this thread waits for others."""
    if (attempt := _current.get()) is None or attempt.waiting_since is not None:
        yield
        return
    attempt.mirror, attempt.waiting_since = mirror, monotonic()
    try:
        yield
    finally:
        since, attempt.waiting_since = attempt.waiting_since, None
        attempt.waited += monotonic() - since
        attempt.group = 0


def note_process(group: int) -> None:
    """Take note of the git process that the attempt of this thread waits for."""
    if (attempt := _current.get()) is not None:
        attempt.group = group
        if attempt.is_ended:  # between two processes
            attempt.end()


@dataclass(slots=True)
class _Suspect:
    """A remote that has left a batch and not answered in time since."""

    error: FanoutError
    pauses: int = 0
    retry_at: float = 0.0  # by the monotonic clock


@dataclass(slots=True)
class _Batch:
    """Work of one call of `run_all`."""

    work: Mapping[str, Any]
    function: Callable[[Any], Any]
    locate: Callable[[str], ErrorLocation]
    is_local: Callable[[str], bool]
    queues: Mapping[bool, "deque[str]"] = field(
        default_factory=lambda: {True: deque(), False: deque()}
    )
    results: dict[str, Any] = field(default_factory=dict)
    outcomes: "SimpleQueue[tuple[str, Any, BaseException | None]]" = field(
        default_factory=SimpleQueue
    )
    running: dict[str, RemoteTask] = field(default_factory=dict)
    threads: list[Thread] = field(default_factory=list)
    spent: float = 0.0  # seconds waited in vain


class RemoteWorkers:
    """Batches of work on remotes, and the attempts that go on beside them. Thread-safe."""

    def __init__(
        self,
        concurrency: int,
        patience: RemoteTimeout | None,
        essential: Collection[str],
        stop: Callable[[], None],
    ) -> None:
        """Begin without any.

        `concurrency`: number of remotes worked on at once. Local ones have workers of their own, at
        most `LOCAL_CONCURRENCY`, so that neither kind delays the other. `patience`: None waits for
        all. `essential`: keys of remotes that all work needs, which are waited for longer. `stop`
        ends running work after an interrupt.
        """
        self._concurrency = {True: min(concurrency, LOCAL_CONCURRENCY), False: concurrency}
        self._patience = patience
        self._essential = essential
        self._stop = stop
        self._report_answer: Callable[[str], object] = lambda _: None
        self._is_ending = False
        self._lock = Lock()
        self._beside: dict[str, RemoteTask] = {}  # the oldest first
        self._suspects: dict[str, _Suspect] = {}
        self._seconds: dict[str, float] = {}  # by remote that took long: its last answer
        self._spent = 0.0  # seconds waited in vain, of a shared patience

    def run_all(
        self,
        work: Mapping[str, _Task],
        function: Callable[[_Task], _Result],
        is_local: Callable[[str], bool],
        locate: Callable[[str], ErrorLocation],
        advance: Callable[[], None],
    ) -> dict[str, _Result | FanoutError]:
        """Apply `function` to each item of work, by remote; return the results or raise errors.

        Items are started in order of `work`. The result of a remote that does not answer in time is
        an error at `locate(key)`.
        """
        batch = _Batch(work, function, locate, is_local)
        try:
            refused = {key: error for key in work if (error := self.find_refusal(key))}
            batch.results |= refused
            for _ in refused:
                advance()
            for key in work:
                if key not in refused:
                    batch.queues[is_local(key)].append(key)
            for local, queue in batch.queues.items():
                for _ in range(min(self._concurrency[local], len(queue))):
                    self._start_worker(batch, local=local)
            while len(batch.results) < len(work):
                try:
                    key, result, raised = batch.outcomes.get(timeout=self._next_look(batch))
                except Empty:
                    results = self._leave_overdue(batch)
                else:
                    if raised is not None:
                        raise raised
                    results = {key: result}
                batch.results |= results
                for _ in results:
                    advance()
        # Also for KeyboardInterrupt: pending work is cancelled and running git processes are ended.
        except BaseException:
            for queue in batch.queues.values():
                queue.clear()
            self._stop()
            for thread in batch.threads:
                thread.join(_JOIN_SECONDS)
            raise
        return {key: batch.results[key] for key in work}

    def find_refusal(self, key: str) -> FanoutError | None:
        """Return the error of a remote that is not to be asked now, or None."""
        with self._lock:
            suspect = self._suspects.get(key)
            if suspect is None or (key not in self._beside and monotonic() >= suspect.retry_at):
                return None
            return suspect.error

    def report_answers(self, report: Callable[[str], object]) -> None:
        """Call `report` with the key of each remote that answers beside the batches."""
        self._report_answer = report

    def hurry(self) -> None:
        """Let no batch wait longer than a round, as the process ends. Safe in a signal handler."""
        self._is_ending = True

    def list_beside(self) -> frozenset[str]:
        """Return the keys of the remotes on which attempts go on beside the batches."""
        with self._lock:
            return frozenset(self._beside)

    def end(self, keys: Collection[str]) -> None:
        """End the attempts on these remotes that go on beside the batches."""
        with self._lock:
            attempts = [it for key, it in self._beside.items() if key in keys]
        for attempt in attempts:
            attempt.end()

    # ---- one batch -----------------------------------------------------------------------------

    def _start_worker(self, batch: _Batch, *, local: bool) -> None:
        # A daemon: a process that ends must not wait for a server.
        thread = Thread(target=self._work, args=(batch, batch.queues[local]), daemon=True)
        batch.threads.append(thread)
        thread.start()

    def _work(self, batch: _Batch, queue: "deque[str]") -> None:
        """Do work of a queue until it is empty, or until one item has left the batch."""
        while True:
            try:
                key = queue.popleft()
            except IndexError:
                return
            attempt = RemoteTask(key)
            batch.running[key] = attempt
            _current.set(attempt)
            result, error = None, None
            try:
                result = batch.function(batch.work[key])
            except BaseException as raised:  # noqa: BLE001 raised again by the caller of the batch
                error = raised
            with self._lock:
                attempt.is_done = True
                batch.running.pop(key, None)
            is_answered = not isinstance(result, FanoutError) or result.reason not in (
                Reason.GIT_TIMEOUT,
                Reason.MIRROR_BUSY,
            )
            self._note_end(attempt, is_answered=is_answered and error is None)
            if attempt.is_left:
                return
            batch.outcomes.put((key, result, error))

    def _next_look(self, batch: _Batch) -> float | None:
        """Return the seconds until an attempt may be overdue; None: never."""
        if self._patience is None:
            return None
        now = monotonic()
        remaining = [
            self._patience_for(it.key, batch) - it.measure_wait(now)
            for it in list(batch.running.values())
        ]
        # At most for as long as a signal may take to be seen.
        return min(max(min(remaining, default=0.0), _LOOK_SECONDS), _LONGEST_LOOK)

    def _patience_for(self, key: str, batch: _Batch) -> float:
        patience = self._patience
        assert patience is not None, "only then attempts are overdue"
        if key in self._suspects:
            return _BRIEF
        if self._is_ending:
            return min(patience.seconds, ROUND_PATIENCE.seconds)
        if key in self._essential:
            return max(patience.seconds, COMMAND_PATIENCE.seconds)
        if patience.is_shared:
            return max(patience.seconds - self._spent, min(_LEAST_SHARED, patience.seconds))
        seconds = max(patience.seconds - batch.spent, min(_LEAST, patience.seconds))
        return min(max(seconds, 2 * self._seconds.get(key, 0.0)), patience.longest)

    def _leave_overdue(self, batch: _Batch) -> dict[str, FanoutError]:
        """Let the attempts that wait for too long go on beside the batch; return their errors."""
        now, errors, waited = monotonic(), dict[str, FanoutError](), 0.0
        for key, attempt in list(batch.running.items()):
            seconds = attempt.measure_wait(now)
            if seconds < self._patience_for(key, batch) or self._is_receiving(attempt, now):
                continue
            with self._lock:
                if attempt.is_done:
                    continue
                attempt.is_left = True
                if (previous := self._suspects.get(key)) is None:
                    suspect = _Suspect(
                        Unavailable(
                            f"the server has not answered within {seconds:.0f} s; nothing else"
                            " waits for it",
                            reason=str(Reason.REMOTE_UNAVAILABLE),
                            remedy="check that the server responds; fanout asks it again by"
                            " itself, later and later",
                            where=batch.locate(key),
                        )
                    )
                else:
                    # With the same words, which do not change with each attempt.
                    suspect = _Suspect(previous.error, previous.pauses + 1)
                self._suspects[key] = suspect
                self._beside[key] = attempt
                del batch.running[key]
                oldest = list(self._beside.values())[: max(len(self._beside) - _MAX_BESIDE, 0)]
            for it in oldest:
                it.end()
            waited = max(waited, seconds)
            errors[key] = suspect.error
            local = batch.is_local(key)
            if batch.queues[local]:
                self._start_worker(batch, local=local)
        self._spent += waited
        batch.spent += waited
        return errors

    def _is_receiving(self, attempt: RemoteTask, now: float) -> bool:
        """Return whether a fetch received data since the last look, for a shared patience.

        A first fetch of a large repository takes minutes, and a command that gives it up begins
        anew the next time. A loop has it go on beside its rounds.
        """
        if self._patience is None or not self._patience.is_shared or attempt.mirror is None:
            return False
        received = 0
        with suppress(OSError):
            for entry in os.scandir(attempt.mirror / "objects" / "pack"):
                received += entry.stat().st_size if entry.name.startswith("tmp_pack") else 0
        grown, attempt.received = received > attempt.received, received
        if grown and attempt.waiting_since is not None:
            attempt.waited, attempt.waiting_since = 0.0, now
        return grown

    # ---- beside the batches --------------------------------------------------------------------

    def _note_end(self, attempt: RemoteTask, *, is_answered: bool) -> None:
        """Take note of how an attempt ended; an answer in time clears the remote."""
        key, seconds = attempt.key, attempt.waited
        is_answered = is_answered and not attempt.is_ended
        with self._lock:
            if attempt.is_left:
                self._beside.pop(key, None)
            suspect = self._suspects.get(key)
            patience = self._patience
            if is_answered and seconds:
                if patience is not None and seconds > patience.seconds / 2:
                    self._seconds[key] = seconds
                else:
                    self._seconds.pop(key, None)
                if patience is None or seconds <= patience.longest:
                    self._suspects.pop(key, None)
            if suspect is not None and not is_answered:
                pause = min(_FIRST_PAUSE * 2.0 ** min(suspect.pauses, 30), _MAX_PAUSE)
                suspect.retry_at = monotonic() + pause
        if attempt.is_left and is_answered:
            self._report_answer(key)
