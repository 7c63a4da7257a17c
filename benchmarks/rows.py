"""Rows of the report about a case, and the bars that some of the numbers must meet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import median

from benchmarks.cases import IN_ONE, Case, Measured
from benchmarks.inputs import ALL, FEW

_UPSTREAM_AND_RECORDS = 2  # repositories that are listed beside the downstream ones
_QUIET = (Case.AFTER, Case.NOTHING, Case.RUNNING)
_PUBLISHED = (Case.PUBLISH, Case.PUBLISH_ONE)
# Targets from which a bar holds: with a handful the start of the interpreter is what takes time,
# and with few to a repository both ways pay mostly for its push.
_SOME, _MANY = 1_000, 10_000
_EACH = 100  # targets to a repository in all sizes of which growth and memory are compared
_SLOWER_THAN_GIT = {
    (Case.FULL, FEW): 0.9,
    (Case.FULL, ALL): 1.0,
    (Case.COLD, FEW): 1.2,
}
_SLOWER_WITH_FEW_TARGETS = 1.6  # than git, of the full fan-out below that
_SLOWER_THAN_LISTINGS = {Case.NOTHING: 5, Case.RUNNING: 1.5}
_FASTER_THAN_NAIVE, _CHANGED_IN_ONE = 200, 2
# A case by how many times the time of another one it may take.
_TIMES = {
    Case.PUBLISH_ONE: ("slower-than-spread", Case.PUBLISH, 3),
    Case.EDITED: ("slower-than-unedited", Case.NEXT, 1.6),
    Case.SLOW: ("slower-than-at-once", Case.HTTP, 2),
}
_EXPONENT, _MEGABYTES, _KILOBYTES_EACH = 1.05, 300, 15
_EXPONENT_IN_ONE, _MEGABYTES_IN_ONE = 1.1, {10_000: 400, 30_000: 900}
# Phases of the cold full run by the share of its time that they may take.
_SHARES = {"names": 0.1, "files": 0.25}


@dataclass(frozen=True, slots=True)
class Row:
    """Number of the report; `bar` is the limit it must meet, or "" if it is informative."""

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
    yield from _memory(all_measured)
    yield from _of_two(all_measured)


def title(measured: Measured) -> str:
    """Return the prefix of the rows of a case."""
    size = measured.size
    return f"{size.targets}-in-{size.repositories}/{size.files}-files/{measured.case}"


def _of_case(found: Measured) -> Iterator[Row]:
    name, sweep = title(found), found.sweeps[0]
    yield Row(f"{name}/seconds", round(found.time, 3), "s")
    yield Row(f"{name}/each", round(found.time / found.size.targets * 1e6), "us")
    if found.bare:
        yield from _ratios(name, found)
    if found.listings and found.size.targets >= _SOME:
        yield from _to_listings(name, found)
    megabytes = found.peak / 1e6
    most = {_MANY: _MEGABYTES} if found.case not in IN_ONE else _MEGABYTES_IN_ONE
    if found.size.targets in most:
        yield at_most(f"{name}/peak", megabytes, most[found.size.targets], "MB")
    else:
        yield Row(f"{name}/peak", round(megabytes), "MB")
    if found.case is Case.COLD and found.size.targets >= _MANY:
        for phase, share in _SHARES.items():
            took = sweep.costs.phases[phase].clock / sweep.seconds
            yield at_most(f"{name}/share-of-{phase}", took, share)
    yield Row(f"{name}/sent", sweep.sent, "bytes")
    yield from _counts(name, found)


def _counts(name: str, found: Measured) -> Iterator[Row]:
    counts = found.sweeps[0].costs.counts
    yield Row(f"{name}/git-processes", counts["git_processes"], "")
    pushes = 2 if found.case in _PUBLISHED else 1
    # With one repository the listing and the fetch of upstream's next revision would count as its.
    if found.touched and found.case is not Case.BUMP_ONE:
        most = _fetched(found) + pushes
        yield at_most(f"{name}/git-processes-per-touched", per_touched(found), most, unit="")
    listings = found.size.repositories + _UPSTREAM_AND_RECORDS
    yield exactly(f"{name}/listings", counts["listings"], listings)
    yield exactly(f"{name}/pushes", downstream_pushes(found), pushes * found.touched)
    renders = 0 if found.case in _PUBLISHED else found.variants
    yield exactly(f"{name}/renders", counts["renders"], renders)
    yield exactly(f"{name}/merges", counts["merges"], found.merges)  # of what nobody edited: none
    yield Row(f"{name}/evaluations", counts["evaluations"], "")
    for number in ("objects_written", "record_writes"):
        told = Row(f"{name}/{number.replace('_', '-')}", counts[number], "")
        yield exactly(told.name, counts[number], 0) if found.case in _QUIET else told


def downstream_pushes(found: Measured) -> int:
    """Pushes to downstream repositories; each record that is written is one push more."""
    counts = found.sweeps[0].costs.counts
    return counts["pushes"] - counts["record_writes"]


def per_touched(found: Measured) -> float:
    """Git processes in a repository that is pushed to: fetch, pushes.

    Those that write a record are not among them: its push.
    """
    counts = found.sweeps[0].costs.counts
    work = counts["git_processes"] - counts["fetches"]
    return _fetched(found) + (work - counts["record_writes"]) / found.touched


def _fetched(found: Measured) -> int:
    return int(found.sweeps[0].costs.counts["fetches"] >= found.touched > 1)


def _ratios(name: str, found: Measured) -> Iterator[Row]:
    to_git, to_naive = found.time / median(found.bare), median(found.naive) / found.time
    yield Row(f"{name}/yardstick-git", round(median(found.bare), 3), "s")
    yield Row(f"{name}/yardstick-naive", round(median(found.naive), 1), "s")
    bar = _SLOWER_THAN_GIT.get((found.case, found.size.files))
    many = found.size.targets >= _MANY
    if bar and not many:
        some = found.case is Case.FULL and found.size.targets >= _SOME
        bar = _SLOWER_WITH_FEW_TARGETS if some else None
    git_row, naive_row = f"{name}/slower-than-git", f"{name}/faster-than-naive"
    yield at_most(git_row, to_git, bar) if bar else Row(git_row, round(to_git, 3), "x")
    if found.case is Case.FULL and found.size.files == FEW and many:
        yield _at_least(naive_row, to_naive, _FASTER_THAN_NAIVE)
    else:
        yield Row(naive_row, round(to_naive, 1), "x")


def _to_listings(name: str, found: Measured) -> Iterator[Row]:
    """Return the rows of a case with few or no changes, whose cost is to notice that."""
    listings = median(found.listings)
    if found.case in _SLOWER_THAN_LISTINGS:
        yield Row(f"{name}/yardstick-listings", round(listings, 3), "s")
        bar = _SLOWER_THAN_LISTINGS[found.case]
        yield at_most(f"{name}/slower-than-listings", found.time / listings, bar)
    elif found.case is Case.ONE_RUNNING:
        least = listings + median(found.bare)
        yield Row(f"{name}/yardstick-listings-and-push", round(least, 3), "s")
        row = f"{name}/slower-than-listings-and-push"
        yield at_most(row, found.time / least, _CHANGED_IN_ONE)


def _comparable(all_measured: Iterable[Measured], case: Case, files: int) -> list[Measured]:
    """A case in all sizes that have as many targets to a repository, the smallest first."""
    found = (it for it in all_measured if it.case is case and it.size.files == files)
    alike = (it for it in found if it.size.targets == _EACH * it.size.repositories)
    return sorted(alike, key=lambda it: it.size.targets)


def _growth(all_measured: Sequence[Measured]) -> Iterator[Row]:
    """The exponent with which time grows from the smallest size to the largest, and on the way."""
    for case in (Case.FULL, Case.COLD, Case.NOTHING, Case.RUNNING):
        found = _comparable(all_measured, case, FEW)
        for few, many in pairwise(found):
            name = f"{title(many)}/exponent-from-{few.size.targets}"
            yield Row(name, round(_exponent(few, many), 3), "x")
        if len(found) > 2:
            name = f"{title(found[-1])}/exponent-from-{found[0].size.targets}-in-all"
            yield at_most(name, _exponent(found[0], found[-1]), _EXPONENT)
    for case in IN_ONE:
        sizes = sorted((it for it in all_measured if it.case is case), key=_targets)
        for few, many in pairwise(sizes):
            name, exponent = f"{title(many)}/exponent-from-{few.size.targets}", _exponent(few, many)
            # Below, the start of the interpreter and of git are much of the time.
            if few.size.targets >= _MANY:
                yield at_most(name, exponent, _EXPONENT_IN_ONE)
            else:
                yield Row(name, round(exponent, 3), "x")


def _targets(found: Measured) -> int:
    return found.size.targets


def _exponent(few: Measured, many: Measured) -> float:
    return log(many.time / few.time) / log(many.size.targets / few.size.targets)


def _memory(all_measured: Sequence[Measured]) -> Iterator[Row]:
    """Return the memory that each target above 10,000 adds to the peak."""
    for case in (Case.FULL, Case.COLD):
        above = [it for it in _comparable(all_measured, case, FEW) if it.size.targets >= _MANY]
        for few, many in pairwise(above):
            each = (many.peak - few.peak) / (many.size.targets - few.size.targets) / 1e3
            name = f"{title(many)}/peak-for-each-above-{few.size.targets}"
            yield at_most(name, each, _KILOBYTES_EACH, "kB")


def _of_two(all_measured: Sequence[Measured]) -> Iterator[Row]:
    times = {(it.case, it.size.targets, it.size.files): it.time for it in all_measured}
    for found in all_measured:
        what, other, bar = _TIMES.get(found.case, ("", found.case, 0))
        least = times.get((other, found.size.targets, found.size.files))
        if what and least:
            yield at_most(f"{title(found)}/{what}", found.time / least, bar)


def exactly(name: str, value: int, bar: int) -> Row:
    """A row that holds at one number alone."""
    return Row(name, value, "", f"= {bar}", value == bar)


def at_most(name: str, value: float, bar: float, unit: str = "x") -> Row:
    """A row that holds up to a bar."""
    return Row(name, round(value, 3), unit, f"<= {bar:.4g}", value <= bar)


def _at_least(name: str, value: float, bar: float) -> Row:
    return Row(name, round(value, 1), "x", f">= {bar:.4g}", value >= bar)
