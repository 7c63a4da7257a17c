"""Background colors of stages by state, for black text."""

from collections.abc import Mapping

STATE_COLORS: Mapping[str, str] = {
    "Passed": "#b7e1cd",
    "Pending": "#cfe2f3",
    "Suspended": "#e0e0e0",
    "Halted": "#f4cccc",
    "Failed": "#f4cccc",
    "Stopped": "#f4cccc",
}
