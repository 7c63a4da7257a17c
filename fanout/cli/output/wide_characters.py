"""Widths of text in terminal cells: characters may take two cells, or none."""

from rich.cells import cell_len, set_cell_size


def measure(text: str) -> int:
    """Return the number of terminal cells that the text takes."""
    return cell_len(text)


def crop(text: str, width: int) -> str:
    """Return the beginning of the text that takes exactly `width` cells, padded with spaces."""
    return set_cell_size(text, width)
