"""Three-way view of packages, printing of differences, and conflicts of a merge as data.

In the three-way view every line has two marks: the change of upstream, and the local change. `-` is
a removed line, `+` an added one. So `- ` was removed by upstream, ` +` was added locally, and `--`
was removed by both. A line that begins with `!!` reports a conflict in the lines below it.
"""

import sys
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import Any, NamedTuple

from fanout.cli.output.printer import write_stdout
from fanout.cli.terminal import escape_control
from fanout.control_characters import escape_unprintable
from fanout.groups import group_pairs
from fanout.package.field_edits import MISSING
from fanout.package.merge.merge_conflicts import MergeConflict
from fanout.package.merge.package_update import merge_packages
from fanout.package.package_patch import NO_NEWLINE, mask_secrets, split_lines
from fanout.package.tree_ids import FileContent, Files
from fanout.values import asdict


def print_patch(lines: Sequence[str]) -> None:
    """Print a patch: unchanged in a pipe for `git apply`, and escaped on a terminal."""
    text = "".join(f"{line}\n" for line in lines)
    write_stdout(escape_control(text) if sys.stdout.isatty() else text)


def format_masked_three_way(origin: Files, upstream: Files, local: Files) -> list[str]:
    """Return the lines of `format_three_way`, with the values of Secrets masked."""
    sides = mask_secrets((origin, upstream, local), ("before", "upstream", "here"))
    return list(format_three_way(*sides))


_CONTEXT_LINES = 3  # lines that are shown before and after a change
_SideContent = FileContent | None


class _ThreeWayLine(NamedTuple):
    """Line of the three-way view, with its number on each side: from 1, 0 if the side lacks it."""

    marks: str
    text: str
    origin: int
    upstream: int
    local: int


def format_three_way(origin: Files, upstream: Files, local: Files) -> Iterator[str]:
    """Yield the lines of the view, none for equal packages. Raises InvalidInput like the merge."""
    merge = merge_packages(origin, upstream, local)
    conflicts = group_pairs((it.where.file, it) for it in merge.conflicts)
    for path in sorted({*origin, *upstream, *local, *conflicts}):
        sides = origin.get(path), upstream.get(path), local.get(path)
        if path in conflicts or not sides[0] == sides[1] == sides[2]:
            yield from _diff_file(path, sides, conflicts.get(path, ()))


def _diff_file(
    path: str,
    sides: tuple[_SideContent, _SideContent, _SideContent],
    conflicts: Sequence[MergeConflict],
) -> Iterator[str]:
    base, upstream, local = sides
    changes = []
    for name, side in (("upstream", upstream), ("here", local)):
        if side == base:
            continue
        if base is None or side is None:
            change = "deleted" if side is None else "added"
        elif side[0] == base[0]:
            change = "changed"
        else:
            mode = f"mode {base[0]} to {side[0]}"
            change = mode if side[1] == base[1] else f"changed, {mode},"
        changes.append(f"{change} {name}")
    yield f"=== {escape_unprintable(path)}: {', '.join(changes) or 'not changed'}"
    texts = [split_lines(side[1]) if side else [] for side in sides]
    rows = [] if None in texts else _merge_lines(*(text or [] for text in texts))
    # A conflict's line number is the local one; upstream's if the value is missing locally.
    local_rows = {row.local: n for n, row in enumerate(rows) if row.local}
    upstream_rows = {row.upstream: n for n, row in enumerate(rows) if row.upstream}
    conflicts_by_row: dict[int, list[MergeConflict]] = {}
    file_conflicts: list[MergeConflict] = []
    for conflict in conflicts:
        places = upstream_rows if conflict.local is MISSING else local_rows
        at = places.get(conflict.where.line)
        (file_conflicts if at is None else conflicts_by_row.setdefault(at, [])).append(conflict)
    yield from (f"!! {conflict}" for conflict in file_conflicts)
    if None in texts:
        names = ("origin", "upstream", "local")
        sizes = (f"{n} {len(s[1]):,} bytes" for n, s in zip(names, sides, strict=True) if s)
        yield f"binary: {', '.join(sizes)}"
    yield from _format_hunks(rows, conflicts_by_row)


