"""What a pass cost: counts, to which the benchmark and the tests hold fanout, and times."""

from collections.abc import Mapping
from threading import Lock

from fanout.telemetry.times import Times

NAMES = (
    "git_processes",  # started by us; git's own children are not counted
    "listings",
    "fetches",
    "pushes",
    "refs_pushed",
    "objects_written",
    "renders",
    "merges",  # of renderings with what people changed
    "programs",  # runs of functions that are not in process
    "scripts",  # runs of packages' scripts in Starlark
    "evaluations",  # expression x row actually evaluated in a child process
    "record_writes",
    "judged",  # policies; the others are as they were
)


class Counters:
    """Thread-safe counts, each from 0 upward; `times` says where the time went."""

    def __init__(self) -> None:
        self.times = Times()
        self._lock = Lock()
        self._counts = dict.fromkeys(NAMES, 0)

    def add(self, name: str, number: int = 1) -> None:
        """Count; an unknown name is a KeyError."""
        with self._lock:
            self._counts[name] += number

    def read(self) -> Mapping[str, int]:
        """All counts as they stand."""
        with self._lock:
            return dict(self._counts)

    def reset(self) -> None:
        """Begin a new pass."""
        with self._lock:
            self._counts = dict.fromkeys(NAMES, 0)
        self.times.reset()
