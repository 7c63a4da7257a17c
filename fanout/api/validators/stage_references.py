"""References between the stages of one UpstreamPolicy: repeated and unknown names, and cycles.

Linear in the number of stages and references: a generated policy may have thousands.
"""

import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from fanout.api.field_errors import (
    VERY_SIMILAR,
    FieldError,
    FieldPath,
    as_mapping,
    check_unique,
    find_fields,
    find_similar_name,
    suggest_name,
)
from fanout.api.text_fields import NAME, list_first

_STAGE_NAME = re.compile(NAME)
_TEXT_LITERAL = re.compile(r"""\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*""")
_MAX_REPORTED = 20  # cycles; and unknown names that get a suggestion, which is searched for
_MAX_LISTED = 10  # names in a sentence


def check_stage_graph(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for repeated names, unknown stages and cycles of an UpstreamPolicy."""
    yield from check_unique(data, "spec.stages[*].name", "stage")
    stages = [*find_fields(data, "spec.stages[*]")]
    names = [as_mapping(stage).get("name") for _, stage in stages]
    declared = dict.fromkeys(name for name in names if isinstance(name, str))
    references_by_stage = [
        [
            ((*stage_path, *path), value)
            for path, value in find_fields(stage, "after.stages[*]")
            if isinstance(value, str)
        ]
        for stage_path, stage in stages
    ]
    # a name of another type may be the missing one
    if names and all(isinstance(name, str) for name in names):
        references = [it for stage_references in references_by_stage for it in stage_references]
        references += find_target_stages(data)
        # Invalid names get an error of their own, except in an expression.
        unresolved = [
            (path, name)
            for path, name in references
            if name not in declared and (path[-1] == "stageExpr" or _STAGE_NAME.match(name))
        ]
        usable = [name for name in declared if _STAGE_NAME.match(name)]
        invalid_names = [name for name in declared if not _STAGE_NAME.match(name)]
        allowed_names = f"use one of {list_first(usable, _MAX_LISTED)}"
        fallback = allowed_names if usable else "declare it in spec.stages"
        for number, (path, name) in enumerate(unresolved):
            # A misspelled reference to a stage with an invalid name is not reported. Similar names
            # are searched for the first references only: one search costs as much as there are
            # stages.
            candidates = invalid_names[:_MAX_REPORTED]
            if candidates and find_similar_name(name, candidates, VERY_SIMILAR):
                continue
            remedy = suggest_name(name, usable, fallback) if number < _MAX_REPORTED else fallback
            yield FieldError(path, f"there is no stage {name}", remedy)
    edges: dict[str, dict[str, FieldPath]] = {}  # by stage and upstream stage: path of the field
    for stage, stage_references in zip(names, references_by_stage, strict=True):
        if isinstance(stage, str):
            edges.setdefault(
                stage, {value: path for path, value in stage_references if value in declared}
            )
    yield from find_cycles(edges, "stages form a cycle")


def find_target_stages(data: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Yield (path, stage) for each stage that a template names, also by a literal."""
    for path, value in find_fields(data, "spec.targets[*].template.stage"):
        if isinstance(value, str):
            yield path, value
    for path, value in find_fields(data, "spec.targets[*].template.stageExpr"):
        match = _TEXT_LITERAL.fullmatch(value) if isinstance(value, str) else None
        if match:
            yield path, match[1] or match[2] or ""


def find_cycles(edges: Mapping[str, dict[str, FieldPath]], problem: str) -> Iterator[FieldError]:
    """Yield one error per cycle, at the edge of the stage that is written first.

    `edges` is changed.

    `edges`: for each name the names before it, with the path where each is written. The
    edge is removed to find further cycles; the number of reported cycles is limited.
    """
    order = {name: number for number, name in enumerate(edges)}
    for _ in range(_MAX_REPORTED):
        try:
            TopologicalSorter(edges).prepare()
            return
        except CycleError as error:
            cycle = list(error.args[1])[:-1]  # each is upstream of the next
            start = min(cycle, key=order.__getitem__)
            # graphlib may report a cycle from any of its members; rotated, the message is the same
            # each time.
            start_index = cycle.index(start)
            rotated = [*cycle[start_index:], *cycle[:start_index], start]
            if len(printed := rotated) > _MAX_LISTED:
                printed = [*rotated[: _MAX_LISTED - 1], "…", start]
            message = f"{problem}: {' → '.join(printed)}"
            path = edges[start].pop(rotated[-2])
            yield FieldError(path, message, "remove one of these dependencies")
