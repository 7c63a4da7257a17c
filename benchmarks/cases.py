"""The cases, in the order in which one leads to the next, and the yardsticks between them."""

import shutil
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

from benchmarks import bare_git, naive
from benchmarks.inputs import FEW, Size
from benchmarks.product import Installation, Sweep


class Case(StrEnum):
    """What is swept. Each begins with a fresh process but for the one that says otherwise."""

    FIRST = "first"
    FULL = "full"
    NOTHING = "nothing"
    RUNNING = "nothing-running"
    EVERYWHERE = "changed-everywhere"
    ONE = "changed-in-one"
    BUMP = "bump"
    PUBLISH = "publish"
    NEXT = "bump-published"
    PUBLISH_ONE = "publish-in-one"


@dataclass(slots=True)
class Measured:
    """A case at one size, over all repetitions."""

    case: Case
    size: Size
    variants: int  # that are written or published
    touched: int  # repositories that are pushed to
    seconds: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)  # of as many drafts
    bare: list[float] = field(default_factory=list)  # of as many drafts
    sweeps: list[Sweep] = field(default_factory=list)

    @property
    def time(self) -> float:
        """The median of the seconds."""
        return median(self.seconds)

    @property
    def peak(self) -> int:
        """The most memory in any repetition."""
        return max(sweep.peak for sweep in self.sweeps)


def measure(place: Path, size: Size, chosen: Collection[Case], repeat: int) -> Iterator[Measured]:
    """All chosen cases at one size; raises RuntimeError when one does not do what it is to do."""
    arena = _Arena(place, size, chosen)
    for number in range(repeat):
        print(f"{size}: {number + 1} of {repeat}", file=sys.stderr)
        arena.repeat()
    yield from arena.measured.values()
    shutil.rmtree(place)
    if Case.PUBLISH_ONE in chosen and size.files == FEW:
        yield _publish_in_one(place, Size(size.targets, 1, size.files), repeat)


def _publish_in_one(place: Path, size: Size, repeat: int) -> Measured:
    found = Measured(Case.PUBLISH_ONE, size, size.targets, 1)
    installation = Installation(place, size)
    for _ in range(repeat):
        installation.reset(mirrors=True)
        installation.sweep()
        _add(found, installation.sweep(publish=True), 2)
    shutil.rmtree(place)
    return found


class _Arena:
    """One size: fanout's installation, and a place for the yardsticks."""

    def __init__(self, place: Path, size: Size, chosen: Collection[Case]) -> None:
        self._fanout = Installation(place / "fanout", size)
        self._place, self._size, self._chosen = place, size, chosen
        everything, some, one = size.targets, size.changed, len(size.in_one())
        repositories = min(size.repositories, everything)
        shapes = {
            Case.FIRST: (everything, repositories),
            Case.FULL: (everything, repositories),
            Case.NOTHING: (0, 0),
            Case.RUNNING: (0, 0),
            Case.EVERYWHERE: (some, min(some, repositories)),
            Case.ONE: (one, 1),
            Case.BUMP: (everything, repositories),
            Case.PUBLISH: (everything, repositories),
            Case.NEXT: (everything, repositories),
        }
        self.measured = {
            case: Measured(case, size, *shape) for case, shape in shapes.items() if case in chosen
        }

    def repeat(self) -> None:
        """Fan out, measure the yardsticks on what came of it, then change one thing at a time."""
        if Case.FIRST in self._chosen:
            self._fanout.reset(mirrors=False)
            self._sweep(Case.FIRST)
        self._full()
        self._yardsticks()
        self._sweep(Case.NOTHING)
        self._sweep(Case.RUNNING, running=True)
        if Case.EVERYWHERE in self._chosen:
            self._fanout.change(range(self._size.changed), "40d")
            self._sweep(Case.EVERYWHERE)
        if Case.ONE in self._chosen:
            self._fanout.change(self._size.in_one(), "50d")
            self._sweep(Case.ONE)
        if Case.BUMP in self._chosen:
            self._fanout.release()
            self._sweep(Case.BUMP)
        self._sweep(Case.PUBLISH, publish=True)
        if {Case.PUBLISH, Case.NEXT} <= set(self._chosen):
            self._fanout.sweep(publish=True)  # puts on record that the stages have passed
            self._fanout.release()
            self._sweep(Case.NEXT)

    def _full(self) -> None:
        """The time is the command's; counts and memory are of a second one that tells them."""
        found = self.measured.get(Case.FULL)
        self._fanout.reset(mirrors=True)
        if found is None:
            self._fanout.sweep()
            return
        found.seconds.append(self._fanout.command())
        if not found.sweeps:
            self._fanout.reset(mirrors=True)
            _add(found, self._fanout.sweep(), 1, timed=False)

    def _sweep(self, case: Case, *, publish: bool = False, running: bool = False) -> None:
        if case in self._chosen:
            sweep = self._fanout.sweep(publish=publish, running=running)
            _add(self.measured[case], sweep, 2 if publish else 1)

    def _yardsticks(self) -> None:
        size = self._size
        per_target = naive.run(self._fanout.seed, self._place / "naive", size.files)
        drafts = {
            Case.FULL: range(size.targets),
            Case.EVERYWHERE: range(size.changed),
            Case.ONE: size.in_one(),
        }
        bare = {case: self._bare(targets) for case, targets in drafts.items()}
        for case, found in self.measured.items():
            found.naive.append(per_target * (found.variants or size.targets))
            found.bare.append(bare.get(case, bare[Case.FULL]))

    def _bare(self, targets: range) -> float:
        streams, remotes = self._place / "streams", self._fanout.remotes
        by_repository: dict[int, list[int]] = {}
        for target in targets:
            by_repository.setdefault(self._size.repository(target), []).append(target)
        bare_git.write_streams(remotes, streams, by_repository)
        return bare_git.run(self._fanout.seed, self._place / "bare", streams, remotes)


def _add(found: Measured, sweep: Sweep, actions: int, *, timed: bool = True) -> None:
    """Take a sweep's numbers. A publication is two actions for each variant: released, merged."""
    if sweep.done != actions * found.variants:
        raise RuntimeError(
            f"{found.case}: {sweep.done} actions done, not {actions * found.variants}"
        )
    if timed:
        found.seconds.append(sweep.seconds)
    found.sweeps.append(sweep)
