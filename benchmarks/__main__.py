"""`python -m benchmarks`: measure, print, write build/bench/ and, after a whole run, the page."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from benchmarks.cases import IN_ONE, Case, Measured, measure
from benchmarks.inputs import ALL, FEW, Size
from benchmarks.rows import rows
from benchmarks.table import bars, machine, tables, write_json, write_page

HERE = Path(__file__).resolve().parent.parent
_MEMORY = Path("/dev/shm")
_BYTES_EACH = 120_000  # that a target takes at most, with all yardsticks
_REPOSITORIES = 100
_WHOLE, _QUICK = (1_000, 3_000, 10_000), (1_000,)
# Targets and repositories. Three sizes have 100 targets to each, so that growth can be measured.
_LARGE = ((3_000, 30), (10_000, 100), (30_000, 1_000), (100_000, 1_000))
_QUICK_CASES = (Case.COLD, Case.FULL)  # with all files differing
_LARGE_CASES = (Case.COLD, Case.FULL, Case.NOTHING, Case.RUNNING)
_LARGEST_IN_ONE = 30_000  # targets of a repository


def main() -> int:
    """Exit code 1 when a bar does not hold."""
    said = _arguments()
    sizes, name = _sizes(said), _name(said)
    chosen = {size: _cases(said, size) for size in sizes}
    repeat = said.repeat or (1 if said.quick else 3 if said.large else 5)
    measured = measured_in(chosen, repeat)
    found = list(rows(measured))
    where = machine(directory(sizes))
    write_json(HERE / "build" / "bench" / f"{name}.json", where, found)
    if name in ("bench", "large") and not said.case:
        page = "benchmarks" if name == "bench" else "benchmarks-large"
        write_page(HERE / "docs" / "reference" / f"{page}.md", where, measured, found)
    print("\n".join(f"{key}: {value}" for key, value in where.items()))
    print(f"\n{tables(measured)}\n{bars(found)}")
    return 1 if any(row.holds is False for row in found) else 0


def measured_in(chosen: Mapping[Size, Collection[Case]], repeat: int) -> list[Measured]:
    """The chosen cases of each size, in a directory that is removed."""
    place = Path(tempfile.mkdtemp(prefix="fanout-bench-", dir=directory(chosen)))
    try:
        return [
            found
            for size, cases in chosen.items()
            for found in measure(place / "arena", size, cases, repeat)
        ]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 targets, once")
    parser.add_argument("--large", action="store_true", help="up to 100,000 targets, three times")
    parser.add_argument("--targets", type=_numbers, metavar="N,...", help="1000,3000,10000")
    parser.add_argument("--files", type=_numbers, metavar="N,...", help="3,8; with --large 3")
    parser.add_argument("--repositories", type=int, metavar="N", help="100")
    parser.add_argument("--repeat", type=int, metavar="N", help="5, with --quick 1")
    parser.add_argument("--case", type=Case, choices=list(Case), action="extend", nargs="+")
    return parser.parse_args()


def _sizes(said: argparse.Namespace) -> list[Size]:
    files = said.files or ((FEW,) if said.large else (FEW, ALL))
    repositories = said.repositories or _REPOSITORIES
    pairs = [(it, repositories) for it in said.targets or (_QUICK if said.quick else _WHOLE)]
    if said.large and not said.targets:
        pairs = list(_LARGE)
    return [Size(targets, number, it) for targets, number in pairs for it in files]


def _cases(said: argparse.Namespace, size: Size) -> frozenset[Case]:
    """Return the requested cases, by default all that fit the time and size of the run."""
    if said.case:
        return frozenset(said.case)
    if said.large:
        return frozenset((*_LARGE_CASES, *(IN_ONE if size.targets <= _LARGEST_IN_ONE else ())))
    return frozenset(_QUICK_CASES if said.quick and size.files != FEW else Case)


def _name(said: argparse.Namespace) -> str:
    """Return the name of the run: one of the three with fixed sizes, or "some"."""
    if said.targets or said.files or said.repositories:
        return "some"
    return "quick" if said.quick else "large" if said.large else "bench"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def directory(sizes: Iterable[Size]) -> Path:
    """Memory where there is enough of it, so that no disk is measured."""
    targets = max(size.targets for size in sizes)
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    if usable and shutil.disk_usage(_MEMORY).free > _BYTES_EACH * max(targets, _WHOLE[-1]):
        return _MEMORY
    return Path(tempfile.gettempdir())


if __name__ == "__main__":
    sys.exit(main())
