"""Porch's objects as fanout's, and everything that could not be translated, by field."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fanout.api.faults import Path
from fanout.api.foreign.admission import Key, key_of, kind_of, origin_of, repeated, stranger
from fanout.api.foreign.assembly import Assembled, Judge, assemble
from fanout.api.foreign.pieces import Imported, Put, Remark, Said
from fanout.api.foreign.rows import Origin
from fanout.api.foreign.walk import walk
from fanout.api.kinds import KINDS
from fanout.api.meta import API_VERSION, KRMObject
from fanout.api.places import fields, items, places
from fanout.api.porch.convert import expression
from fanout.api.porch.rows import ORIGINS
from fanout.api.porch.units import UNITS
from fanout.api.validation import cross_check, validate

GROUP = "config.porch.kpt.dev"
STAGE = "all"
_SET = "PackageVariantSet"


def translate(objects: Sequence[Any], judge: Judge) -> Imported:
    """All objects that can be translated; `judge` names what in one of fanout's is no good.

    What it names is taken out and told, so every object of the answer passes it.
    """
    made: dict[int, Assembled] = {}
    remarks: list[Said] = []
    seen: dict[Key, bool] = {}  # was it translated?
    sets_first = sorted(range(len(objects)), key=lambda at: kind_of(objects[at]) != _SET)
    for index in sets_first:
        item = objects[index]
        origin = origin_of(item, ORIGINS, GROUP)
        if origin is None:
            remarks.append((index, _foreign(item)))
            continue
        kept, remark = _admitted(item, seen)
        remarks += [(index, remark)] if remark else []
        if kept:
            made[index] = assemble(KINDS[origin.becomes], _pieces(origin, item), judge, UNITS)
            seen[key_of(item)] = made[index].data is not None
            remarks += ((index, said) for said in made[index].remarks)
    remarks += _loose_ends(made)
    remarks.sort(key=lambda said: said[0])
    results = (made[index].data for index in sorted(made))
    return Imported(tuple(data for data in results if data is not None), tuple(remarks))


def expressions(data: Mapping[str, Any]) -> Iterator[tuple[Path, str]]:
    """The expressions of an object of the answer, each with its path."""
    for origin in ORIGINS:
        for row in origin.rows if origin.becomes == data.get("kind") else ():
            if row.convert is expression:
                yield from places(data, row.target)


def _foreign(item: Any) -> Remark:
    if (kind_of(item), fields(item).get("apiVersion")) == (_SET, f"{GROUP}/v1alpha1"):
        problem = "this version of PackageVariantSet is not translated; Porch reads it no more"
        return Remark(("apiVersion",), problem, f"write it as {GROUP}/v1alpha2 first")
    return stranger(item, ORIGINS, GROUP)


def _admitted(item: Any, seen: Mapping[Key, bool]) -> tuple[bool, Remark | None]:
    """Is the object to be translated, and what is to be said about that?"""
    if key_of(item) in seen:
        return False, repeated()
    _, namespace, _ = key_of(item)
    owners = items(fields(fields(item).get("metadata")).get("ownerReferences"))
    for index, owner in enumerate(owners):
        if fields(owner).get("kind") != _SET:
            continue
        path: Path = ("metadata", "ownerReferences", index)
        name = str(fields(owner).get("name"))
        if seen.get((_SET, namespace, name)):
            problem = f"the UpstreamPolicy {name} makes this variant, as the {_SET} did: left out"
            return False, Remark(path, problem, lost=False)
        problem = f"the {_SET} {name} that made it is not translated; this is as if written by hand"
        return True, Remark(path, problem, "import both together", lost=False)
    return True, None


def _pieces(origin: Origin, item: Mapping[str, Any]) -> Iterator[Put | Remark]:
    yield Put(("apiVersion",), API_VERSION, ("apiVersion",))
    yield Put(("kind",), origin.becomes, ("kind",))
    yield from walk(origin, item)
    if origin.kind == _SET:
        yield from _in_one_stage(item)


def _in_one_stage(item: Mapping[str, Any]) -> Iterator[Put | Remark]:
    """A set has no stages; without one nothing would ever be published."""
    spec: Path = ("spec",)
    for index, _ in enumerate(items(fields(item.get("spec")).get("targets"))):
        path: Path = ("spec", "targets", index)
        yield Put((*path, "template", "stage"), STAGE, (*path, "template", "stage"))
    yield Put((*spec, "stages", 0, "name"), STAGE, spec)
    problem = f"a set has no stages: all variants are in the one stage {STAGE}"
    yield Remark(spec, problem, "write stages to promote step by step", lost=False)


def _loose_ends(made: Mapping[int, Assembled]) -> Iterator[Said]:
    """What the results refer to and is not among them, each once."""
    models: dict[int, KRMObject] = {}
    for index, result in made.items():
        model = validate(result.data)[0] if result.data is not None else None
        if model is not None:
            models[index] = model
    places_of = {id(model): index for index, model in models.items()}
    told: set[str] = set()
    for model, fault in cross_check(list(models.values())):
        if fault.severity == "error" and fault.problem not in told:
            told.add(fault.problem)
            index = places_of[id(model)]
            remedy = "import it as well, or declare it"
            yield index, Remark(made[index].source(fault.path), fault.problem, remedy, lost=False)
