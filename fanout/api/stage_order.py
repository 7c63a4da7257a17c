"""Stages form a graph without cycles (design §6, "Order and change").

Linear in stages and in what they name: a generated policy may have thousands.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from fanout.api.faults import Fault, Path
from fanout.api.nearest import VERY_NEAR, nearest, suggestion
from fanout.api.places import fields, items, places
from fanout.api.texts import NAME

_NAME = re.compile(NAME)
_CONSTANT = re.compile(r"""\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*""")
_TOLD = 20  # of one kind of fault, before what is told says less
_LISTED = 10  # names in a sentence


def stage_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Repeated and unknown stages, and cycles, in the data of an UpstreamPolicy."""
    yield from repeated(data, "spec.stages[*].name", "stage")
    stages = items(fields(data.get("spec")).get("stages"))
    names = [fields(stage).get("name") for stage in stages]
    known = dict.fromkeys(name for name in names if isinstance(name, str))
    before = [
        [
            (("spec", "stages", index, *path), value)
            for path, value in places(stage, "after.stages[*]")
            if isinstance(value, str)
        ]
        for index, stage in enumerate(stages)
    ]
    if names and all(isinstance(name, str) for name in names):  # else that one may be meant
        named = [item for items_of in before for item in items_of if _NAME.match(item[1])]
        named += [item for item in stages_of_targets(data) if _may_be_told(*item)]
        yield from _unknown(named, known)
    edges: dict[str, dict[str, Path]] = {}  # stage → stage before → where it is written
    for name, items_of in zip(names, before, strict=True):
        if isinstance(name, str):
            edges.setdefault(name, {value: path for path, value in items_of if value in known})
    yield from cycles(edges, "stages wait for each other", "remove one of these edges")


def stages_of_targets(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The stages that templates name: as `stage`, or as an expression that is a text alone."""
    for path, value in places(data, "spec.targets[*].template.stage"):
        if isinstance(value, str):
            yield path, value
    for path, value in places(data, "spec.targets[*].template.stageExpr"):
        found = _CONSTANT.fullmatch(value) if isinstance(value, str) else None
        if found:
            yield path, found[1] or found[2] or ""


def repeated(data: Mapping[str, Any], pattern: str, thing: str) -> Iterator[Fault]:
    """A fault at every value that an earlier place of the same pattern has already."""
    first: dict[str, Path] = {}
    for path, value in places(data, pattern):
        if not isinstance(value, str):
            continue
        if value in first:
            yield Fault(path, f"there are two of the name {value}", f"rename one {thing}")
        first.setdefault(value, path)


def _may_be_told(path: Path, name: str) -> bool:
    """A name that no stage can have is a fault of its own, but for one in an expression."""
    return path[-1] == "stageExpr" or _NAME.match(name) is not None


def _unknown(named: Sequence[tuple[Path, str]], names: Mapping[str, None]) -> Iterator[Fault]:
    """Names that no stage has; of a stage whose own name is a fault, that is told and no more.

    The nearest name is looked for a few times only: that costs as much as there are stages.
    """
    lost = [(path, name) for path, name in named if name not in names]
    if not lost:
        return
    usable = [name for name in names if _NAME.match(name)]
    refused = [name for name in names if not _NAME.match(name)]
    more = f" and {len(usable) - _LISTED} more" if len(usable) > _LISTED else ""
    listed = f"use one of {', '.join(usable[:_LISTED])}{more}"
    otherwise = listed if usable else "declare it in spec.stages"
    for number, (path, name) in enumerate(lost):
        if refused and nearest(name, refused[:_TOLD], VERY_NEAR):
            continue
        remedy = suggestion(name, usable, otherwise) if number < _TOLD else otherwise
        yield Fault(path, f"there is no stage {name}", remedy)


def cycles(edges: Mapping[str, dict[str, Path]], problem: str, remedy: str) -> Iterator[Fault]:
    """One fault per cycle, at the one of it that is written first; the cycle is cut there.

    `edges` has for each name those that come before it, and where that is written. So many cycles
    and no more are told; who removes them hears of the others.
    """
    order = {name: number for number, name in enumerate(edges)}
    for _ in range(_TOLD):
        try:
            TopologicalSorter(edges).prepare()
            return
        except CycleError as error:
            circle = list(error.args[1])[:-1]  # each comes before the next
            start = min(circle, key=order.__getitem__)
            at = circle.index(start)
            turned = [*circle[at:], *circle[:at], start]
            shown = turned if len(turned) <= _LISTED else [*turned[: _LISTED - 1], "…", start]
            yield Fault(edges[start].pop(turned[-2]), f"{problem}: {' → '.join(shown)}", remedy)
