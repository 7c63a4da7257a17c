"""Grouping of the input by Kargo Project, with remarks about unsupported objects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fanout.api.field_errors import FieldPath
from fanout.api.field_paths import as_mapping
from fanout.migrate.field_conversion import ObjectRemark, Remark
from fanout.migrate.kargo.kargo_fields import KARGO_GROUP, KARGO_KINDS
from fanout.migrate.kargo.kargo_objects import KargoObject
from fanout.migrate.kargo.kargo_steps import find_step_targets
from fanout.migrate.kargo.kargo_warehouse import RepositoryNames
from fanout.migrate.object_assembly import (
    SourceKey,
    duplicate_remark,
    find_mapping,
    read_key,
    read_kind,
    unconvertible_remark,
)

_NO_STEPS_PROBLEM = "there are no promotion steps, nor tasks of them"
_FUNCTIONS_REMEDY = "write what they do as functions in the template.pipeline of targets"
_UNSUPPORTED_KINDS: Mapping[str, tuple[str, str]] = {
    "Freight": (
        "there is no freight: a revision is a tag of the package",
        "tag what is to go on, and repeat approvals with `fanout approve`",
    ),
    "Promotion": ("a promotion is over once it is done", "promote by `fanout promote`"),
    "PromotionRequest": ("promotions are not objects", "promote by `fanout promote`"),
    "PromotionTask": (_NO_STEPS_PROBLEM, _FUNCTIONS_REMEDY),
    "ClusterPromotionTask": (_NO_STEPS_PROBLEM, _FUNCTIONS_REMEDY),
    "ClusterConfig": (
        "nothing binds all namespaces",
        "write its windows into a PromotionPolicy of each namespace",
    ),
    "Target": (
        "Kargo's Targets are not read",
        "write spec.targets of the policy with an objectSelector",
    ),
}


def unsupported_kind_remark(item: Any, group: str) -> Remark | None:
    """Return the remark about a Kargo kind without a counterpart, or None."""
    version, kind = as_mapping(item).get("apiVersion"), read_kind(item)
    if version != f"{group}/v1alpha1" or not isinstance(kind, str):
        return None
    if kind == "Project":
        if as_mapping(item.get("spec")).get("promotionPolicies"):
            problem = "promotion policies are read from a ProjectConfig"
            return Remark(("spec", "promotionPolicies"), problem, "move them there first")
        return Remark(("kind",), "a Project is a namespace here, and no object", is_lost=False)
    if kind not in _UNSUPPORTED_KINDS:
        return None
    problem, remedy = _UNSUPPORTED_KINDS[kind]
    approved = as_mapping(as_mapping(item.get("status")).get("approvedFor"))
    if kind == "Freight" and approved:
        stages = ", ".join(map(str, approved))
        return Remark(("status", "approvedFor"), f"approved for {stages}; {problem}", remedy)
    return Remark(("kind",), problem, remedy)


_CLUSTER_TASK_KIND = "ClusterPromotionTask"
_TASK_KINDS = ("PromotionTask", _CLUSTER_TASK_KIND)


@dataclass
class KargoProject:
    """Objects of one namespace."""

    warehouses: dict[str, KargoObject] = field(default_factory=dict)
    stages: list[KargoObject] = field(default_factory=list)
    configs: list[KargoObject] = field(default_factory=list)
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def repositories(self) -> RepositoryNames:
        """Names of the repositories in its objects; computed once all objects are present."""
        return RepositoryNames(
            step_target
            for stage in self.stages
            for step_target in find_step_targets(stage.data, self.tasks)
        )


def group_by_project(objects: Sequence[Any]) -> tuple[dict[str, KargoProject], list[ObjectRemark]]:
    """Return the objects by namespace, and remarks about objects that are not converted."""
    projects: dict[str, KargoProject] = {}
    remarks: list[ObjectRemark] = []
    seen_keys: set[SourceKey] = set()
    cluster_tasks: dict[str, Mapping[str, Any]] = {}
    for index, data in enumerate(objects):
        mapping = find_mapping(data, KARGO_KINDS, KARGO_GROUP)
        project = projects.setdefault(read_key(data)[1], KargoProject())
        if mapping is None:
            kind_remark = unsupported_kind_remark(data, KARGO_GROUP)
            remarks.append(
                (index, kind_remark or unconvertible_remark(data, KARGO_KINDS, KARGO_GROUP))
            )
            if kind_remark and read_kind(data) in _TASK_KINDS:
                tasks = cluster_tasks if read_kind(data) == _CLUSTER_TASK_KIND else project.tasks
                tasks.setdefault(read_key(data)[2], as_mapping(data.get("spec")))
            continue
        if read_key(data) in seen_keys:
            remarks.append((index, duplicate_remark()))
            continue
        seen_keys.add(read_key(data))
        if as_mapping(data.get("metadata")).get("deletionTimestamp") is not None:
            problem = "is being deleted; the object is left out"
            path: FieldPath = ("metadata", "deletionTimestamp")
            remarks.append((index, Remark(path, problem, "import it if it is to stay")))
            continue
        item = KargoObject(index, data)
        match mapping.kind:
            case "Warehouse":
                project.warehouses[item.name] = item
            case "Stage":
                project.stages.append(item)
            case _:
                project.configs.append(item)
    for project in projects.values():
        # A task of the Project takes precedence over a cluster-wide task of the same name.
        project.tasks = {**cluster_tasks, **project.tasks}
    return projects, remarks
