"""Tells what was measured: to people as a table, to machines as JSON, in docs as a page."""

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
from benchmarks.rows import Row, downstream_pushes, per_touched

_HERE = Path(__file__).resolve().parent.parent
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
_RATIOS = ("x", "MB", "kB")
_WHAT = """\
Fresh processes, but for `-running`. Times are those of the command `fanout sweep -v` as a whole,
start and end of the interpreter included; the lines that `-v` prints take a few milliseconds for
each 1,000 targets.

"""
_WHAT_CASES = {
    Case.FIRST: "all drafts are written; every repository is seen for the first time, and fetched",
    Case.COLD: "all drafts are written; the repositories were fetched by a `fanout plan` before, as"
    " those\n  of the yardstick were; all else that this plan kept is gone",
    Case.FULL: "the same, and the plan's cache of parsed objects is there",
    Case.AFTER: "a fresh process finds nothing to do after one that wrote, and judges everything",
    Case.NOTHING: "the next fresh process finds all as that one had left it",
    Case.RUNNING: "the second pass of a process finds nothing to do",
    Case.EVERYWHERE: "the ConfigMaps of 1 % of the targets changed, spread over all repositories",
    Case.ONE: "as many ConfigMaps changed as one repository has targets, all of that one",
    Case.ONE_RUNNING: "the same between the first and the second pass of a process",
    Case.BUMP: "upstream released a revision",
    Case.PUBLISH: "all drafts are merged and tagged",
    Case.PUBLISH_ONE: "the same where all drafts are in one repository",
    Case.STAGES_ONE: "the drafts of stages are written in one repository, where all packages are in"
    " one directory",
    Case.BUMP_ONE: "the same after all is published, and upstream released another revision",
    Case.NEXT: "upstream released another revision, so that what nobody has edited is to be told"
    " from\n  what somebody has",
    Case.EDITED: "the same after a person changed a field in a tenth of the published packages,"
    " half of\n  them in a file that upstream changes as well",
    Case.HTTP: "as `full`, to git-http-backend on this machine",
    Case.SLOW: "the same, with 30 ms added to every request",
}
_WHAT_COLUMNS = """
`to git` is the time divided by that of `git fast-import` and `git push` of the same draft commits,
bytes ready, two repositories at a time (cases without drafts: of all drafts). `to naive` is the
time of the naive way (GitPython work tree, ruamel.yaml round trip, one push per branch; 60 targets,
scaled) divided by fanout's. `to lists` is the time divided by that of `git ls-remote` of the same
repositories, two at a time. `peak` adds up resident memory of fanout and all processes below it.
`git` counts git processes that fanout started, `per touched` those in a repository that was pushed
to. `pushes` are those to downstream repositories. `MB sent` is by how much their object stores
grew. Counts are of the first repetition, times are medians, memory is the most there was.

An exponent of growth is log(time ratio) / log(target ratio) between sizes with 100 targets to a
repository each. Three files differ per target at least: the Kptfile, the package context, the
injected ConfigMap.
"""
_WHAT_IS_HELD = """
`share-of-files` and `share-of-names` are the parts of the cold run that read what is declared and
choose targets; `peak-for-each-above` is what each further target adds to the peak. Counts are held
to exact numbers. A bar that is missed stays on the page: the bars are aims.

"""


