"""Kargo's objects as fanout's, and everything that could not be translated, by field."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fanout.api.foreign.assembly import Judge
from fanout.api.foreign.pieces import Imported, Put, Remark
from fanout.api.foreign.walk import walk
from fanout.api.kargo.assembling import assembled, joined, pieces_of
from fanout.api.kargo.automation import automation
from fanout.api.kargo.objects import Item, steps_of
from fanout.api.kargo.policies import policies
from fanout.api.kargo.project import Project, read
from fanout.api.kargo.rows import PROJECT_CONFIG
from fanout.api.kargo.units import PROMOTION
from fanout.api.kargo.windows import windows
from fanout.api.meta import API_VERSION
from fanout.api.places import fields


def translate(objects: Sequence[Any], judge: Judge) -> Imported:
    """All objects that can be translated; `judge` names what in one of fanout's is no good.

    What it names is taken out and told, so every object of the answer passes it.
    """
    projects, remarks = read(objects)
    parts = [_translated(project, judge) for project in projects.values()]
    whole = joined([Imported((), tuple(remarks)), *parts])
    told = sorted(dict.fromkeys(whole.remarks), key=lambda said: said[0])
    return Imported(whole.objects, tuple(told))


def _translated(project: Project, judge: Judge) -> Imported:
    """The objects of one namespace: Repositories, policies, and who may go by himself."""
    made = policies(project, judge)
    there = _stages_in(made.objects)
    namespace = next((fields(it["metadata"]).get("namespace") for it in made.objects), None)
    used = {name for policy in made.objects for name in _repositories_in(policy)}
    named = tuple(project.repositories.objects(used, namespace))
    promotions = [_promotion(config, project, there, judge) for config in project.configs]
    return joined([Imported(named, ()), made, *promotions])


def _promotion(config: Item, project: Project, there: frozenset[str], judge: Judge) -> Imported:
    """The PromotionPolicy of a ProjectConfig, if it says anything that one can say."""
    stages = [stage for stage in project.stages if steps_of(stage.data)]
    joins = [stage for stage in project.stages if not steps_of(stage.data)]
    closed = windows(config, stages)
    asked = automation(config, stages, joins, there, closed.shut)
    said = [*walk(PROJECT_CONFIG, config.data), *closed.pieces, *asked]
    if not any(isinstance(piece, Put) and piece.path[0] == "spec" for piece in said):
        remarks = ((config.index, piece) for piece in said if isinstance(piece, Remark))
        return Imported((), tuple(remarks))
    name = ("metadata", "name")
    whole = [
        Put(("apiVersion",), API_VERSION, ("apiVersion",)),
        Put(("kind",), "PromotionPolicy", ("kind",)),
        *said,
        Put(("spec", "policies", 0), "*", name),
    ]
    return assembled("PromotionPolicy", pieces_of(config, whole), judge, PROMOTION, config.index)


def _stages_in(policies: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(stage["name"] for policy in policies for stage in policy["spec"]["stages"])


def _repositories_in(policy: Mapping[str, Any]) -> Iterator[str]:
    yield policy["spec"]["upstream"]["repository"]
    for target in policy["spec"]["targets"]:
        yield from (entry["name"] for entry in target["repositories"])
