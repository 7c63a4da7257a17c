"""Stages form a graph without cycles (design §6, "Order and change")."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

from fanout.api.faults import Fault, Path
from fanout.api.places import fields, items, places


def suggestion(name: str, known: Sequence[str], otherwise: str) -> str:
    """The remedy for a name that is not known: the nearest one that is, if any is near."""
    near = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {near[0]}?" if near else otherwise


def stage_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Repeated and unknown stages, and cycles, in the data of an UpstreamPolicy."""
    names = [name for _, name in places(data, "spec.stages[*].name") if isinstance(name, str)]
    yield from repeated(data, "spec.stages[*].name", "stage")
    after: dict[str, list[str]] = {}
    for index, stage in enumerate(items(fields(data.get("spec")).get("stages"))):
        before = [
            (("spec", "stages", index, *path), value)
            for path, value in places(stage, "after.stages[*]")
            if isinstance(value, str)
        ]
        yield from _unknown(before, names)
        own = fields(stage).get("name")
        if isinstance(own, str):
            after.setdefault(own, [value for _, value in before if value in names])
    yield from _unknown(
        [
            (path, value)
            for path, value in places(data, "spec.targets[*].template.stage")
            if isinstance(value, str)
        ],
        names,
    )
    yield from _cycles(after, names)


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
    for path, name in named:
        if name not in names:
            listed = f"use one of {', '.join(names)}" if names else "declare it in spec.stages"
            yield Fault(path, f"there is no stage {name}", suggestion(name, names, listed))


def _cycles(after: dict[str, list[str]], names: list[str]) -> Iterator[Fault]:
    """One fault per cycle, at the stage of it that is written first; each cycle is cut there."""
    edges = {name: list(before) for name, before in after.items()}
    while True:
        try:
            TopologicalSorter(edges).prepare()
            return
        except CycleError as error:
            circle = list(error.args[1])[:-1]  # each stage comes before the next
            start = min(circle, key=names.index)
            at = circle.index(start)
            turned = [*circle[at:], *circle[:at], start]
            previous = turned[-2]
            place = names.index(start)
            yield Fault(
                ("spec", "stages", place, "after", "stages", after[start].index(previous)),
                f"stages wait for each other: {' → '.join(turned)}",
                "remove one of these edges",
            )
            edges[start] = [name for name in edges[start] if name != previous]
