"""The cases, in the order in which one leads to the next, and the yardsticks between them."""

import shutil
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

from benchmarks import bare_git, naive, served
from benchmarks.inputs import FEW, Size
from benchmarks.product import Installation, Sweep


class Case(StrEnum):
    """Cases of the sweep benchmark, each in a fresh process unless its text states otherwise."""

    FIRST = "first"
    COLD = "cold"
    FULL = "full"
    AFTER = "nothing-first"
    NOTHING = "nothing"
    RUNNING = "nothing-running"
    EVERYWHERE = "changed-everywhere"
    ONE = "changed-in-one"
    ONE_RUNNING = "changed-in-one-running"
    BUMP = "bump"
    PUBLISH = "publish"
    NEXT = "bump-published"
    EDITED = "bump-edited"
    PUBLISH_ONE = "publish-in-one"
    STAGES_ONE = "stage-drafts-in-one"
    BUMP_ONE = "bump-in-one"
    HTTP = "full-http"
    SLOW = "full-http-30ms"


IN_ONE = (Case.PUBLISH_ONE, Case.STAGES_ONE, Case.BUMP_ONE)  # all targets in one repository
_AFTER_PUBLISH = (Case.NEXT, Case.EDITED)
DELAY = 0.03  # seconds that are added to each request of the slow remote
SERVED = 1_000  # targets, at most, of the cases over HTTP


@dataclass(slots=True)
class Measured:
    """A case at one size, over all repetitions."""

    case: Case
    size: Size
    variants: int  # that are written or published
    touched: int  # repositories that are pushed to
    merges: int = 0
    seconds: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)  # of as many drafts
    bare: list[float] = field(default_factory=list)  # of as many drafts
    listings: list[float] = field(default_factory=list)  # of all repositories, by git alone
    sweeps: list[Sweep] = field(default_factory=list)

    @property
    def time(self) -> float:
        """The median of the seconds."""
        return median(self.seconds)

    @property
    def peak(self) -> int:
        """The most memory in any repetition."""
        return max(sweep.peak for sweep in self.sweeps)

    def add(self, sweep: Sweep) -> None:
        """Take a sweep's numbers; raises RuntimeError when it did not do what it was to do.

        A publication is two actions for each variant: released, merged. So is a package in the
        draft of a stage: released, written.
        """
        due = (2 if self.case in (Case.PUBLISH, *IN_ONE) else 1) * self.variants
        if sweep.done != due:
            raise RuntimeError(f"{self.case}: {sweep.done} actions done, not {due}")
        self.seconds.append(sweep.seconds)
        self.sweeps.append(sweep)


def measure(place: Path, size: Size, chosen: Collection[Case], repeat: int) -> Iterator[Measured]:
    """All chosen cases at one size; raises RuntimeError when one does not do what it is to do."""
    arena = _Arena(place, size, chosen)
    for number in range(repeat):
        print(f"{size}: {number + 1} of {repeat}", file=sys.stderr)
        arena.repeat()
    yield from arena.measured.values()
    shutil.rmtree(place)
    if size.files != FEW:
        return
    if {Case.HTTP, Case.SLOW} & set(chosen) and size.targets <= SERVED:
        yield from _over_http(place, size, repeat)
    in_one = Size(size.targets, 1, size.files)
    if Case.PUBLISH_ONE in chosen:
        yield _publish_in_one(place, in_one, repeat)
    if {Case.STAGES_ONE, Case.BUMP_ONE} & set(chosen):
        stages = _stages_in_one(place, in_one, repeat)
        yield from (found for found in stages if found.case in chosen)


def _publish_in_one(place: Path, size: Size, repeat: int) -> Measured:
    found = Measured(Case.PUBLISH_ONE, size, size.targets, 1)
    installation = Installation(place, size)
    for _ in range(repeat):
        installation.reset(mirrors=True)
        installation.sweep()
        found.add(installation.sweep(publish=True))
    shutil.rmtree(place)
    return found


def _stages_in_one(place: Path, size: Size, repeat: int) -> tuple[Measured, Measured]:
    """Return the first drafts of stages, and those of the next revision after all is published."""
    first, bump = (Measured(case, size, size.targets, 1) for case in IN_ONE[1:])
    installation = Installation(place, size, drafts="Stage")
    for _ in range(repeat):
        installation.reset(mirrors=True)
        first.add(installation.sweep(publish=True))
        installation.sweep(publish=True)
        installation.sweep(publish=True)  # puts on record that the stages have passed
        installation.release()
        bump.add(installation.sweep(publish=True))
    shutil.rmtree(place)
    return first, bump


def _over_http(place: Path, size: Size, repeat: int) -> Iterator[Measured]:
    """The full fan-out to remotes that answer at once, and to slow ones, in turns."""
    quick, slow = (
        Measured(case, size, size.targets, size.repositories) for case in (Case.HTTP, Case.SLOW)
    )
    with (
        served.over_http(place / "quick", 0) as near,
        served.over_http(place / "slow", DELAY) as far,
    ):
        pairs = [
            (quick, Installation(place / "quick", size, near)),
            (slow, Installation(place / "slow", size, far)),
        ]
        for _ in range(repeat):
            for found, installation in pairs:
                installation.reset(mirrors=True)
                found.add(installation.sweep())
    shutil.rmtree(place)
    yield from (quick, slow)


