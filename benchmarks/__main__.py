"""`python -m benchmarks`: measure, print, write build/bench/ and, after a whole run, the page."""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks.cases import Case, Measured, measure
from benchmarks.inputs import ALL, FEW, Size
from benchmarks.rows import rows
from benchmarks.table import bars, machine, tables, write_json, write_page

_HERE = Path(__file__).resolve().parent.parent
_MEMORY = Path("/dev/shm")
_ROOM = 3_000_000_000  # bytes that the largest size may take
_WHOLE, _QUICK = (1_000, 3_000, 10_000), (1_000,)


def main() -> int:
    """Exit code 1 when a bar does not hold."""
    said = _arguments()
    sizes = said.targets or (_QUICK if said.quick else _WHOLE)
    repeat = said.repeat or (1 if said.quick else 5)
    chosen = frozenset(said.case or Case)
    place = Path(tempfile.mkdtemp(prefix="fanout-bench-", dir=_directory()))
    where = machine(place)
    try:
        measured: list[Measured] = []
        for targets in sizes:
            for files in said.files:
                size = Size(targets, said.repositories, files)
                measured += measure(place / "arena", size, chosen, repeat)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    found = list(rows(measured))
    name = "quick" if said.quick else "bench"
    write_json(_HERE / "build" / "bench" / f"{name}.json", where, found)
    if sizes == _WHOLE and not said.case:
        write_page(_HERE / "docs" / "benchmarks.md", where, measured, found)
    print("\n".join(f"{key}: {value}" for key, value in where.items()))
    print(f"\n{tables(measured)}\n{bars(found)}")
    return 1 if any(row.holds is False for row in found) else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="1,000 targets, once")
    parser.add_argument("--targets", type=_numbers, metavar="N,...", help="1000,3000,10000")
    parser.add_argument("--files", type=_numbers, default=(FEW, ALL), metavar="N,...", help="3,8")
    parser.add_argument("--repositories", type=int, default=100, metavar="N")
    parser.add_argument("--repeat", type=int, metavar="N", help="5, with --quick 1")
    parser.add_argument("--case", type=Case, choices=list(Case), action="extend", nargs="+")
    return parser.parse_args()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


def _directory() -> Path:
    """Memory where there is enough of it, so that no disk is measured."""
    usable = _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK)
    if usable and shutil.disk_usage(_MEMORY).free > _ROOM:
        return _MEMORY
    return Path(tempfile.gettempdir())


if __name__ == "__main__":
    sys.exit(main())
