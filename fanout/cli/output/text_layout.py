"""Layout of text for people: tables, wrapped sentences, aligned rows, commands, relative times.

Lines fit the terminal. In a pipe tables have full width, and without COLUMNS a program finds whole
sentences. On a terminal the least important columns of a table are cut first, then left out. A head
`…` at the end of the line shows that columns are missing. In a pipe nothing is left out, so awk can
count columns.
"""

import os
import shlex
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from fanout.cli.lazy_import import load_module
from fanout.cli.terminal import complete_text, escape_control

GAP = 3  # spaces between two columns
CUT_MARK = "…"
_CELL_LIMIT = 1000  # characters of a cell in a pipe; longer ones would pad every other line


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def format_fitted(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None,
    priorities: Sequence[int],
    cut_widths: Sequence[int],
) -> str:
    """Format a table of at most `width` characters per line; None: in full width.

    `priorities`: importance of each column, 0 first; `cut_widths`: width to which its cells, but
    not its head, may be cut before columns are left out, or 0. `heads` may be empty.
    """
    lines = [heads, *rows] if heads else [*rows]
    if not lines:
        return ""
    if width is None:
        return format_full(lines)
    naturals = [max(map(cell_width, cells)) for cells in zip(*lines, strict=True)]
    head_widths = map(cell_width, heads) if heads else [0] * len(naturals)
    columns = zip(naturals, head_widths, cut_widths, strict=True)
    minima = [min(it, max(cut_width or it, head_width)) for it, head_width, cut_width in columns]
    visible = sorted(range(len(naturals)), key=lambda index: (priorities[index], index))
    available = width
    while len(visible) > 1 and _total([minima[it] for it in visible]) > available:
        # The mark that stands for missing columns is a column itself.
        available = width - GAP - len(CUT_MARK)
        visible.pop()
    widths = [minima[index] if index in visible else 0 for index in range(len(naturals))]
    slack = available - _total([minima[it] for it in visible])
    for index in visible:
        growth = max(min(naturals[index] - widths[index], slack), 0)
        widths[index] += growth
        slack -= growth
    # The last remaining column may be cut below its minimum.
    if slack < 0:
        widths[visible[0]] = max(widths[visible[0]] + slack, 1)
    texts = []
    for line in lines:
        shown = ((cell, size) for cell, size in zip(line, widths, strict=True) if size)
        cells = [(cut_text(cell, size), size) for cell, size in shown]
        padded = [f"{cell}{' ' * (size - cell_width(cell))}" for cell, size in cells]
        texts.append((" " * GAP).join(padded))
    if heads and 0 in widths:
        texts[0] += f"{' ' * GAP}{CUT_MARK}"
    return "".join(f"{text.rstrip()}\n" for text in texts)


def format_full(lines: Sequence[Sequence[str]]) -> str:
    """Format left-aligned columns in full width, without trailing spaces."""
    if not lines:
        return ""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    if any(width > _CELL_LIMIT for width in widths):
        return format_full([[cut_text(cell, _CELL_LIMIT) for cell in line] for line in lines])
    # One format string serves all lines of a table, which can have ten thousand.
    line_format = (" " * GAP).join([f"%-{width}s" for width in widths])
    return "".join([f"{(line_format % tuple(line)).rstrip()}\n" for line in lines])


def cut_text(text: str, width: int) -> str:
    """Return the text, or its beginning and an ellipsis if it is wider than `width`."""
    if cell_width(text) <= width:
        return text
    if text.isascii():
        return f"{text[: width - 1]}{CUT_MARK}"
    # Padded with a space where the character at the end takes two cells.
    beginning: str = load_module("cells", "rich").set_cell_size(text, width - 1)
    return f"{beginning}{CUT_MARK}"


def cell_width(text: str) -> int:
    """Return the number of terminal cells of the text; some characters take two, or none."""
    if text.isascii():
        return len(text)
    width: int = load_module("cells", "rich").cell_len(text)
    return width


