"""`python -m benchmarks`: measure sweeps; write JSON to build/bench/ and, if complete, the page."""

import argparse
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from benchmarks.cases import IN_ONE, Case, Measured, measure
from benchmarks.inputs import ALL, FEW, Size
from benchmarks.report import (
    describe_machine,
    format_bars,
    format_tables,
    write_json,
    write_page,
)
from benchmarks.rows import build_rows
from benchmarks.work_directory import choose_parent, work_directory

ROOT = Path(__file__).resolve().parent.parent
_REPOSITORIES = 100
_WHOLE, _QUICK = (1_000, 3_000, 10_000), (1_000,)
# Targets and repositories. Three sizes have 100 targets to each, so that growth can be measured.
_LARGE = ((3_000, 30), (10_000, 100), (30_000, 1_000), (100_000, 1_000))
_QUICK_CASES = (Case.COLD, Case.FULL)  # if all files differ
_LARGE_CASES = (Case.COLD, Case.FULL, Case.NOTHING, Case.RUNNING)
_LARGEST_IN_ONE = 30_000  # targets of a repository


def main() -> int:
    """Run the benchmark. Return 1 if a bar does not hold, else 0."""
    options = _parse_arguments()
    sizes, name = _choose_sizes(options), _name_run(options)
    cases_by_size = {size: _choose_cases(options, size) for size in sizes}
    repeat = options.repeat or (1 if options.quick else 3 if options.large else 5)
    measured = measure_sizes(cases_by_size, repeat)
    rows = list(build_rows(measured))
    machine = describe_machine(choose_parent(max(size.targets for size in sizes)))
    write_json(ROOT / "build" / "bench" / f"{name}.json", machine, rows)
    if name in ("bench", "large") and not options.case:
        page = "benchmarks" if name == "bench" else "benchmarks-large"
        write_page(ROOT / "docs" / "reference" / f"{page}.md", machine, measured, rows)
    print("\n".join(f"{key}: {value}" for key, value in machine.items()))
    print(f"\n{format_tables(measured)}\n{format_bars(rows)}")
    return 1 if any(row.holds is False for row in rows) else 0


def measure_sizes(cases_by_size: Mapping[Size, Collection[Case]], repeat: int) -> list[Measured]:
    """Measure cases of several sizes, one size after the other."""
    with work_directory(max(size.targets for size in cases_by_size)) as directory:
        return [
            measured
            for size, cases in cases_by_size.items()
            for measured in measure(directory / "run", size, cases, repeat)
        ]


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 targets, once")
    parser.add_argument("--large", action="store_true", help="up to 100,000 targets, three times")
    parser.add_argument("--targets", type=_parse_numbers, metavar="N,...", help="1000,3000,10000")
    parser.add_argument("--files", type=_parse_numbers, metavar="N,...", help="3,8; with --large 3")
    parser.add_argument("--repositories", type=int, metavar="N", help="100")
    parser.add_argument("--repeat", type=int, metavar="N", help="5, with --quick 1")
    parser.add_argument("--case", type=Case, choices=list(Case), action="extend", nargs="+")
    return parser.parse_args()


def _choose_sizes(options: argparse.Namespace) -> list[Size]:
    files = options.files or ((FEW,) if options.large else (FEW, ALL))
    repositories = options.repositories or _REPOSITORIES
    pairs = [(it, repositories) for it in options.targets or (_QUICK if options.quick else _WHOLE)]
    if options.large and not options.targets:
        pairs = list(_LARGE)
    return [Size(targets, number, it) for targets, number in pairs for it in files]


def _choose_cases(options: argparse.Namespace, size: Size) -> frozenset[Case]:
    """Return the requested cases, by default all that fit the time and size of the run."""
    if options.case:
        return frozenset(options.case)
    if options.large:
        return frozenset((*_LARGE_CASES, *(IN_ONE if size.targets <= _LARGEST_IN_ONE else ())))
    return frozenset(_QUICK_CASES if options.quick and size.files != FEW else Case)


def _name_run(options: argparse.Namespace) -> str:
    """Return the name of the run: one of the three with fixed sizes, or "some"."""
    if options.targets or options.files or options.repositories:
        return "some"
    return "quick" if options.quick else "large" if options.large else "bench"


def _parse_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
