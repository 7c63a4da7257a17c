"""Counts of events and their seconds since the process started, by name and labels.

Any layer counts here; `serve` shows the counts as metrics. Labels are words of closed lists or
names of the configuration, never those of variants: each distinct pair is kept for ever.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from threading import Lock
from time import perf_counter

from fanout.errors import FanoutError

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
    """Thread-safe counts."""

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
