"""Matching of the functions in a Kptfile's pipeline across the sides of a merge."""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

_Function = Mapping[str, Any]
_MatchedFunction = dict[int, int]  # one function: by side, its place there
_ORIGIN, _UPSTREAM, _LOCAL = range(3)


def match_functions(sides: Sequence[Sequence[Any]]) -> list[list[tuple[int]]] | None:
    """Return a key for each entry of each side's list; None if an entry is not a mapping.

    A pipeline's function need not have a name, and one image may be run several times, so only the
    three lists together tell which entries are one function. Entries with equal content on two
    sides have one key. The rest is matched by name; then, between the origin and the others, by all
    but the name, and last, without a name, by image and order. Additions of both sides stay two
    functions, as order alone never matches them (design §4).
    """
    if not all(isinstance(entry, dict) for side in sides for entry in side):
        return None
    groups: list[_MatchedFunction] = [
        {side: n} for side, part in enumerate(sides) for n in range(len(part))
    ]
    for match_key, match_additions in _MATCH_ROUNDS:
        # Groups with the same match key are joined, the first with the first.
        groups_by_key: dict[Hashable, list[_MatchedFunction]] = {}
        for matched in groups:
            side, index = next(iter(matched.items()))
            groups_by_key.setdefault(match_key(sides[side][index]), []).append(matched)
        groups = groups_by_key.pop(None, [])
        for group in groups_by_key.values():
            groups += _join_group(group, match_additions)
    keys = [dict[int, tuple[int]]() for _ in sides]
    for number, group in enumerate(groups):
        for side, index in group.items():
            keys[side][index] = (number,)
    return [[keys_by_index[n] for n in range(len(keys_by_index))] for keys_by_index in keys]


def _function_content(function: _Function) -> str:
    return json.dumps(function, sort_keys=True)


def _function_name(function: _Function) -> str | None:
    name = function.get("name")
    return name if isinstance(name, str) and name else None


def _function_program(function: _Function) -> tuple[str, str] | None:
    """Return the image without its tag, or the executable, of a function without a name."""
    if _function_name(function) is not None:
        return None
    if isinstance(image := function.get("image"), str):
        path, slash, last = image.split("@")[0].rpartition("/")
        return "image", path + slash + last.split(":")[0]
    program = function.get("exec")
    return ("exec", program) if isinstance(program, str) else None


# Each round: the key by which entries are matched, and whether additions of both sides are matched
# too. From certain to plausible: entries that a stricter round matched are not available to later
# ones.
_MATCH_ROUNDS: Final[Sequence[tuple[Callable[[_Function], Hashable], bool]]] = (
    (_function_content, True),
    (_function_name, True),
    (lambda it: _function_content({key: it[key] for key in it if key != "name"}), False),
    (_function_program, False),
)


def _join_group(group: Sequence[_MatchedFunction], match_additions: bool) -> list[_MatchedFunction]:
    joined: set[int] = set()
    for other_sides in ({_UPSTREAM, _LOCAL}, {_UPSTREAM}, {_LOCAL}):
        unmatched = [same for same in group if _ORIGIN in same and not other_sides & same.keys()]
        joined |= _join_pairs(unmatched, [same for same in group if same.keys() == other_sides])
    if match_additions:
        remaining = [same for same in group if id(same) not in joined]
        upstream_only, local_only = (
            [same for same in remaining if same.keys() == {n}] for n in (1, 2)
        )
        joined |= _join_pairs(upstream_only, local_only)
    return [same for same in group if id(same) not in joined]


def _join_pairs(first: Sequence[_MatchedFunction], second: Sequence[_MatchedFunction]) -> set[int]:
    """Join pairs of groups. Return the ids of the second ones, which went into the first ones."""
    pairs = list(zip(first, second, strict=False))
    for target, source in pairs:
        target.update(source)
    return {id(source) for _, source in pairs}
