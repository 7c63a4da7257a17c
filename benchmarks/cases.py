"""Cases of the sweep benchmark in the order of their runs, and the yardsticks of each."""

import shutil
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from statistics import median

from benchmarks import bare_git, naive
from benchmarks.http_server import serve_over_http
from benchmarks.inputs import FEW, Size
from benchmarks.installation import Installation, Sweep


class Case(StrEnum):
    """Cases; `benchmarks.report.CASE_DESCRIPTIONS` describes each."""

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
_DELAY = 0.03  # seconds added to each request to the slow remotes
_MOST_OVER_HTTP = 1_000  # targets of the cases over HTTP


@dataclass(slots=True)
class Measured:
    """Measurements of a case at one size, over all repetitions."""

    case: Case
    size: Size
    variants: int  # written or published variants
    touched: int  # repositories that receive a push
    merges: int = 0
    seconds: list[float] = field(default_factory=list)
    naive: list[float] = field(default_factory=list)  # seconds for as many drafts
    bare: list[float] = field(default_factory=list)  # seconds for as many drafts
    listings: list[float] = field(default_factory=list)  # seconds for all repositories
    sweeps: list[Sweep] = field(default_factory=list)

    @property
    def time(self) -> float:
        """Median seconds of a sweep."""
        return median(self.seconds)

    @property
    def peak(self) -> int:
        """Peak memory of all repetitions, in bytes."""
        return max(sweep.peak for sweep in self.sweeps)

    def add(self, sweep: Sweep) -> None:
        """Add the numbers of a sweep. Raises RuntimeError if its number of actions is unexpected.

        A publication has two actions for each variant: released, merged. A package in the draft of
        a stage also has two: released, written.
        """
        expected = (2 if self.case in (Case.PUBLISH, *IN_ONE) else 1) * self.variants
        if sweep.actions != expected:
            raise RuntimeError(f"{self.case}: {sweep.actions} actions done, not {expected}")
        self.seconds.append(sweep.seconds)
        self.sweeps.append(sweep)


def measure(
    directory: Path, size: Size, chosen: Collection[Case], repeat: int
) -> Iterator[Measured]:
    """Measure the chosen cases at one size. Raises RuntimeError if a sweep did something else."""
    sequence = _CaseSequence(directory, size, chosen)
    for number in range(repeat):
        print(f"{size}: {number + 1} of {repeat}", file=sys.stderr)
        sequence.run()
    yield from sequence.measured.values()
    shutil.rmtree(directory)
    if size.files != FEW:
        return
    if {Case.HTTP, Case.SLOW} & set(chosen) and size.targets <= _MOST_OVER_HTTP:
        yield from _measure_over_http(directory, size, repeat)
    in_one = Size(size.targets, 1, size.files)
    if Case.PUBLISH_ONE in chosen:
        yield _measure_publish_in_one(directory, in_one, repeat)
    if {Case.STAGES_ONE, Case.BUMP_ONE} & set(chosen):
        stages = _measure_stages_in_one(directory, in_one, repeat)
        yield from (measured for measured in stages if measured.case in chosen)


def _measure_publish_in_one(directory: Path, size: Size, repeat: int) -> Measured:
    measured = Measured(Case.PUBLISH_ONE, size, size.targets, 1)
    installation = Installation(directory, size)
    for _ in range(repeat):
        installation.reset(mirrors=True)
        installation.sweep()
        measured.add(installation.sweep(publish=True))
    shutil.rmtree(directory)
    return measured


def _measure_stages_in_one(directory: Path, size: Size, repeat: int) -> tuple[Measured, Measured]:
    """Measure the first drafts of stages, and those of the next revision after publication."""
    first, bump = (Measured(case, size, size.targets, 1) for case in IN_ONE[1:])
    installation = Installation(directory, size, draft_per="Stage")
    for _ in range(repeat):
        installation.reset(mirrors=True)
        first.add(installation.sweep(publish=True))
        installation.sweep(publish=True)
        installation.sweep(publish=True)  # records that the stages have passed
        installation.release()
        bump.add(installation.sweep(publish=True))
    shutil.rmtree(directory)
    return first, bump


def _measure_over_http(directory: Path, size: Size, repeat: int) -> Iterator[Measured]:
    """Measure the full fan-out to remotes with and without a delay, in turns."""
    quick, slow = (
        Measured(case, size, size.targets, size.repositories) for case in (Case.HTTP, Case.SLOW)
    )
    with (
        serve_over_http(directory / "quick", 0) as near,
        serve_over_http(directory / "slow", _DELAY) as far,
    ):
        pairs = [
            (quick, Installation(directory / "quick", size, near)),
            (slow, Installation(directory / "slow", size, far)),
        ]
        for _ in range(repeat):
            for measured, installation in pairs:
                installation.reset(mirrors=True)
                measured.add(installation.sweep())
    shutil.rmtree(directory)
    yield from (quick, slow)


