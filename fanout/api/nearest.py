"""The remedy for a name that nobody knows: the one that was probably meant."""

from collections.abc import Sequence
from difflib import get_close_matches


def suggestion(name: str, known: Sequence[str], otherwise: str) -> str:
    """`did you mean …?` with the nearest of the known names; `otherwise` where none is near.

    Upper and lower case are alike here: who writes DEV for dev has made one mistake, not three.
    """
    by_lower = {one.lower(): one for one in reversed(known)}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean {by_lower[near[0]]}?" if near else otherwise
