"""What two sides did to a package since they were one, in one view, disputes marked.

Every line has two marks: what upstream did with it, and what was done here. `-` took it away, `+`
brought it. So `- ` is a line that upstream removed, ` +` one that was added here, `--` one that
both removed. A line that begins with `!!` says that what stands below it is disputed.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from fanout.cli.patches import NO_END, lines_of
from fanout.package.edits import MISSING
from fanout.package.merge.conflicts import Conflict
from fanout.package.merge.packages import Content, Files, merge_packages

_AROUND = 3  # lines that are shown before and after a change
_Side = Content | None


class _Row(NamedTuple):
    """A line of the view; the numbers, from 1, are its places on the three sides, 0: not there."""

    marks: str
    text: str
    origin: int
    upstream: int
    local: int


def three_way(origin: Files, upstream: Files, local: Files) -> Iterator[str]:
    """The lines of the view; none when the three are equal.

    Raises InvalidInput as the merge does.
    """
    conflicts: dict[str, list[Conflict]] = {}
    for conflict in merge_packages(origin, upstream, local).conflicts:
        conflicts.setdefault(conflict.file, []).append(conflict)
    paths = {*origin, *upstream, *local, *conflicts}
    for path in sorted(paths):
        sides = origin.get(path), upstream.get(path), local.get(path)
        if path in conflicts or not sides[0] == sides[1] == sides[2]:
            yield from _file(path, sides, conflicts.get(path, ()))


def _file(
    path: str, sides: tuple[_Side, _Side, _Side], conflicts: Sequence[Conflict]
) -> Iterator[str]:
    base, theirs, ours = sides
    done = ", ".join(
        f"{what} {where}"
        for where, side in (("upstream", theirs), ("here", ours))
        if (what := _what(base, side))
    )
    yield f"=== {path}: {done or 'not changed'}"
    texts = [lines_of(side[1]) if side else [] for side in sides]
    rows = [] if None in texts else _rows(*(text or [] for text in texts))
    at, above = _placed(rows, conflicts)
    yield from (f"!! {conflict}" for conflict in above)
    if None in texts:
        names = ("origin", "upstream", "local")
        sizes = (f"{n} {len(s[1]):,} bytes" for n, s in zip(names, sides, strict=True) if s)
        yield f"binary: {', '.join(sizes)}"
    yield from _hunks(rows, at)


def _what(base: _Side, side: _Side) -> str:
    if side == base:
        return ""
    if base is None or side is None:
        return "deleted" if side is None else "added"
    if side[0] == base[0]:
        return "changed"
    mode = f"mode {base[0]} to {side[0]}"
    return mode if side[1] == base[1] else f"changed, {mode},"


def _rows(base: list[str], theirs: list[str], ours: list[str]) -> list[_Row]:
    """All lines of all sides: at each place of the origin what was put before it, then its own."""
    put_there, kept_there = _against(base, theirs)
    put_here, kept_here = _against(base, ours)
    rows: list[_Row] = []
    for n in range(len(base) + 1):
        new = [(theirs[at], at + 1) for at in put_there.get(n, ())]
        own = [(ours[at], at + 1) for at in put_here.get(n, ())]
        if new and [text for text, _ in new] == [text for text, _ in own]:
            pairs = zip(new, own, strict=True)
            rows += [_Row("++", text, 0, one, other) for (text, one), (_, other) in pairs]
        else:
            rows += [_Row("+ ", text, 0, at, 0) for text, at in new]
            rows += [_Row(" +", text, 0, 0, at) for text, at in own]
        if n < len(base):
            there, here = kept_there.get(n, 0), kept_here.get(n, 0)
            marks = (" " if there else "-") + (" " if here else "-")
            rows.append(_Row(marks, base[n], n + 1, there, here))
    return rows


def _against(base: list[str], side: list[str]) -> tuple[dict[int, range], dict[int, int]]:
    """What a side put before which line of the origin, and where it has the lines that it kept."""
    put: dict[int, range] = {}
    kept: dict[int, int] = {}
    matcher = SequenceMatcher(None, base, side)
    for verb, start, end, first, last in matcher.get_opcodes():
        if verb == "equal":
            kept |= {start + n: first + n + 1 for n in range(end - start)}
        elif last > first:
            put[end] = range(first, last)  # behind the lines that it replaces
    return put, kept


def _placed(
    rows: Sequence[_Row], conflicts: Sequence[Conflict]
) -> tuple[dict[int, list[Conflict]], list[Conflict]]:
    """The conflicts by the row above which they are told, and those about the file as a whole.

    A conflict's line is the local one; of what is not there locally, upstream's.
    """
    here = {row.local: n for n, row in enumerate(rows) if row.local}
    there = {row.upstream: n for n, row in enumerate(rows) if row.upstream}
    at: dict[int, list[Conflict]] = {}
    above: list[Conflict] = []
    for conflict in conflicts:
        row = (there if conflict.local is MISSING else here).get(conflict.line)
        (above if row is None else at.setdefault(row, [])).append(conflict)
    return at, above


def _hunks(rows: Sequence[_Row], conflicts: dict[int, list[Conflict]]) -> Iterator[str]:
    wanted: set[int] = set()
    for n, row in enumerate(rows):
        if row.marks != "  " or n in conflicts:
            wanted |= set(range(max(n - _AROUND, 0), min(n + _AROUND + 1, len(rows))))
    last = -1
    for n in sorted(wanted):
        if n != last + 1 or n == 0:
            line = next((row.origin for row in rows[n:] if row.origin), 0)
            yield f"@@ origin:{line} @@" if line else "@@"
        last = n
        yield from (f"!! {conflict}" for conflict in conflicts.get(n, ()))
        text = rows[n].text
        yield rows[n].marks + text.removesuffix("\n")
        if not text.endswith("\n"):
            yield NO_END
