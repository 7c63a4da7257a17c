"""What the fields of one stage mean together: one that could have no effect is refused by name.

Who writes `step` without `Linear`, or `controlFlow` beside checks, means something that would not
happen. (Design §6, "Rollout inside a stage", "What counts".)
"""

from collections.abc import Iterator, Mapping
from typing import Any

from fanout.api.faults import Fault, Path
from fanout.api.places import fields, items
from fanout.api.stage_order import stages_of_targets

_NOT_FOR_JOINS = ("verification", "requires", "rollout", "propagateWhen", "suspend", "pin")
_STRATEGIES = {"step": "Linear", "factor": "Exponential"}


def stage_field_faults(data: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of the stages in the data of an UpstreamPolicy, each stage by itself."""
    for index, written in enumerate(items(fields(data.get("spec")).get("stages"))):
        stage: Mapping[str, Any] = fields(written)
        path: Path = ("spec", "stages", index)
        if stage.get("controlFlow") is True:
            yield from _joins(stage, path)
        else:
            yield from _rollout(stage, (*path, "rollout"))
    yield from _targets_of_joins(data)


def _joins(stage: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    """A control-flow stage has no targets: there is nothing to check or to release in it."""
    if "after" not in stage:
        problem = "a controlFlow stage joins other stages, and none is named"
        yield Fault((*path, "after"), problem, "add after, or remove controlFlow")
    for field in _NOT_FOR_JOINS:
        if stage.get(field):
            problem = f"{field} has no effect in a controlFlow stage, which has no targets"
            yield Fault((*path, field), problem, "remove it, or remove controlFlow")


def _targets_of_joins(data: Mapping[str, Any]) -> Iterator[Fault]:
    stages = map(fields, items(fields(data.get("spec")).get("stages")))
    joins = {str(stage.get("name")) for stage in stages if stage.get("controlFlow") is True}
    for path, name in stages_of_targets(data):
        if name in joins:
            problem = f"stage {name} is a controlFlow stage, which has no targets"
            yield Fault(path, problem, "choose another stage, or remove its controlFlow")


def _rollout(stage: Mapping[str, Any], path: Path) -> Iterator[Fault]:
    rollout = fields(stage.get("rollout"))
    strategy = rollout.get("strategy", "AllAtOnce")
    for field, needed in _STRATEGIES.items():
        if field in rollout and strategy in {"AllAtOnce", *_STRATEGIES.values()} - {needed}:
            problem = f"{field} has no effect with strategy {strategy}"
            yield Fault((*path, field), problem, f"remove it, or write strategy: {needed}")
    if "progressDeadline" in rollout and not stage.get("verification"):
        problem = "progressDeadline has no effect: the stage verifies nothing, so a variant is"
        problem += " never under way for long"
        yield Fault((*path, "progressDeadline"), problem, "add verification, or remove it")
    yield from _groups(items(rollout.get("groups")), (*path, "groups"))


def _groups(groups: Any, path: Path) -> Iterator[Fault]:
    """Who is in an earlier group is in no later one."""
    seen: dict[str, int] = {}
    for index, group in enumerate(groups):
        if not isinstance(group, Mapping):
            continue
        if not any(group.get(field) for field in ("matchLabels", "matchExpressions")):
            problem = "a selector that asks for nothing chooses all that are left"
            yield Fault((*path, index), problem, "remove it: who is in no group goes last anyhow")
            continue
        same = seen.setdefault(repr(group), index)
        if same != index:
            problem = f"groups[{same}] chooses the same, so nothing is left for this one"
            yield Fault((*path, index), problem, "remove one of them")