def _merge_lines(base: list[str], upstream: list[str], local: list[str]) -> list[_ThreeWayLine]:
    """Return the lines of all sides; inserted ones stand before the origin line that follows."""
    upstream_inserted, upstream_kept = _align(base, upstream)
    local_inserted, local_kept = _align(base, local)
    rows: list[_ThreeWayLine] = []
    for n in range(len(base) + 1):
        upstream_lines = [(upstream[at], at + 1) for at in upstream_inserted.get(n, ())]
        local_lines = [(local[at], at + 1) for at in local_inserted.get(n, ())]
        # Equal insertions of both sides are shown once, marked `++`, as a merge would take them.
        if upstream_lines and [text for text, _ in upstream_lines] == [
            text for text, _ in local_lines
        ]:
            pairs = zip(upstream_lines, local_lines, strict=True)
            rows += [
                _ThreeWayLine("++", text, 0, upstream_number, local_number)
                for (text, upstream_number), (_, local_number) in pairs
            ]
        else:
            rows += [_ThreeWayLine("+ ", text, 0, at, 0) for text, at in upstream_lines]
            rows += [_ThreeWayLine(" +", text, 0, 0, at) for text, at in local_lines]
        if n < len(base):
            upstream_number, local_number = upstream_kept.get(n, 0), local_kept.get(n, 0)
            marks = (" " if upstream_number else "-") + (" " if local_number else "-")
            rows.append(_ThreeWayLine(marks, base[n], n + 1, upstream_number, local_number))
    return rows


def _align(base: list[str], side: list[str]) -> tuple[dict[int, range], dict[int, int]]:
    """Return a side's insertions by the origin line behind them, and its kept lines."""
    inserted: dict[int, range] = {}
    kept_lines: dict[int, int] = {}
    for verb, start, end, first, last in SequenceMatcher(None, base, side).get_opcodes():
        if verb == "equal":
            kept_lines |= {start + n: first + n + 1 for n in range(end - start)}
        elif last > first:
            # Old lines come before new ones, like in a unified diff.
            inserted[end] = range(first, last)  # after the lines that it replaces
    return inserted, kept_lines


def _format_hunks(
    rows: Sequence[_ThreeWayLine], conflicts: dict[int, list[MergeConflict]]
) -> Iterator[str]:
    shown_rows: set[int] = set()
    for n, row in enumerate(rows):
        if row.marks != "  " or n in conflicts:
            shown_rows |= set(
                range(max(n - _CONTEXT_LINES, 0), min(n + _CONTEXT_LINES + 1, len(rows)))
            )
    last = -1
    for n in sorted(shown_rows):
        if n != last + 1 or n == 0:
            line = next((row.origin for row in rows[n:] if row.origin), 0)
            yield f"@@ origin:{line} @@" if line else "@@"
        last = n
        yield from (f"!! {conflict}" for conflict in conflicts.get(n, ()))
        text = rows[n].text
        yield rows[n].marks + text.removesuffix("\n")
        if not text.endswith("\n"):
            yield NO_NEWLINE


def serialize_conflict(conflict: MergeConflict) -> dict[str, Any]:
    """Return a conflict as data.

    A side without a value has no field, since null is a value too. Values of a Secret are left out.
    """
    values = {"base": conflict.origin, "upstream": conflict.upstream, "local": conflict.local}
    shown: dict[str, Any] = {}
    for name, value in () if conflict.is_secret else values.items():
        if isinstance(value, bytes):  # a complete file
            shown[name] = {"bytes": len(value), "sha256": sha256(value).hexdigest()}
        elif value is not MISSING:
            shown[name] = value
    return {
        **asdict(conflict.where),
        "cause": str(conflict.cause),
        "winner": str(conflict.winner),
        **shown,
    }
