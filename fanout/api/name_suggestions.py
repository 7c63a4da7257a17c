"""Suggestion of the known name that is most like an unknown one ("did you mean ...?")."""

from collections.abc import Sequence
from difflib import get_close_matches

SIMILAR = 0.6
VERY_SIMILAR = 0.85  # a letter too many, a plural


def find_similar_name(name: str, candidates: Sequence[str], cutoff: float = SIMILAR) -> str:
    """Return the candidate that is most like the name, or "" if none is similar.

    Case, dashes and underscores do not count: DEV written for dev is one mistake, not
    three. A prefix that only one candidate has means that candidate: repo is repository.
    """
    # Reversed, so that of two names that differ only in case or dashes the first one wins.
    by_folded_name = {_fold_name(candidate): candidate for candidate in reversed(candidates)}
    # Two letters are the beginning of too many names to mean one of them.
    prefix_matches = [
        candidate
        for candidate in by_folded_name
        if len(name) > 2 and candidate.startswith(_fold_name(name))
    ]
    if cutoff <= SIMILAR and len(prefix_matches) == 1:
        return by_folded_name[prefix_matches[0]]
    similar = get_close_matches(_fold_name(name), by_folded_name, n=1, cutoff=cutoff)
    return by_folded_name[similar[0]] if similar else ""


def suggest_name(name: str, candidates: Sequence[str], otherwise: str) -> str:
    """Return `did you mean ...?` with the most similar candidate, else `otherwise`."""
    similar = find_similar_name(name, candidates)
    return f"did you mean {similar}?" if similar else otherwise


def _fold_name(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