_MIN_WIDTH = 20
_MIN_TEXT = 28  # columns of a wrapped last cell; with fewer it goes onto lines of its own
_UNITS = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))


def text_width() -> int | None:
    """Return the width of lines on stdout; None if they are not to be wrapped."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS", "").isdecimal():
        return None
    return max(shutil.get_terminal_size().columns, _MIN_WIDTH)


def wrap_text(
    text: str, width: int | None, first: str = "", rest: str = "", max_lines: int | None = None
) -> list[str]:
    """Wrap a text at words; `first` and `rest` indent the first and the other lines.

    Commands in it get the options that the caller of this command needs.
    """
    line = " ".join(escape_control(complete_text(text)).split())
    if width is None:
        return [first + line]
    return textwrap.wrap(
        line,
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_on_hyphens=False,
        max_lines=max_lines,
        placeholder="…",
    ) or ([first.rstrip()] if first.strip() else [])


def wrap_rows(
    rows: Sequence[Sequence[str]], width: int | None, indent: str, max_lines: int | None = None
) -> Iterator[str]:
    """Yield rows with aligned cells, the last of which is wrapped below itself."""
    escaped = [[escape_control(cell) for cell in row] for row in rows]
    widths = [max(map(len, cells)) for cells in zip(*(row[:-1] for row in escaped), strict=True)]
    deep = indent + " " * sum(it + 2 for it in widths if it)
    is_narrow = width is not None and width - len(deep) < _MIN_TEXT
    for row in escaped:
        cells = [cell.ljust(size + 2) for cell, size in zip(row[:-1], widths, strict=True) if size]
        head = indent + "".join(cells)
        if is_narrow:
            yield from wrap_text(head, width, indent, indent)
            yield from wrap_text(row[-1], width, indent + "  ", indent + "  ", max_lines)
        else:
            lines = wrap_text(row[-1], width, deep, deep, max_lines) or [deep]
            yield (head + lines[0][len(deep) :]).rstrip()
            yield from lines[1:]


def wrap_command(command: str, width: int | None, indent: str) -> Iterator[str]:
    r"""Yield the lines of a command, continued by `\` so that all of them can be pasted."""
    # A quoted word may have spaces, and stays on one line.
    words = [shlex.quote(word) for word in shlex.split(escape_control(command))]
    # An option and its value stay on one line.
    parts = [words[0]]
    for word in words[1:]:
        is_value = parts[-1].startswith("-") and " " not in parts[-1]
        if is_value and not word.startswith("-"):
            parts[-1] += f" {word}"
        else:
            parts.append(word)
    line = indent + parts[0]
    for position, part in enumerate(parts[1:], start=1):
        limit = (width or sys.maxsize) - (2 if position < len(parts) - 1 else 0)
        if len(line) + 1 + len(part) > limit:
            yield f"{line} \\"
            line = f"{indent}    {part}"
        else:
            line = f"{line} {part}"
    yield line


def format_until(at: datetime, now: datetime) -> str:
    """Format an instant in the future with the time until it, as `2026-03-01T12:00:00Z (in 3h)`."""
    # Loaded here: `fanout version` and others print tables, and need no models.
    instant = load_module("api.durations").format_instant(at)
    return f"{instant} ({format_relative(at, now)})"


def format_relative(at: datetime, now: datetime) -> str:
    """Format the time from now to an instant: `in 90m`, `in 26h`, `3d ago`, `now`."""
    if not (seconds := int((at - now).total_seconds())):
        return "now"
    duration = format_age(abs(at - now))
    return f"in {duration}" if seconds > 0 else f"{duration} ago"


def format_age(duration: timedelta) -> str:
    """Format a duration as kubectl prints ages: 5s, 90m, 26h, 12d; a negative one is 0s."""
    seconds = max(int(duration.total_seconds()), 0)
    # A unit from twice its length on.
    length, unit = next((it for it in _UNITS if seconds >= 2 * it[0]), _UNITS[-1])
    return f"{seconds // length}{unit}"
