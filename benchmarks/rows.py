"""Rows of the report: numbers of the cases, some of them with a bar, the limit that they meet."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import median

from benchmarks.cases import IN_ONE, Case, Measured
from benchmarks.inputs import ALL, FEW

_UPSTREAM_AND_RECORDS = 2  # repositories that are listed in addition to the downstream ones
_UNCHANGED = (Case.AFTER, Case.NOTHING, Case.RUNNING)
_PUBLISHED = (Case.PUBLISH, Case.PUBLISH_ONE)
# Targets from which a bar applies. With a few, the start of the interpreter takes most of the time;
# with a few per repository, its push does.
_SOME, _MANY = 1_000, 10_000
_PER_REPOSITORY = 100  # targets in the sizes whose growth and memory are compared
_SLOWER_THAN_GIT = {
    (Case.FULL, FEW): 0.9,
    (Case.FULL, ALL): 1.0,
    (Case.COLD, FEW): 1.2,
}
_SLOWER_WITH_FEW_TARGETS = 1.6  # than Git, for a full fan-out to fewer than _MANY targets
_SLOWER_THAN_LISTINGS = {Case.NOTHING: 5, Case.RUNNING: 1.5}
_FASTER_THAN_NAIVE, _CHANGED_IN_ONE = 200, 2
# By case: name of the row, the case to compare with, and the ratio of times as a bar.
_RATIOS_OF_CASES = {
    Case.PUBLISH_ONE: ("slower-than-spread", Case.PUBLISH, 3),
    Case.EDITED: ("slower-than-unedited", Case.NEXT, 1.6),
    Case.SLOW: ("slower-than-at-once", Case.HTTP, 2),
}
_EXPONENT, _MEGABYTES, _KILOBYTES_PER_TARGET = 1.05, 300, 15
_EXPONENT_IN_ONE, _MEGABYTES_IN_ONE = 1.1, {10_000: 400, 30_000: 900}
# By phase: the most that it takes of the time of the cold full run.
_SHARES = {"names": 0.1, "files": 0.25}


@dataclass(frozen=True, slots=True)
class Row:
    """Number of the report; `bar` is its limit as text, "" if it has none."""

    name: str
    value: float
    unit: str
    bar: str = ""
    holds: bool | None = None


def build_rows(all_measured: Sequence[Measured]) -> Iterator[Row]:
    """Build the rows of each case, then those that compare two cases."""
    for measured in all_measured:
        yield from _build_case_rows(measured)
    yield from _build_growth_rows(all_measured)
    yield from _build_memory_rows(all_measured)
    yield from _build_comparison_rows(all_measured)


def title(measured: Measured) -> str:
    """Return the prefix of the rows of a case."""
    size = measured.size
    return f"{size.targets}-in-{size.repositories}/{size.files}-files/{measured.case}"


def _build_case_rows(measured: Measured) -> Iterator[Row]:
    name, sweep = title(measured), measured.sweeps[0]
    yield Row(f"{name}/seconds", round(measured.time, 3), "s")
    yield Row(f"{name}/each", round(measured.time / measured.size.targets * 1e6), "us")
    if measured.bare:
        yield from _build_ratio_rows(name, measured)
    if measured.listings and measured.size.targets >= _SOME:
        yield from _build_listing_rows(name, measured)
    megabytes = measured.peak / 1e6
    bars = {_MANY: _MEGABYTES} if measured.case not in IN_ONE else _MEGABYTES_IN_ONE
    if measured.size.targets in bars:
        yield at_most(f"{name}/peak", megabytes, bars[measured.size.targets], "MB")
    else:
        yield Row(f"{name}/peak", round(megabytes), "MB")
    if measured.case is Case.COLD and measured.size.targets >= _MANY:
        for phase, share in _SHARES.items():
            ratio = sweep.costs.phases[phase].clock / sweep.seconds
            yield at_most(f"{name}/share-of-{phase}", ratio, share)
    yield Row(f"{name}/sent", sweep.sent, "bytes")
    yield from _build_count_rows(name, measured)


def _build_count_rows(name: str, measured: Measured) -> Iterator[Row]:
    counts = measured.sweeps[0].costs.counts
    yield Row(f"{name}/git-processes", counts["git_processes"], "")
    pushes = 2 if measured.case in _PUBLISHED else 1
    # With one repository, the listing and the fetch of upstream would count as its processes.
    if measured.touched and measured.case is not Case.BUMP_ONE:
        bar = _fetches_per_repository(measured) + pushes
        yield at_most(
            f"{name}/git-processes-per-touched", processes_per_repository(measured), bar, ""
        )
    listings = measured.size.repositories + _UPSTREAM_AND_RECORDS
    yield exactly(f"{name}/listings", counts["listings"], listings)
    yield exactly(f"{name}/pushes", downstream_pushes(measured), pushes * measured.touched)
    renders = 0 if measured.case in _PUBLISHED else measured.variants
    yield exactly(f"{name}/renders", counts["renders"], renders)
    yield exactly(f"{name}/merges", counts["merges"], measured.merges)
    yield Row(f"{name}/evaluations", counts["evaluations"], "")
    for count in ("objects_written", "record_writes"):
        row = f"{name}/{count.replace('_', '-')}"
        if measured.case in _UNCHANGED:
            yield exactly(row, counts[count], 0)
        else:
            yield Row(row, counts[count], "")


def downstream_pushes(measured: Measured) -> int:
    """Return the number of pushes to downstream repositories, without those of records."""
    counts = measured.sweeps[0].costs.counts
    return counts["pushes"] - counts["record_writes"]


def processes_per_repository(measured: Measured) -> float:
    """Return the number of Git processes per repository with a push, without pushes of records."""
    counts = measured.sweeps[0].costs.counts
    other_processes = counts["git_processes"] - counts["fetches"] - counts["record_writes"]
    return _fetches_per_repository(measured) + other_processes / measured.touched


def _fetches_per_repository(measured: Measured) -> int:
    """Return 1 if the sweep fetched each repository to which it pushed, else 0."""
    return int(measured.sweeps[0].costs.counts["fetches"] >= measured.touched > 1)


def _build_ratio_rows(name: str, measured: Measured) -> Iterator[Row]:
    to_git, to_naive = measured.time / median(measured.bare), median(measured.naive) / measured.time
    yield Row(f"{name}/yardstick-git", round(median(measured.bare), 3), "s")
    yield Row(f"{name}/yardstick-naive", round(median(measured.naive), 1), "s")
    bar = _SLOWER_THAN_GIT.get((measured.case, measured.size.files))
    has_many = measured.size.targets >= _MANY
    if bar and not has_many:
        has_some = measured.case is Case.FULL and measured.size.targets >= _SOME
        bar = _SLOWER_WITH_FEW_TARGETS if has_some else None
    git_row, naive_row = f"{name}/slower-than-git", f"{name}/faster-than-naive"
    yield at_most(git_row, to_git, bar) if bar else Row(git_row, round(to_git, 3), "x")
    if measured.case is Case.FULL and measured.size.files == FEW and has_many:
        yield _at_least(naive_row, to_naive, _FASTER_THAN_NAIVE)
    else:
        yield Row(naive_row, round(to_naive, 1), "x")


def _build_listing_rows(name: str, measured: Measured) -> Iterator[Row]:
    """Build the rows of a case with few or no changes, in which most time is that of listings."""
    listings = median(measured.listings)
    if measured.case in _SLOWER_THAN_LISTINGS:
        yield Row(f"{name}/yardstick-listings", round(listings, 3), "s")
        bar = _SLOWER_THAN_LISTINGS[measured.case]
        yield at_most(f"{name}/slower-than-listings", measured.time / listings, bar)
    elif measured.case is Case.ONE_RUNNING:
        yardstick = listings + median(measured.bare)
        yield Row(f"{name}/yardstick-listings-and-push", round(yardstick, 3), "s")
        row = f"{name}/slower-than-listings-and-push"
        yield at_most(row, measured.time / yardstick, _CHANGED_IN_ONE)


def _comparable(all_measured: Iterable[Measured], case: Case, files: int) -> list[Measured]:
    """Return a case at all sizes with 100 targets per repository, the smallest first."""
    of_case = (it for it in all_measured if it.case is case and it.size.files == files)
    comparable = (it for it in of_case if it.size.targets == _PER_REPOSITORY * it.size.repositories)
    return sorted(comparable, key=_targets)


def _build_growth_rows(all_measured: Sequence[Measured]) -> Iterator[Row]:
    """Build the rows with the exponents of growth between consecutive and outermost sizes."""
    for case in (Case.FULL, Case.COLD, Case.NOTHING, Case.RUNNING):
        sizes = _comparable(all_measured, case, FEW)
        for few, many in pairwise(sizes):
            name = f"{title(many)}/exponent-from-{few.size.targets}"
            yield Row(name, round(_exponent(few, many), 3), "x")
        if len(sizes) > 2:
            name = f"{title(sizes[-1])}/exponent-from-{sizes[0].size.targets}-in-all"
            yield at_most(name, _exponent(sizes[0], sizes[-1]), _EXPONENT)
    for case in IN_ONE:
        sizes = sorted((it for it in all_measured if it.case is case), key=_targets)
        for few, many in pairwise(sizes):
            name, exponent = f"{title(many)}/exponent-from-{few.size.targets}", _exponent(few, many)
            # With fewer targets, the start of the interpreter and of git takes much of the time.
            if few.size.targets >= _MANY:
                yield at_most(name, exponent, _EXPONENT_IN_ONE)
            else:
                yield Row(name, round(exponent, 3), "x")


def _targets(measured: Measured) -> int:
    return measured.size.targets


def _exponent(few: Measured, many: Measured) -> float:
    return log(many.time / few.time) / log(many.size.targets / few.size.targets)


def _build_memory_rows(all_measured: Sequence[Measured]) -> Iterator[Row]:
    """Build the rows with the memory that each target above 10,000 adds to the peak."""
    for case in (Case.FULL, Case.COLD):
        sizes = [it for it in _comparable(all_measured, case, FEW) if it.size.targets >= _MANY]
        for few, many in pairwise(sizes):
            per_target = (many.peak - few.peak) / (many.size.targets - few.size.targets) / 1e3
            name = f"{title(many)}/peak-for-each-above-{few.size.targets}"
            yield at_most(name, per_target, _KILOBYTES_PER_TARGET, "kB")


def _build_comparison_rows(all_measured: Sequence[Measured]) -> Iterator[Row]:
    times = {(it.case, it.size.targets, it.size.files): it.time for it in all_measured}
    for measured in all_measured:
        row, other, bar = _RATIOS_OF_CASES.get(measured.case, ("", measured.case, 0))
        other_time = times.get((other, measured.size.targets, measured.size.files))
        if row and other_time:
            yield at_most(f"{title(measured)}/{row}", measured.time / other_time, bar)


def exactly(name: str, value: int, bar: int) -> Row:
    """Return a row whose value must equal the bar."""
    return Row(name, value, "", f"= {bar}", value == bar)


def at_most(name: str, value: float, bar: float, unit: str = "x") -> Row:
    """Return a row whose value must not exceed the bar."""
    return Row(name, round(value, 3), unit, f"<= {bar:.4g}", value <= bar)


def _at_least(name: str, value: float, bar: float) -> Row:
    return Row(name, round(value, 1), "x", f">= {bar:.4g}", value >= bar)
