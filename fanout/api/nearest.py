"""The remedy for a name that nobody knows: the one that was probably meant."""

from collections.abc import Sequence
from difflib import get_close_matches

NEAR = 0.6
VERY_NEAR = 0.85  # a letter too many, a plural


def nearest(name: str, known: Sequence[str], likeness: float = NEAR) -> str:
    """The known name that is most like this one; "" where none is.

    Upper and lower case, dashes and underscores do not count: who writes DEV for dev has made one
    mistake, not three. A beginning that only one has is that one: repo is repository.
    """
    by_sound = {_sound(one): one for one in reversed(known)}
    begun = [one for one in by_sound if len(name) > 2 and one.startswith(_sound(name))]
    if likeness <= NEAR and len(begun) == 1:
        return by_sound[begun[0]]
    near = get_close_matches(_sound(name), by_sound, n=1, cutoff=likeness)
    return by_sound[near[0]] if near else ""


def suggestion(name: str, known: Sequence[str], otherwise: str) -> str:
    """`did you mean …?` with the nearest of the known names; `otherwise` where none is near."""
    near = nearest(name, known)
    return f"did you mean {near}?" if near else otherwise


def _sound(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
