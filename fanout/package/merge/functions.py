"""Which entries of a pipeline are one function on the three sides of a merge.

A function need not have a name, and one image may be run several times. So nothing that an entry
says by itself tells which one it is: only the three lists together do.
"""

import json
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Final

_Function = Mapping[str, Any]
_Lists = Sequence[Sequence[_Function]]  # the origin's, upstream's and the local one
_Same = dict[int, int]  # one function: by side, its place there
_ORIGIN, _UPSTREAM, _LOCAL = range(3)


def function_keys(sides: Sequence[Sequence[Any]]) -> list[list[tuple[int]]] | None:
    """A key for each entry of each side's list; None where an entry is no mapping.

    Entries have one key where they are equal on two sides. What is left is matched by name, and
    what the origin has of it where all but the name is equal, at last by image and order, if it has
    no name. (Design §4; additions of both sides stay two, so order alone never matches those.)
    """
    if not all(isinstance(entry, dict) for side in sides for entry in side):
        return None
    found: list[_Same] = [{side: n} for side, part in enumerate(sides) for n in range(len(part))]
    for called, added in _ROUNDS:
        found = _matched(found, sides, called, added)
    keys = [dict[int, tuple[int]]() for _ in sides]
    for number, same in enumerate(found):
        for side, place in same.items():
            keys[side][place] = (number,)
    return [[places[n] for n in range(len(places))] for places in keys]


def _content(function: _Function) -> str:
    return json.dumps(function, sort_keys=True)


def _name(function: _Function) -> str | None:
    name = function.get("name")
    return name if isinstance(name, str) and name else None


def _content_but_name(function: _Function) -> str:
    return _content({key: value for key, value in function.items() if key != "name"})


def _program(function: _Function) -> tuple[str, str] | None:
    """The image without its tag, or the executable, of what has no name."""
    if _name(function) is not None:
        return None
    if isinstance(image := function.get("image"), str):
        path, slash, last = image.split("@")[0].rpartition("/")
        return "image", path + slash + last.split(":")[0]
    program = function.get("exec")
    return ("exec", program) if isinstance(program, str) else None


# by what they are matched, and whether what the origin has not is matched too
_ROUNDS: Final[Sequence[tuple[Callable[[_Function], Hashable], bool]]] = (
    (_content, True),
    (_name, True),
    (_content_but_name, False),
    (_program, False),
)


def _matched(
    found: Sequence[_Same], sides: _Lists, called: Callable[[_Function], Hashable], added: bool
) -> list[_Same]:
    """Those that are called the same become one, the first with the first."""
    alike: dict[Hashable, list[_Same]] = {}
    for same in found:
        side, place = next(iter(same.items()))
        alike.setdefault(called(sides[side][place]), []).append(same)
    result = alike.pop(None, [])
    for group in alike.values():
        result += _joined(group, added)
    return result


def _joined(group: Sequence[_Same], added: bool) -> list[_Same]:
    joined: set[int] = set()
    for others in ({_UPSTREAM, _LOCAL}, {_UPSTREAM}, {_LOCAL}):
        free = [same for same in group if _ORIGIN in same and not others & same.keys()]
        joined |= _join(free, [same for same in group if same.keys() == others])
    if added:
        left = [same for same in group if id(same) not in joined]
        theirs, ours = ([same for same in left if same.keys() == {n}] for n in (1, 2))
        joined |= _join(theirs, ours)
    return [same for same in group if id(same) not in joined]


def _join(first: Sequence[_Same], second: Sequence[_Same]) -> set[int]:
    """Make one of each two; answers which of the second went into the first."""
    pairs = list(zip(first, second, strict=False))
    for one, other in pairs:
        one.update(other)
    return {id(other) for _, other in pairs}
