"""Background colors of stages by state, for black text."""

from collections.abc import Mapping

_GREEN, _BLUE, _YELLOW, _GREY, _RED = "#b7e1cd", "#cfe2f3", "#fff2cc", "#e0e0e0", "#f4cccc"
# A variant written by hand is a stage of its own, with the states of variants.
STATE_COLORS: Mapping[str, str] = {
    **dict.fromkeys(("Passed", "Ready"), _GREEN),
    **dict.fromkeys(("Pending", "Drafted", "Released", "Proposed", "Verifying"), _BLUE),
    **dict.fromkeys(("Held", "Skipped"), _YELLOW),
    **dict.fromkeys(("Suspended",), _GREY),
    **dict.fromkeys(("Halted", "Failed", "Stopped"), _RED),
}
