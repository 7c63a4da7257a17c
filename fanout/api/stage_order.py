"""Stages form a graph without cycles (design §6, "Order and change")."""

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from fanout.api.faults import Fault, Path
from fanout.api.nearest import VERY_NEAR, nearest, suggestion
from fanout.api.places import fields, items, places
from fanout.api.texts import NAME

_NAME = re.compile(NAME)


def stage_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Repeated and unknown stages, and cycles, in the data of an UpstreamPolicy."""
    yield from repeated(data, "spec.stages[*].name", "stage")
    stages = items(fields(data.get("spec")).get("stages"))
    names = [fields(stage).get("name") for stage in stages]
    known = [name for name in names if isinstance(name, str)]
    declared = bool(names) and len(known) == len(names)  # else one without a name may be meant
    edges: dict[str, dict[str, Path]] = {}  # stage → stage before → where it is written
    for index, (stage, name) in enumerate(zip(stages, names, strict=True)):
        before = [
            (("spec", "stages", index, *path), value)
            for path, value in places(stage, "after.stages[*]")
            if isinstance(value, str)
        ]
        if declared:
            yield from _unknown(before, known)
        if isinstance(name, str):
            edges.setdefault(name, {value: path for path, value in before if value in known})
    templates = places(data, "spec.targets[*].template.stage")
    if declared:
        yield from _unknown([item for item in templates if isinstance(item[1], str)], known)
    yield from _cycles(edges)


def repeated(data: Mapping[str, Any], pattern: str, thing: str) -> Iterator[Fault]:
    """A fault at every value that an earlier place of the same pattern has already."""
    first: dict[str, Path] = {}
    for path, value in places(data, pattern):
        if not isinstance(value, str):
            continue
        if value in first:
            yield Fault(path, f"there are two of the name {value}", f"rename one {thing}")
        first.setdefault(value, path)


def _unknown(named: list[tuple[Path, str]], names: list[str]) -> Iterator[Fault]:
    """Names that no stage has; of a stage whose own name is a fault, that is told and no more."""
    usable = [name for name in names if _NAME.match(name)]
    refused = [name for name in names if name not in usable]
    for path, name in named:
        if name not in names and _NAME.match(name) and not nearest(name, refused, VERY_NEAR):
            listed = f"use one of {', '.join(usable)}" if usable else "declare it in spec.stages"
            yield Fault(path, f"there is no stage {name}", suggestion(name, usable, listed))


def _cycles(edges: dict[str, dict[str, Path]]) -> Iterator[Fault]:
    """One fault per cycle, at the stage of it that is written first; the cycle is cut there."""
    while True:
        try:
            TopologicalSorter(edges).prepare()
            return
        except CycleError as error:
            circle = list(error.args[1])[:-1]  # each stage comes before the next
            start = next(name for name in edges if name in circle)
            at = circle.index(start)
            turned = [*circle[at:], *circle[:at], start]
            problem = f"stages wait for each other: {' → '.join(turned)}"
            yield Fault(edges[start].pop(turned[-2]), problem, "remove one of these edges")
