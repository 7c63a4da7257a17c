"""Metrics: counts of events since the start, and counts and times of the phases of a pass.

Those of a pass are shown with -v and described in docs/reference/performance.md; benchmarks and
tests check them.
"""

import resource
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum
from threading import Lock
from time import perf_counter
from typing import Protocol

from fanout.errors import FanoutError
from fanout.values import Value

SUCCESS = "success"

Labels = tuple[str, ...]


class EventName(StrEnum):
    """Name of a kind of event; the comments are its labels."""

    FORGE_CALL = "forge call"  # host, method, code
    FORGE_SECONDS = "forge seconds"  # host
    GIT_OPERATION = "git operation"  # operation, result
    GIT_SECONDS = "git seconds"  # operation
    HOOK = "hook"  # outcome
    NOTIFICATION = "notification"  # name of the address, result
    SANDBOX_KILL = "sandbox kill"  # cause


class EventCounters:
    """Thread-safe counts of events and their seconds since the process started, by name and labels.

    Any layer counts here; `serve` shows the counts as metrics. Labels are words of closed lists or
    names of the configuration, never those of variants: each distinct pair is kept for ever.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: defaultdict[EventName, dict[Labels, float]] = defaultdict(dict)

    def add(self, name: EventName, *labels: str, number: float = 1) -> None:
        """Increase a count."""
        with self._lock:
            counts = self._counts[name]
            counts[labels] = counts.get(labels, 0) + number

    def read(self, name: EventName) -> Mapping[Labels, float]:
        """Return the counts of one name by labels."""
        with self._lock:
            return dict(self._counts[name])

    @contextmanager
    def operation(self, count: EventName, seconds: EventName, operation: str) -> Iterator[None]:
        """Count the block with its result, `success` or the reason of its error, and its time."""
        started, result = perf_counter(), "error"
        try:
            yield
            result = SUCCESS
        except FanoutError as error:
            result = error.reason or result
            raise
        finally:
            self.add(count, operation, result)
            self.add(seconds, operation, number=perf_counter() - started)


PHASES = (
    "files",  # reading declared objects
    "names",  # targets and their templates
    "records",  # of people and machines, read and written
    "listings",  # of repositories, and fetches
    "views",  # observation of each mirror
    "judging",  # evaluation of policies, except the four phases below
    "opening",  # observation of variants: published and drafted state of each variant
    "choosing",  # a revision for each variant, and digests of its inputs
    "rendering",
    "merging",  # of renderings with downstream edits
    "changes",  # planned commits
    "writing",  # objects and pushes of all repositories
    "requests",  # pull requests, after the pushes
    "else",  # opening, closing, and between the phases
)


class PhaseTime(Value):
    """Seconds of wall clock, of own processor time, and of that of ended child processes."""

    clock: float = 0.0
    process: float = 0.0
    children: float = 0.0

    def __add__(self, other: "PhaseTime") -> "PhaseTime":
        return PhaseTime(
            self.clock + other.clock, self.process + other.process, self.children + other.children
        )

    def __sub__(self, other: "PhaseTime") -> "PhaseTime":
        return self + PhaseTime(-other.clock, -other.process, -other.children)


class PhaseTimes:
    """Time per phase: each moment is charged to the innermost running phase or "else".

    One thread runs the pass and enters phases; the work of its threads is counted by `work`.
    """

    def __init__(self, read_clocks: Callable[[], PhaseTime] | None = None) -> None:
        """Start measuring; `read_clocks` returns the present readings of all clocks."""
        self._lock = Lock()
        self._read_clocks = read_clocks or read_process_clocks
        self.reset()

    def reset(self) -> None:
        """Begin a new pass; no phase may be running."""
        self._running = ["else"]
        self._spent = dict.fromkeys(PHASES, PhaseTime())
        self._work: dict[tuple[str, str], float] = {}
        self._last_reading = self._read_clocks()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge time to this phase, without phases inside it. Raises KeyError if unknown."""
        self._charge()
        self._running.append(name)
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    @contextmanager
    def work(self, activity: str) -> Iterator[None]:
        """Add the duration of the block, in any thread, to an activity of the running phase."""
        key = self._running[-1], activity
        started = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - started
            with self._lock:
                self._work[key] = self._work.get(key, 0.0) + seconds

    def read(self) -> Mapping[str, PhaseTime]:
        """Return the time charged to each phase so far."""
        self._charge()
        return dict(self._spent)

    def threads(self, phase: str) -> Mapping[str, float]:
        """Return the seconds of the threads of a phase, by activity."""
        with self._lock:
            return {activity: it for (name, activity), it in self._work.items() if name == phase}

    def _charge(self) -> None:
        reading = self._read_clocks()
        name = self._running[-1]
        # Charged at each change of phase, so the sum of all phases is the duration of the pass.
        self._spent[name] += reading - self._last_reading
        self._last_reading = reading


def read_process_clocks() -> PhaseTime:
    """Read the wall clock and the processor time of this process and its ended children."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return PhaseTime(time.perf_counter(), time.process_time(), ended.ru_utime + ended.ru_stime)


COUNTER_NAMES = (
    "git_processes",  # without git's own child processes
    "listings",
    "fetches",
    "pushes",
    "refs_pushed",
    "objects_written",
    "renders",
    "merges",  # of renderings with downstream edits
    "programs",  # runs of external functions
    "scripts",  # runs of packages' scripts in Starlark
    "evaluations",  # pairs of expression and row evaluated by a worker
    "record_writes",
    "judged",  # evaluated policies; others come from a memo
)


class Counters:
    """Thread-safe counters, each starting at 0; `times` has the time per phase.

    `events` has counts with labels, which are not about the costs of one pass.
    """

    def __init__(self) -> None:
        self.times = PhaseTimes()
        self.events = EventCounters()
        self._lock = Lock()
        self._counts = dict.fromkeys(COUNTER_NAMES, 0)

    def add(self, name: str, number: int = 1) -> None:
        """Increase a counter. Raises KeyError for an unknown name."""
        with self._lock:
            self._counts[name] += number

    def read(self) -> Mapping[str, int]:
        """Return all counters by name."""
        with self._lock:
            return dict(self._counts)

    def reset(self) -> None:
        """Reset all counters and times for a new pass, except `events`."""
        with self._lock:
            self._counts = dict.fromkeys(COUNTER_NAMES, 0)
        self.times.reset()


class ProgressReporter(Protocol):
    """Receiver of the progress of long tasks."""

    def task(self, name: str, total: int) -> AbstractContextManager[Callable[[], None]]:
        """Begin a task of `total` steps; the yielded function is called after each step.

        It may be called from any thread.
        """


class NoProgress:
    """Receiver that shows nothing."""

    @contextmanager
    def task(self, name: str, total: int) -> Iterator[Callable[[], None]]:  # noqa: ARG002
        """Yield a function without effect."""
        yield lambda: None
