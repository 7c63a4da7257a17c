"""Reports of measurements: tables for the terminal, JSON files, and pages of the documentation."""

import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from statistics import median

from benchmarks.cases import Case, Measured
from benchmarks.rows import Row, downstream_pushes, processes_per_repository

_ROOT = Path(__file__).resolve().parent.parent
_HEADS = (
    "case",
    "seconds",
    "to git",
    "to naive",
    "to lists",
    "peak MB",
    "git",
    "per touched",
    "listings",
    "pushes",
    "MB sent",
    "objects",
    "renders",
    "merges",
)
_UNITS_OF_RATIOS = ("x", "MB", "kB")
_PROCESSES = """\
Each case runs `fanout sweep -v` in a new process, except those that end with `-running`. Times
include start and end of the interpreter; the output of `-v` takes a few milliseconds for each 1,000
targets.

"""
CASE_DESCRIPTIONS = {
    Case.FIRST: "all drafts are written; every repository is fetched for the first time",
    Case.COLD: "all drafts are written; the repositories were fetched by a `fanout plan` before, as"
    " those\n  of the yardstick were; all caches of that plan are removed",
    Case.FULL: "the same with the plan's cache of parsed objects",
    Case.AFTER: "a new process finds nothing to do after one that wrote, and evaluates everything",
    Case.NOTHING: "the next new process finds nothing changed",
    Case.RUNNING: "the second pass of a process finds nothing to do",
    Case.EVERYWHERE: "the ConfigMaps of 1 % of the targets changed, spread over all repositories",
    Case.ONE: "as many ConfigMaps of targets of one repository changed, at most all of them",
    Case.ONE_RUNNING: "the same between the first and the second pass of a process",
    Case.BUMP: "upstream released a revision",
    Case.PUBLISH: "all drafts are merged and tagged",
    Case.PUBLISH_ONE: "the same where all drafts are in one repository",
    Case.STAGES_ONE: "the drafts of stages are written in one repository, where all packages are in"
    " one directory",
    Case.BUMP_ONE: "the same after all is published, and upstream released another revision",
    Case.NEXT: "upstream released another revision after the publication; no package is edited",
    Case.EDITED: "the same after a person changed a field in a tenth of the published packages,"
    " half of\n  them in a file that upstream changes as well",
    Case.HTTP: "as `full`, to git-http-backend on this machine",
    Case.SLOW: "the same, with 30 ms added to every request",
}
_COLUMNS = """
`to git` is the time divided by that of `git fast-import` and `git push` of the same draft commits
from prepared streams, two repositories at a time (cases without drafts: of all drafts). `to naive`
is the time of a simple script (GitPython work tree, ruamel.yaml round trip, one push per branch;
measured for 60 targets and scaled) divided by that of fanout. `to lists` is the time divided by
that of `git ls-remote` of the same repositories, two at a time. `peak` adds up resident memory of
fanout and all its descendants. `git` counts Git processes that fanout started, `per touched` those
per repository that received a push. `pushes` are those to downstream repositories, `MB sent` the
growth of their object stores. Counts are of the first repetition, times are medians, memory is
the peak of all repetitions.

An exponent of growth is log(time ratio) / log(target ratio) between sizes with 100 targets to a
repository each. Three files differ per target at least: the Kptfile, the package context, the
injected ConfigMap.
"""
_BARS = """
`share-of-files` and `share-of-names` are the parts of the cold run that read declared objects and
evaluate the templates of targets; `peak-for-each-above` is the memory that each further target adds
to the peak. Counts have exact numbers as bars. The bars are aims: the page also shows missed ones.

"""


def describe_machine(directory: Path) -> dict[str, str]:
    """Describe the machine of the run."""
    cpu = [line for line in _read_lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [
        line.split()[1] for line in _read_lines("/proc/meminfo") if line.startswith("MemTotal")
    ]
    version = subprocess.run(["git", "version"], capture_output=True, text=True, check=True)
    return {
        "processor": cpu[0].partition(":")[2].strip() if cpu else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[0]) / 1e6:.0f} GB" if memory else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "git": version.stdout.split()[2],
        "repositories on": _filesystem(directory),
    }


def _read_lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _filesystem(directory: Path) -> str:
    kinds = {
        fields[1]: fields[2] for line in _read_lines("/proc/mounts") if (fields := line.split())
    }
    parents = (str(path) for path in (directory, *directory.parents))
    return next((kinds[path] for path in parents if path in kinds), "unknown")