def machine(place: Path) -> dict[str, str]:
    """Describe the machine of the run."""
    cpu = [line for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    version = subprocess.run(["git", "version"], capture_output=True, text=True, check=True)
    return {
        "processor": cpu[0].partition(":")[2].strip() if cpu else platform.machine(),
        "cores": str(os.cpu_count()),
        "memory": f"{int(memory[0]) / 1e6:.0f} GB" if memory else "unknown",
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "git": version.stdout.split()[2],
        "repositories on": _filesystem(place),
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


def _filesystem(place: Path) -> str:
    kinds = {fields[1]: fields[2] for line in _lines("/proc/mounts") if (fields := line.split())}
    above = (str(path) for path in (place, *place.parents))
    return next((kinds[path] for path in above if path in kinds), "unknown")


def tables(all_measured: Sequence[Measured]) -> str:
    """A Markdown table for each size, aligned so that it reads well as it is."""
    parts = []
    for size, group in groupby(all_measured, key=lambda it: it.size):
        head = f"{size.targets:,} targets in {size.repositories:,}, {size.files} of 8 files differ"
        parts.append(f"{head}\n\n{aligned([_HEADS, *(_cells(found) for found in group)])}")
    return "\n".join(parts)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; its first line is the head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    head, *texts = (_line(cells, widths) for cells in lines)
    rule = "|".join("-" * (width + 1) + ":" for width in widths)
    return "\n".join([head, f"|{rule}|", *texts]) + "\n"


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    first, *rest = zip(cells, widths, strict=True)
    return f"| {first[0]:<{first[1]}} | " + " | ".join(f"{c:>{w}}" for c, w in rest) + " |"


def _cells(found: Measured) -> tuple[str, ...]:
    sweep, counts = found.sweeps[0], found.sweeps[0].costs.counts
    return (
        str(found.case),
        f"{found.time:.2f}",
        f"{found.time / median(found.bare):.2f}" if found.bare else "-",
        f"{median(found.naive) / found.time:.0f}" if found.naive else "-",
        f"{found.time / median(found.listings):.2f}" if found.listings else "-",
        f"{found.peak / 1e6:.0f}",
        str(counts["git_processes"]),
        f"{per_touched(found):.2f}" if found.touched else "-",
        str(counts["listings"]),
        str(downstream_pushes(found)),
        f"{sweep.sent / 1e6:.1f}",
        str(counts["objects_written"]),
        str(counts["renders"]),
        str(counts["merges"]),
    )


def bars(rows: Iterable[Row]) -> str:
    """Every ratio that is held to something, and every count that is not what it must be."""
    held = [row for row in rows if row.holds is not None]
    told = [row for row in held if row.unit in _RATIOS or not row.holds]
    width = max((len(row.name) for row in told), default=0)
    lines = [
        f"{'holds ' if row.holds else 'misses'}  {row.name:<{width}}  {row.value:>9}  {row.bar}"
        for row in told
    ]
    lines.append(
        f"holds   {len(held) - len(told)} counts: listings, pushes, renders, processes ..."
    )
    return "\n".join(lines) + "\n"


def write_json(path: Path, where: Mapping[str, str], rows: Iterable[Row]) -> None:
    """The rows for machines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": where, "rows": [asdict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n")


def write_page(
    path: Path, where: Mapping[str, str], all_measured: Sequence[Measured], rows: Sequence[Row]
) -> None:
    """A page of the documentation; its name is that of the target that makes it."""
    ran = "\n".join(f"- {key}: {value}" for key, value in where.items())
    repeat = len(all_measured[0].seconds)
    target = path.stem.replace("benchmarks", "bench")
    path.write_text(
        f"# Benchmarks\n\nGenerated by `make {target}`; the last run. One package of 8 files and"
        " 10 kB to cluster objects of 1 kB,\nrepositories on one machine."
        f" {'One run each' if repeat == 1 else f'Median of {repeat}'}.\n\n{ran}\n\n"
        f"{tables(all_measured)}\n## What the words mean\n\n{_words(all_measured)}\n"
        f"## What is held\n{_WHAT_IS_HELD}```\n{bars(rows)}```\n"
    )


def _words(all_measured: Sequence[Measured]) -> str:
    """Explain the columns and the cases of the tables."""
    there = {found.case for found in all_measured}
    cases = [f"- `{case}`: {words}.\n" for case, words in _WHAT_CASES.items() if case in there]
    return f"{_WHAT}{''.join(cases)}{_WHAT_COLUMNS}"


def tell(name: str, page: str, found: Sequence[Row]) -> int:
    """Rows without cases: to people, as JSON in build/bench and below the page's words in docs.

    Answers 1 when a bar does not hold.
    """
    where = machine(_HERE)
    write_json(_HERE / "build" / "bench" / f"{name}.json", where, found)
    table = "".join(
        f"{it.name:<46} {it.value:>8} {it.unit:<3} {it.bar}".rstrip() + "\n" for it in found
    )
    print(table)
    ran = "\n".join(f"- {key}: {value}" for key, value in where.items() if key != "repositories on")
    (_HERE / "docs" / "reference" / f"benchmarks-{name}.md").write_text(
        f"{page}\n{ran}\n\n```\n{table}```\n"
    )
    return 1 if any(row.holds is False for row in found) else 0
