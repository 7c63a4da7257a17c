"""Two packages as a patch that `git apply` takes."""

import difflib
from collections.abc import Iterator

from fanout.package.merge.packages import Content, Files

NO_END = "\\ No newline at end of file"


Names = tuple[str, str]  # what the two packages are called


def patch(old: Files, new: Files, names: Names) -> Iterator[str]:
    """The lines of a patch that makes the one package the other; none when they are equal."""
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before != after:
            yield from _file(before, after, (f"{names[0]}/{path}", f"{names[1]}/{path}"))


def lines_of(data: bytes) -> list[str] | None:
    """The lines with their ends; None for what is no text."""
    if b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _file(before: Content | None, after: Content | None, names: Names) -> Iterator[str]:
    yield f"diff --git {names[0]} {names[1]}"
    if before is None or after is None:
        (verb, mode) = ("deleted", before[0]) if before else ("new", after[0] if after else "")
        yield f"{verb} file mode {mode}"
    elif before[0] != after[0]:
        yield f"old mode {before[0]}"
        yield f"new mode {after[0]}"
    old, new = (lines_of(side[1]) if side else [] for side in (before, after))
    shown = names[0] if before else "/dev/null", names[1] if after else "/dev/null"
    if old is not None and new is not None:
        yield from _hunks(old, new, shown)
    elif before is None or after is None or before[1] != after[1]:
        yield f"Binary files {shown[0]} and {shown[1]} differ"


def _hunks(old: list[str], new: list[str], names: Names) -> Iterator[str]:
    for number, line in enumerate(difflib.unified_diff(old, new, *names, lineterm="")):
        yield line.removesuffix("\n")
        if number > 1 and not line.startswith("@") and not line.endswith("\n"):
            yield NO_END
