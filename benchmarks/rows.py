"""What is reported of a case, number by number, and the bars that some of them are held to."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from benchmarks.cases import Case, Measured
from benchmarks.inputs import FEW

_UPSTREAM_AND_RECORDS = 2  # repositories that are listed beside the downstream ones
_PROCESSES_OF_A_RECORD = 2  # fast-import and push
_QUIET = (Case.NOTHING, Case.RUNNING)
_PUBLISHED = (Case.PUBLISH, Case.PUBLISH_ONE)
# Targets from which a bar holds: with a handful the start of the interpreter is what takes time,
# and with few to a repository both ways pay mostly for its push.
_SOME, _MANY = 1_000, 10_000
_SLOWER_THAN_GIT, _FASTER_THAN_NAIVE, _ONE_TO_MANY = 2.5, 75, 3


@dataclass(frozen=True, slots=True)
class Row:
    """One number; `bar` says what it is held to, "" where it is only told."""

    name: str
    value: float
    unit: str
    bar: str = ""
    holds: bool | None = None


def rows(all_measured: Sequence[Measured]) -> Iterator[Row]:
    """All numbers of all cases, then those that come of two cases."""
    for measured in all_measured:
        yield from _of_case(measured)
    yield from _growth(all_measured)
    yield from _one_to_many(all_measured)


def title(measured: Measured) -> str:
    """How the rows of a case begin."""
    return f"{measured.size.targets}/{measured.size.files}-files/{measured.case}"


def _of_case(found: Measured) -> Iterator[Row]:
    name, counts, sweep = title(found), found.sweeps[0].counts, found.sweeps[0]
    yield Row(f"{name}/seconds", round(found.time, 3), "s")
    if found.bare:
        yield from _ratios(name, found)
    yield Row(f"{name}/peak", round(found.peak / 1e6), "MB")
    yield Row(f"{name}/git-processes", counts["git_processes"], "")
    if found.touched:
        most = 3 + _fetched(found)
        yield at_most(f"{name}/git-processes-per-touched", per_touched(found), most, unit="")
    listings = found.size.repositories + _UPSTREAM_AND_RECORDS
    yield _exactly(f"{name}/listings", counts["listings"], listings)
    pushes = 2 if found.case in _PUBLISHED else 1
    yield _exactly(f"{name}/pushes", downstream_pushes(found), pushes * found.touched)
    yield Row(f"{name}/sent", sweep.sent, "bytes")
    renders = 0 if found.case in _PUBLISHED else found.variants
    yield _exactly(f"{name}/renders", counts["renders"], renders)
    yield _exactly(f"{name}/merges", counts["merges"], 0)  # nobody edited any: digests tell
    yield Row(f"{name}/evaluations", counts["evaluations"], "")
    for number in ("objects_written", "record_writes"):
        told = Row(f"{name}/{number.replace('_', '-')}", counts[number], "")
        yield _exactly(told.name, counts[number], 0) if found.case in _QUIET else told


def downstream_pushes(found: Measured) -> int:
    """Pushes to downstream repositories; each record that is written is one push more."""
    counts = found.sweeps[0].counts
    return counts["pushes"] - counts["record_writes"]


def per_touched(found: Measured) -> float:
    """Git processes in a repository that is pushed to: listing, fetch, fast-import, pushes."""
    counts = found.sweeps[0].counts
    apart = counts["listings"] + counts["fetches"]
    work = counts["git_processes"] - apart - _PROCESSES_OF_A_RECORD * counts["record_writes"]
    return 1 + _fetched(found) + work / found.touched


def _fetched(found: Measured) -> int:
    return int(found.sweeps[0].counts["fetches"] >= found.touched > 1)


def _ratios(name: str, found: Measured) -> Iterator[Row]:
    to_git, to_naive = found.time / median(found.bare), median(found.naive) / found.time
    yield Row(f"{name}/yardstick-git", round(median(found.bare), 3), "s")
    yield Row(f"{name}/yardstick-naive", round(median(found.naive), 1), "s")
    held = found.case is Case.FULL and found.size.files == FEW
    git_row, naive_row = f"{name}/slower-than-git", f"{name}/faster-than-naive"
    if held and found.size.targets >= _SOME:
        yield at_most(git_row, to_git, _SLOWER_THAN_GIT)
    else:
        yield Row(git_row, round(to_git, 3), "x")
    if held and found.size.targets >= _MANY:
        yield _at_least(naive_row, to_naive, _FASTER_THAN_NAIVE)
    else:
        yield Row(naive_row, round(to_naive, 1), "x")


def _growth(all_measured: Iterable[Measured]) -> Iterator[Row]:
    """From one size to the next no more time than linearly. Design of the bar: 3,000 to 10,000."""
    full = [it for it in all_measured if it.case is Case.FULL and it.size.targets >= 3000]
    for few, many in pairwise(sorted(full, key=lambda it: (it.size.files, it.size.targets))):
        if few.size.files == many.size.files:
            linear = many.size.targets / few.size.targets
            name = (
                f"{many.size.targets}/{many.size.files}-files/full/growth-from-{few.size.targets}"
            )
            yield at_most(name, many.time / few.time, linear)


def _one_to_many(all_measured: Iterable[Measured]) -> Iterator[Row]:
    times = {(it.case, it.size.targets, it.size.files): it.time for it in all_measured}
    for (case, targets, files), seconds in times.items():
        spread = times.get((Case.PUBLISH, targets, files))
        if case is Case.PUBLISH_ONE and spread:
            name = f"{targets}/{files}-files/{case}/slower-than-spread"
            yield at_most(name, seconds / spread, _ONE_TO_MANY)


def _exactly(name: str, value: int, bar: int) -> Row:
    return Row(name, value, "", f"= {bar}", value == bar)


def at_most(name: str, value: float, bar: float, unit: str = "x") -> Row:
    """A row that holds up to a bar."""
    return Row(name, round(value, 3), unit, f"<= {bar:.4g}", value <= bar)


def _at_least(name: str, value: float, bar: float) -> Row:
    return Row(name, round(value, 1), "x", f">= {bar:.4g}", value >= bar)
