"""Where the time of a pass goes, by phase: told with -v, and on the page docs/performance.md."""

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock

from fanout.values import frozen

PHASES = (
    "files",  # reading what is declared
    "names",  # targets and their templates
    "records",  # what people and machines said, read and written
    "listings",  # of repositories, and fetches
    "views",  # what the planner needs of each mirror
    "judging",  # of policies: evidence, gates, steps; but for the four below
    "opening",  # what is published and drafted of each variant
    "choosing",  # a revision for each variant, and digests of its inputs
    "rendering",
    "merging",  # of renderings with what people changed
    "changes",  # the commits that are to be made of what was decided
    "writing",  # objects and pushes of all repositories
    "else",  # opening, closing, and between the phases
)


@frozen
class Spent:
    """Seconds on the clock, of our own processor time, and of that of children that ended."""

    clock: float = 0.0
    own: float = 0.0
    children: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.clock + other.clock, self.own + other.own, self.children + other.children)

    def __sub__(self, other: "Spent") -> "Spent":
        return self + Spent(-other.clock, -other.own, -other.children)


class Times:
    """Charges every moment to one phase: the innermost that runs, "else" where none does.

    One thread runs the pass and enters phases; what its threads do is told apart by `work`.
    """

    def __init__(self, present: Callable[[], Spent] | None = None) -> None:
        """The clock runs from now on; `present` reads it."""
        self._lock = Lock()
        self._present = present or spent_so_far
        self.reset()

    def reset(self) -> None:
        """Begin a new pass; no phase may be running."""
        self._running = ["else"]
        self._spent = dict.fromkeys(PHASES, Spent())
        self._work: dict[tuple[str, str], float] = {}
        self._charged = self._present()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Charge to this phase, until its end, what no phase within it is charged with.

        An unknown name is a KeyError.
        """
        self._charge()
        self._running.append(name)
        try:
            yield
        finally:
            self._charge()
            self._running.pop()

    @contextmanager
    def work(self, what: str) -> Iterator[None]:
        """Count seconds of one thread of the phase that runs; threads run side by side."""
        key = self._running[-1], what
        begin = time.perf_counter()
        try:
            yield
        finally:
            seconds = time.perf_counter() - begin
            with self._lock:
                self._work[key] = self._work.get(key, 0.0) + seconds

    def read(self) -> Mapping[str, Spent]:
        """What each phase was charged with so far."""
        self._charge()
        return dict(self._spent)

    def threads(self, phase: str) -> Mapping[str, float]:
        """Seconds that the threads of a phase spent, by what they did."""
        with self._lock:
            return {what: it for (name, what), it in self._work.items() if name == phase}

    def _charge(self) -> None:
        present = self._present()
        name = self._running[-1]
        self._spent[name] += present - self._charged
        self._charged = present


def spent_so_far() -> Spent:
    """The clock, and the processor time of this process and its children since they began."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    children = ended.ru_utime + ended.ru_stime
    return Spent(time.perf_counter(), time.process_time(), children)
