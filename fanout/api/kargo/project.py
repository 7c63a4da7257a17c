"""The input by Projects: what is translated together, and what is not translated at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from fanout.api.faults import Path
from fanout.api.foreign.admission import Key, key_of, kind_of, origin_of, repeated, stranger
from fanout.api.foreign.pieces import Remark, Said
from fanout.api.kargo.objects import Item
from fanout.api.kargo.repositories import Repositories
from fanout.api.kargo.rows import GROUP, ORIGINS
from fanout.api.kargo.steps import places
from fanout.api.kargo.strangers import remark_on
from fanout.api.places import fields

_OF_ALL = "ClusterPromotionTask"
_TASKS = ("PromotionTask", _OF_ALL)


@dataclass
class Project:
    """The objects of one namespace."""

    warehouses: dict[str, Item] = field(default_factory=dict)
    stages: list[Item] = field(default_factory=list)
    configs: list[Item] = field(default_factory=list)
    tasks: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @cached_property
    def repositories(self) -> Repositories:
        """The repositories that its objects name; asked for once the objects are all there."""
        return Repositories(
            place for stage in self.stages for place in places(stage.data, self.tasks)
        )


def read(objects: Sequence[Any]) -> tuple[dict[str, Project], list[Said]]:
    """The objects by their Projects, and what is said about those that are none of them."""
    projects: dict[str, Project] = {}
    remarks: list[Said] = []
    seen: set[Key] = set()
    shared: dict[str, Mapping[str, Any]] = {}
    for index, data in enumerate(objects):
        origin = origin_of(data, ORIGINS, GROUP)
        project = projects.setdefault(key_of(data)[1], Project())
        if origin is None:
            known = remark_on(data, GROUP)
            remarks.append((index, known or stranger(data, ORIGINS, GROUP)))
            if known and kind_of(data) in _TASKS:
                tasks = shared if kind_of(data) == _OF_ALL else project.tasks
                tasks.setdefault(key_of(data)[2], fields(data.get("spec")))
            continue
        if key_of(data) in seen:
            remarks.append((index, repeated()))
            continue
        seen.add(key_of(data))
        if fields(data.get("metadata")).get("deletionTimestamp") is not None:
            problem = "is being deleted; the object is left out"
            path: Path = ("metadata", "deletionTimestamp")
            remarks.append((index, Remark(path, problem, "import it if it is to stay")))
            continue
        item = Item(index, data)
        match origin.kind:
            case "Warehouse":
                project.warehouses[item.name] = item
            case "Stage":
                project.stages.append(item)
            case _:
                project.configs.append(item)
    for project in projects.values():
        project.tasks = {**shared, **project.tasks}
    return projects, remarks
