"""Rules for stages: unique names, no cycles, and no fields without effect (design §6).

Linear in the number of stages and references: a generated policy may have thousands.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath
from fanout.api.field_paths import as_list, as_mapping, find_fields
from fanout.api.name_suggestions import VERY_SIMILAR, find_similar_name, suggest_name
from fanout.api.text_fields import NAME

_STAGE_NAME = re.compile(NAME)
_TEXT_LITERAL = re.compile(r"""\s*(?:'([^'\\]*)'|"([^"\\]*)")\s*""")
_MAX_REPORTED = 20  # cycles; and unknown names that get a suggestion, which is searched for
_MAX_LISTED = 10  # names in a sentence


def check_stage_graph(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for repeated names, unknown stages and cycles of an UpstreamPolicy."""
    yield from check_unique(data, "spec.stages[*].name", "stage")
    stages = as_list(as_mapping(data.get("spec")).get("stages"))
    names = [as_mapping(stage).get("name") for stage in stages]
    declared = dict.fromkeys(name for name in names if isinstance(name, str))
    references_by_stage = [
        [
            (("spec", "stages", index, *path), value)
            for path, value in find_fields(stage, "after.stages[*]")
            if isinstance(value, str)
        ]
        for index, stage in enumerate(stages)
    ]
    # a name of another type may be the missing one
    if names and all(isinstance(name, str) for name in names):
        references = [
            item
            for stage_references in references_by_stage
            for item in stage_references
            if _STAGE_NAME.match(item[1])
        ]
        references += [item for item in find_target_stages(data) if _is_reportable(*item)]
        yield from _check_stage_references(references, declared)
    edges: dict[str, dict[str, FieldPath]] = {}  # by stage and upstream stage: path of the field
    for name, stage_references in zip(names, references_by_stage, strict=True):
        if isinstance(name, str):
            edges.setdefault(
                name, {value: path for path, value in stage_references if value in declared}
            )
    yield from find_cycles(edges, "stages wait for each other", "remove one of these edges")


def find_target_stages(data: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Yield (path, stage) for each stage that a template names, also by a literal."""
    for path, value in find_fields(data, "spec.targets[*].template.stage"):
        if isinstance(value, str):
            yield path, value
    for path, value in find_fields(data, "spec.targets[*].template.stageExpr"):
        match = _TEXT_LITERAL.fullmatch(value) if isinstance(value, str) else None
        if match:
            yield path, match[1] or match[2] or ""


def check_unique(data: Mapping[str, Any], pattern: str, noun: str) -> Iterator[FieldError]:
    """Yield an error for each value that occurred before at a path of the same pattern."""
    first_paths: dict[str, FieldPath] = {}
    for path, value in find_fields(data, pattern):
        if not isinstance(value, str):
            continue
        if value in first_paths:
            yield FieldError(path, f"there are two of the name {value}", f"rename one {noun}")
        first_paths.setdefault(value, path)


def _is_reportable(path: FieldPath, name: str) -> bool:
    """Return whether an unknown name is reported here.

    Invalid names get an error of their own.
    """
    return path[-1] == "stageExpr" or _STAGE_NAME.match(name) is not None


def _check_stage_references(
    references: Sequence[tuple[FieldPath, str]], names: Mapping[str, None]
) -> Iterator[FieldError]:
    """Yield errors for references to stages that do not exist.

    A misspelled reference to a stage with an invalid name is not reported. Similar names
    are searched for the first references only: one search costs as much as there are
    stages.
    """
    unresolved = [(path, name) for path, name in references if name not in names]
    if not unresolved:
        return
    usable = [name for name in names if _STAGE_NAME.match(name)]
    invalid_names = [name for name in names if not _STAGE_NAME.match(name)]
    more = f" and {len(usable) - _MAX_LISTED} more" if len(usable) > _MAX_LISTED else ""
    allowed_names = f"use one of {', '.join(usable[:_MAX_LISTED])}{more}"
    fallback = allowed_names if usable else "declare it in spec.stages"
    for number, (path, name) in enumerate(unresolved):
        if invalid_names and find_similar_name(name, invalid_names[:_MAX_REPORTED], VERY_SIMILAR):
            continue
        remedy = suggest_name(name, usable, fallback) if number < _MAX_REPORTED else fallback
        yield FieldError(path, f"there is no stage {name}", remedy)


def find_cycles(
    edges: Mapping[str, dict[str, FieldPath]], problem: str, remedy: str
) -> Iterator[FieldError]:
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
            printed = (
                rotated
                if len(rotated) <= _MAX_LISTED
                else [*rotated[: _MAX_LISTED - 1], "…", start]
            )
            yield FieldError(
                edges[start].pop(rotated[-2]), f"{problem}: {' → '.join(printed)}", remedy
            )


_NOT_FOR_CONTROL_FLOW = ("verification", "requires", "rollout", "propagateWhen", "suspend", "pin")
_STRATEGY_BY_FIELD = {"step": "Linear", "factor": "Exponential"}


def check_stage_fields(data: Mapping[str, Any]) -> Iterator[FieldError]:
    """Yield errors for fields without effect in the stages of an UpstreamPolicy.

    An author who writes `step` without `Linear`, or `controlFlow` beside checks, expects
    something that would not happen (design §6, "Rollout inside a stage", "What counts").
    """
    for index, stage_data in enumerate(as_list(as_mapping(data.get("spec")).get("stages"))):
        stage: Mapping[str, Any] = as_mapping(stage_data)
        path: FieldPath = ("spec", "stages", index)
        if stage.get("controlFlow") is True:
            yield from _check_control_flow(stage, path)
        else:
            yield from _check_rollout(stage, (*path, "rollout"))
    yield from _check_control_flow_targets(data)


def _check_control_flow(stage: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    """Refuse checks and rollout in a control-flow stage, which has no targets."""
    if "after" not in stage:
        problem = "a controlFlow stage joins other stages, and none is named"
        yield FieldError((*path, "after"), problem, "add after, or remove controlFlow")
    for field in _NOT_FOR_CONTROL_FLOW:
        if stage.get(field):
            problem = f"{field} has no effect in a controlFlow stage, which has no targets"
            yield FieldError((*path, field), problem, "remove it, or remove controlFlow")


def _check_control_flow_targets(data: Mapping[str, Any]) -> Iterator[FieldError]:
    stages = map(as_mapping, as_list(as_mapping(data.get("spec")).get("stages")))
    control_flow_stages = {
        str(stage.get("name")) for stage in stages if stage.get("controlFlow") is True
    }
    for path, name in find_target_stages(data):
        if name in control_flow_stages:
            problem = f"stage {name} is a controlFlow stage, which has no targets"
            yield FieldError(path, problem, "choose another stage, or remove its controlFlow")


def _check_rollout(stage: Mapping[str, Any], path: FieldPath) -> Iterator[FieldError]:
    rollout = as_mapping(stage.get("rollout"))
    strategy = rollout.get("strategy", "AllAtOnce")
    for field, required_strategy in _STRATEGY_BY_FIELD.items():
        # An unknown strategy is reported by the model; which fields belong to it is unknown.
        if field in rollout and strategy in {"AllAtOnce", *_STRATEGY_BY_FIELD.values()} - {
            required_strategy
        }:
            problem = f"{field} has no effect with strategy {strategy}"
            yield FieldError(
                (*path, field), problem, f"remove it, or write strategy: {required_strategy}"
            )
    if "progressDeadline" in rollout and not stage.get("verification"):
        problem = "progressDeadline has no effect: the stage verifies nothing, so a variant is"
        problem += " never under way for long"
        yield FieldError((*path, "progressDeadline"), problem, "add verification, or remove it")
    yield from _check_groups(as_list(rollout.get("groups")), (*path, "groups"))


def _check_groups(groups: Any, path: FieldPath) -> Iterator[FieldError]:
    """Refuse groups that are always empty; variants belong to the first that matches."""
    first_indices: dict[str, int] = {}
    for index, group in enumerate(groups):
        if not isinstance(group, Mapping):
            continue
        if not any(group.get(field) for field in ("matchLabels", "matchExpressions")):
            problem = "a selector that asks for nothing chooses all that are left"
            yield FieldError(
                (*path, index), problem, "remove it: who is in no group goes last anyhow"
            )
            continue
        # By text, because selectors are mappings with lists and have no hash.
        first_index = first_indices.setdefault(repr(group), index)
        if first_index != index:
            problem = f"groups[{first_index}] chooses the same, so nothing is left for this one"
            yield FieldError((*path, index), problem, "remove one of them")
