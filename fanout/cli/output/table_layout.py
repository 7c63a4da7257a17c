"""Layout of tables: columns in full for pipes, fitted to the width of a terminal for people.

On a terminal the least important columns are cut first, then left out. A head `…` at the end of
the line shows that columns are missing. In a pipe nothing is left out, so awk can count columns.
"""

from collections.abc import Sequence

from fanout.cli.lazy_import import load_module
from fanout.values import Value

GAP = 3  # spaces between two columns
CUT_MARK = "…"
_CELL_LIMIT = 1000  # characters of a cell in a pipe; longer ones would pad every other line


class ColumnSize(Value):
    """Widths that a column may have, and its importance (0 is left out last)."""

    natural: int
    minimum: int
    priority: int


def fit_columns(sizes: Sequence[ColumnSize], width: int) -> list[int]:
    """Return the width of each column in a table of `width` characters; 0: left out.

    The last remaining column may be cut below its minimum.
    """
    visible = sorted(range(len(sizes)), key=lambda index: (sizes[index].priority, index))
    available = width
    while len(visible) > 1 and _total([sizes[it].minimum for it in visible]) > available:
        # The mark that stands for missing columns is a column itself.
        available = width - GAP - len(CUT_MARK)
        visible.pop()
    widths = [0] * len(sizes)
    for index in visible:
        widths[index] = sizes[index].minimum
    slack = available - _total([sizes[it].minimum for it in visible])
    for index in visible:
        growth = max(min(sizes[index].natural - widths[index], slack), 0)
        widths[index] += growth
        slack -= growth
    if slack < 0:
        widths[visible[0]] = max(widths[visible[0]] + slack, 1)
    return widths


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def format_fitted(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    priorities: Sequence[int],
    cut_widths: Sequence[int],
) -> str:
    """Format a table of at most `width` characters per line.

    `priorities`: importance of each column, 0 first; `cut_widths`: width to which its cells, but
    not its head, may be cut before columns are left out, or 0. `heads` may be empty.
    """
    lines = [heads, *rows] if heads else [*rows]
    if not lines:
        return ""
    naturals = [max(map(cell_width, cells)) for cells in zip(*lines, strict=True)]
    head_widths = map(cell_width, heads) if heads else [0] * len(naturals)
    columns = zip(naturals, head_widths, cut_widths, priorities, strict=True)
    sizes = [
        ColumnSize(natural, min(natural, max(cut_width or natural, head_width)), priority)
        for natural, head_width, cut_width, priority in columns
    ]
    widths = fit_columns(sizes, width)
    texts = []
    for line in lines:
        visible = [(cell, size) for cell, size in zip(line, widths, strict=True) if size]
        cells = [(cut_text(cell, size), size) for cell, size in visible]
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
    beginning: str = load_module("cli.output.wide_characters").crop(text, width - 1)
    return f"{beginning}{CUT_MARK}"


def cell_width(text: str) -> int:
    """Return the number of terminal cells of the text; some characters take two, or none."""
    if text.isascii():
        return len(text)
    width: int = load_module("cli.output.wide_characters").measure(text)
    return width