class _CaseSequence:
    """Cases at one size, each of which begins with the state that the previous one left."""

    def __init__(self, directory: Path, size: Size, chosen: Collection[Case]) -> None:
        self._fanout = Installation(directory / "fanout", size)
        self._directory, self._size = directory, size
        changed, in_one = size.changed, len(size.in_one())
        repositories = min(size.repositories, size.targets)
        everywhere = (size.targets, repositories)
        shapes = {
            Case.FIRST: everywhere,
            Case.COLD: everywhere,
            Case.FULL: everywhere,
            Case.AFTER: (0, 0),
            Case.NOTHING: (0, 0),
            Case.RUNNING: (0, 0),
            Case.EVERYWHERE: (changed, min(changed, repositories)),
            Case.ONE: (in_one, 1),
            Case.ONE_RUNNING: (in_one, 1),
            Case.BUMP: everywhere,
            Case.PUBLISH: everywhere,
            Case.NEXT: everywhere,
            Case.EDITED: (*everywhere, len(size.edited())),
        }
        self.measured = {
            case: Measured(case, size, *shape) for case, shape in shapes.items() if case in chosen
        }

    def run(self) -> None:
        """Fan out, measure the yardsticks on the same drafts, then make one change per case."""
        if Case.FIRST in self.measured:
            self._fanout.reset(mirrors=False)
            self._sweep(Case.FIRST)
        self._sweep_all(Case.COLD)
        self._sweep_all(Case.FULL)
        if Case.FULL not in self.measured:
            self._fanout.reset(mirrors=True)
            self._fanout.sweep()
        self._measure_yardsticks()
        self._sweep_unchanged()
        self._measure_second_pass(Case.RUNNING)
        if Case.EVERYWHERE in self.measured:
            self._fanout.change(range(self._size.changed), "40d")
            self._sweep(Case.EVERYWHERE)
        if Case.ONE in self.measured:
            self._fanout.change(self._size.in_one(), "50d")
            self._sweep(Case.ONE)
        self._measure_second_pass(Case.ONE_RUNNING, changed=True)
        if Case.BUMP in self.measured:
            self._fanout.release()
            self._sweep(Case.BUMP)
        self._publish()

    def _sweep_unchanged(self) -> None:
        """Sweep twice without a change: only the first one evaluates everything."""
        if Case.AFTER in self.measured:
            self._sweep(Case.AFTER)
        if Case.NOTHING in self.measured:
            if Case.AFTER not in self.measured:
                self._fanout.sweep()
            self._sweep(Case.NOTHING)

    def _publish(self) -> None:
        """Publish, then draft new upstream revisions of unedited and of edited packages."""
        if not {Case.PUBLISH, *_AFTER_PUBLISH} & set(self.measured):
            return
        if Case.PUBLISH in self.measured:
            self._sweep(Case.PUBLISH, publish=True)
        else:
            self._fanout.sweep(publish=True)
        for case in _AFTER_PUBLISH:
            if case in self.measured:
                # The first publishes the drafts, the second records that the stages have passed.
                self._fanout.sweep(publish=True)
                self._fanout.sweep(publish=True)
                if case is Case.EDITED:
                    self._fanout.edit()
                self._fanout.release()
                self._sweep(case)

    def _sweep_all(self, case: Case) -> None:
        if case in self.measured:
            self._fanout.reset(mirrors=True, cold=case is Case.COLD)
            self._sweep(case)

    def _sweep(self, case: Case, *, publish: bool = False) -> None:
        self.measured[case].add(self._fanout.sweep(publish=publish))

    def _measure_second_pass(self, case: Case, *, changed: bool = False) -> None:
        if case in self.measured:
            self.measured[case].add(self._fanout.second_pass(changed=changed))

    def _measure_yardsticks(self) -> None:
        size = self._size
        per_target = naive.measure_sample(self._fanout.seed, self._directory / "naive", size.files)
        listings = bare_git.measure_listings(self._fanout.repositories)
        drafts = {Case.FULL: range(size.targets)}
        if Case.EVERYWHERE in self.measured:
            drafts[Case.EVERYWHERE] = range(size.changed)
        in_one = {Case.ONE, Case.ONE_RUNNING} & set(self.measured)
        bare = {case: self._measure_bare_git(targets) for case, targets in drafts.items()}
        if in_one:
            bare |= dict.fromkeys(in_one, self._measure_bare_git(size.in_one()))
        for case, measured in self.measured.items():
            measured.naive.append(per_target * (measured.variants or size.targets))
            measured.bare.append(bare.get(case, bare[Case.FULL]))
            measured.listings.append(listings)

    def _measure_bare_git(self, targets: range) -> float:
        streams, remotes = self._directory / "streams", self._fanout.remotes
        bare_git.write_streams(remotes, streams, self._size.by_repository(targets))
        return bare_git.measure_drafts(
            self._fanout.seed, self._directory / "bare", streams, remotes
        )