class _Arena:
    """One size: fanout's installation, and a place for the yardsticks."""

    def __init__(self, place: Path, size: Size, chosen: Collection[Case]) -> None:
        self._fanout = Installation(place / "fanout", size)
        self._place, self._size = place, size
        everything, some, one = size.targets, size.changed, len(size.in_one())
        repositories = min(size.repositories, everything)
        everywhere = (everything, repositories)
        shapes = {
            Case.FIRST: everywhere,
            Case.COLD: everywhere,
            Case.FULL: everywhere,
            Case.AFTER: (0, 0),
            Case.NOTHING: (0, 0),
            Case.RUNNING: (0, 0),
            Case.EVERYWHERE: (some, min(some, repositories)),
            Case.ONE: (one, 1),
            Case.ONE_RUNNING: (one, 1),
            Case.BUMP: everywhere,
            Case.PUBLISH: everywhere,
            Case.NEXT: everywhere,
            Case.EDITED: (*everywhere, len(size.edited())),
        }
        self.measured = {
            case: Measured(case, size, *shape) for case, shape in shapes.items() if case in chosen
        }

    def repeat(self) -> None:
        """Fan out, measure the yardsticks on what came of it, then change one thing at a time."""
        if Case.FIRST in self.measured:
            self._fanout.reset(mirrors=False)
            self._sweep(Case.FIRST)
        self._from_the_beginning(Case.COLD)
        self._from_the_beginning(Case.FULL)
        if Case.FULL not in self.measured:
            self._fanout.reset(mirrors=True)
            self._fanout.sweep()
        self._yardsticks()
        self._nothing()
        self._second_pass(Case.RUNNING)
        if Case.EVERYWHERE in self.measured:
            self._fanout.change(range(self._size.changed), "40d")
            self._sweep(Case.EVERYWHERE)
        if Case.ONE in self.measured:
            self._fanout.change(self._size.in_one(), "50d")
            self._sweep(Case.ONE)
        self._second_pass(Case.ONE_RUNNING, changed=True)
        if Case.BUMP in self.measured:
            self._fanout.release()
            self._sweep(Case.BUMP)
        self._publications()

    def _nothing(self) -> None:
        """The first sweep after one that wrote judges everything; the next ones need not."""
        if Case.AFTER in self.measured:
            self._sweep(Case.AFTER)
        if Case.NOTHING in self.measured:
            if Case.AFTER not in self.measured:
                self._fanout.sweep()
            self._sweep(Case.NOTHING)

    def _publications(self) -> None:
        """Publish, then let upstream move on: what nobody has edited, and what somebody has."""
        if not {Case.PUBLISH, *_AFTER_PUBLISH} & set(self.measured):
            return
        if Case.PUBLISH in self.measured:
            self._sweep(Case.PUBLISH, publish=True)
        else:
            self._fanout.sweep(publish=True)
        for case in _AFTER_PUBLISH:
            if case in self.measured:
                # publishes what the case before drafted, and puts on record that stages have passed
                self._fanout.sweep(publish=True)
                self._fanout.sweep(publish=True)
                if case is Case.EDITED:
                    self._fanout.edit()
                self._fanout.release()
                self._sweep(case)

    def _from_the_beginning(self, case: Case) -> None:
        if case in self.measured:
            self._fanout.reset(mirrors=True, cold=case is Case.COLD)
            self._sweep(case)

    def _sweep(self, case: Case, *, publish: bool = False) -> None:
        self.measured[case].add(self._fanout.sweep(publish=publish))

    def _second_pass(self, case: Case, *, changed: bool = False) -> None:
        if case in self.measured:
            self.measured[case].add(self._fanout.second_pass(changed=changed))

    def _yardsticks(self) -> None:
        size = self._size
        per_target = naive.run(self._fanout.seed, self._place / "naive", size.files)
        listings = bare_git.listings(self._fanout.repositories)
        drafts = {Case.FULL: range(size.targets)}
        if Case.EVERYWHERE in self.measured:
            drafts[Case.EVERYWHERE] = range(size.changed)
        one = {Case.ONE, Case.ONE_RUNNING} & set(self.measured)
        bare = {case: self._bare(targets) for case, targets in drafts.items()}
        bare |= dict.fromkeys(one, self._bare(size.in_one()) if one else 0.0)
        for case, found in self.measured.items():
            found.naive.append(per_target * (found.variants or size.targets))
            found.bare.append(bare.get(case, bare[Case.FULL]))
            found.listings.append(listings)

    def _bare(self, targets: range) -> float:
        streams, remotes = self._place / "streams", self._fanout.remotes
        by_repository: dict[int, list[int]] = {}
        for target in targets:
            by_repository.setdefault(self._size.repository(target), []).append(target)
        bare_git.write_streams(remotes, streams, by_repository)
        return bare_git.run(self._fanout.seed, self._place / "bare", streams, remotes)