def format_tables(all_measured: Sequence[Measured]) -> str:
    """Return a Markdown table for each size."""
    parts = []
    for size, group in groupby(all_measured, key=lambda it: it.size):
        head = f"{size.targets:,} targets in {size.repositories:,}, {size.files} of 8 files differ"
        parts.append(f"{head}\n\n{format_table([_HEADS, *map(_build_cells, group)])}")
    return "\n".join(parts)


def format_table(lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table with aligned columns; its first line is the head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *texts = (_format_line(cells, widths) for cells in lines)
    rule = "|".join("-" * (width + 1) + ":" for width in widths)
    return "\n".join([head, f"|{rule}|", *texts]) + "\n"


def _format_line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return f"| {first[0]:<{first[1]}} | " + " | ".join(f"{c:>{w}}" for c, w in rest) + " |"


def _build_cells(measured: Measured) -> tuple[str, ...]:
    sweep, counts = measured.sweeps[0], measured.sweeps[0].costs.counts
    return (
        str(measured.case),
        f"{measured.time:.2f}",
        f"{measured.time / median(measured.bare):.2f}" if measured.bare else "-",
        f"{median(measured.naive) / measured.time:.0f}" if measured.naive else "-",
        f"{measured.time / median(measured.listings):.2f}" if measured.listings else "-",
        f"{measured.peak / 1e6:.0f}",
        str(counts["git_processes"]),
        f"{processes_per_repository(measured):.2f}" if measured.touched else "-",
        str(counts["listings"]),
        str(downstream_pushes(measured)),
        f"{sweep.sent / 1e6:.1f}",
        str(counts["objects_written"]),
        str(counts["renders"]),
        str(counts["merges"]),
    )


def format_bars(rows: Iterable[Row]) -> str:
    """List all ratios with a bar, the counts that miss theirs, and the number of other counts."""
    barred = [row for row in rows if row.holds is not None]
    listed = [row for row in barred if row.unit in _UNITS_OF_RATIOS or not row.holds]
    width = max((len(row.name) for row in listed), default=0)
    lines = [
        f"{'holds ' if row.holds else 'misses'}  {row.name:<{width}}  {row.value:>9}  {row.bar}"
        for row in listed
    ]
    lines.append(
        f"holds   {len(barred) - len(listed)} counts: listings, pushes, renders, processes ..."
    )
    return "\n".join(lines) + "\n"


def write_json(path: Path, machine: Mapping[str, str], rows: Iterable[Row]) -> None:
    """Write the rows as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_page(
    path: Path, machine: Mapping[str, str], all_measured: Sequence[Measured], rows: Sequence[Row]
) -> None:
    """Write a page of the documentation; its name has that of the make target."""
    machine_lines = "\n".join(f"- {key}: {value}" for key, value in machine.items())
    repeat = len(all_measured[0].seconds)
    target = path.stem.replace("benchmarks", "bench")
    path.write_text(
        f"# Benchmarks\n\nGenerated by `make {target}`; the last run. One package of 8 files and"
        " 10 kB to cluster objects of 1 kB,\nrepositories on one machine."
        f" {'One run each' if repeat == 1 else f'Median of {repeat}'}.\n\n{machine_lines}\n\n"
        f"{format_tables(all_measured)}\n## Cases and columns\n\n{_describe(all_measured)}\n"
        f"## Bars\n{_BARS}```\n{format_bars(rows)}```\n"
    )


def _describe(all_measured: Sequence[Measured]) -> str:
    """Describe the cases and columns of the tables."""
    present = {measured.case for measured in all_measured}
    descriptions = ((case, text) for case, text in CASE_DESCRIPTIONS.items() if case in present)
    cases = [f"- `{case}`: {text}.\n" for case, text in descriptions]
    return f"{_PROCESSES}{''.join(cases)}{_COLUMNS}"


def format_rows(rows: Iterable[Row]) -> str:
    """Return the rows as aligned lines."""
    lines = (f"{it.name:<46} {it.value:>8} {it.unit:<3} {it.bar}".rstrip() for it in rows)
    return "".join(f"{line}\n" for line in lines)


def report_rows(name: str, page: str, rows: Sequence[Row]) -> int:
    """Print rows, and write them as JSON and below the text of the page `benchmarks-NAME.md`.

    Returns the exit code: 1 if a bar does not hold, else 0.
    """
    machine = describe_machine(_ROOT)
    write_json(_ROOT / "build" / "bench" / f"{name}.json", machine, rows)
    table = format_rows(rows)
    print(table)
    del machine["repositories on"]
    machine_lines = "\n".join(f"- {key}: {value}" for key, value in machine.items())
    (_ROOT / "docs" / "reference" / f"benchmarks-{name}.md").write_text(
        f"{page}\n{machine_lines}\n\n```\n{table}```\n"
    )
    return 1 if any(row.holds is False for row in rows) else 0
