"""Import of Porch objects, with a remark for every field that cannot be carried over."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from fanout.api.field_errors import FieldPath
from fanout.api.field_paths import as_list, as_mapping, find_fields
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import API_VERSION, KRMObject
from fanout.api.validators.object_validation import cross_check, validate_object
from fanout.migrate.field_conversion import ImportResult, ObjectRemark, Remark, TargetField
from fanout.migrate.field_mapping import KindMapping, convert_object
from fanout.migrate.object_assembly import (
    AssembledObject,
    ObjectValidator,
    RemovalUnits,
    SourceKey,
    assemble_object,
    duplicate_remark,
    find_mapping,
    read_key,
    read_kind,
    unconvertible_remark,
)
from fanout.migrate.porch.porch_conversion import convert_expression
from fanout.migrate.porch.porch_fields import PORCH_KINDS

_TEMPLATE_PATH = "spec.targets.*.template"


def _template_units(base: str) -> Iterator[tuple[str, str]]:
    for kind in ("mutators", "validators"):
        yield f"{base}.pipeline.{kind}.*", "the function"
        yield f"{base}.pipeline.{kind}.*.tag", "the tag"
        yield f"{base}.pipeline.{kind}.*.name", "the name"
    yield f"{base}.pipeline.validators", "the list"
    yield f"{base}.injectors.*", "the injector"
    for name in ("labels", "annotations", "packageContext.data", "packageContext.removeKeys"):
        yield f"{base}.{name}.*", "the entry"
    for name in ("labelExprs", "annotationExprs"):
        yield f"{base}.{name}.*", "the entry"
    for name in ("dataExprs", "removeKeyExprs"):
        yield f"{base}.packageContext.{name}.*", "the entry"


PORCH_REMOVAL_UNITS: RemovalUnits = {
    "metadata.labels.*": "the label",
    "metadata.annotations.*": "the annotation",
    "spec.secretRef": "the reference",
    "spec.adoptionPolicy": "the field",
    "spec.deletionPolicy": "the field",
    "spec.targets.*": "the target",
    "spec.targets.*.repositories.*": "the repository",
    **dict(_template_units("spec")),
    **dict(_template_units(_TEMPLATE_PATH)),
}


PORCH_GROUP = "config.porch.kpt.dev"
DEFAULT_STAGE = "all"
_SET_KIND = "PackageVariantSet"


def import_porch_objects(objects: Sequence[Any], validate_data: ObjectValidator) -> ImportResult:
    """Import all objects that can be converted.

    `validate_data` returns the errors of an object of fanout. Fields with errors are
    removed and reported, so every object of the result passes it.
    """
    assembled_objects: dict[int, AssembledObject] = {}
    remarks: list[ObjectRemark] = []
    converted_keys: dict[SourceKey, bool] = {}  # whether the object was converted
    # A variant that a set made is left out if the set itself was converted, so sets come first.
    sets_first = sorted(
        range(len(objects)), key=lambda position: read_kind(objects[position]) != _SET_KIND
    )
    for index in sets_first:
        item = objects[index]
        mapping = find_mapping(item, PORCH_KINDS, PORCH_GROUP)
        if mapping is None:
            remarks.append((index, _unconvertible_remark(item)))
            continue
        is_admitted, remark = _admit(item, converted_keys)
        remarks += [(index, remark)] if remark else []
        if is_admitted:
            assembled_objects[index] = assemble_object(
                KINDS[mapping.target_kind],
                _convert_fields(mapping, item),
                validate_data,
                PORCH_REMOVAL_UNITS,
            )
            converted_keys[read_key(item)] = assembled_objects[index].data is not None
            remarks += ((index, entry) for entry in assembled_objects[index].remarks)
    remarks += _unresolved_references(assembled_objects)
    remarks.sort(key=lambda entry: entry[0])
    results = (assembled_objects[index].data for index in sorted(assembled_objects))
    return ImportResult(tuple(data for data in results if data is not None), tuple(remarks))


def find_expressions(data: Mapping[str, Any]) -> Iterator[tuple[FieldPath, str]]:
    """Yield (path, expression) for the expressions of an imported object."""
    for mapping in PORCH_KINDS:
        for row in mapping.rows if mapping.target_kind == data.get("kind") else ():
            if row.convert is convert_expression:
                yield from find_fields(data, row.target)


def _unconvertible_remark(item: Any) -> Remark:
    if (read_kind(item), as_mapping(item).get("apiVersion")) == (
        _SET_KIND,
        f"{PORCH_GROUP}/v1alpha1",
    ):
        problem = "this version of PackageVariantSet is not translated; Porch reads it no more"
        return Remark(("apiVersion",), problem, f"write it as {PORCH_GROUP}/v1alpha2 first")
    return unconvertible_remark(item, PORCH_KINDS, PORCH_GROUP)


def _admit(item: Any, converted_keys: Mapping[SourceKey, bool]) -> tuple[bool, Remark | None]:
    """Return whether the object is converted, and a remark or None."""
    if read_key(item) in converted_keys:
        return False, duplicate_remark()
    _, namespace, _ = read_key(item)
    owners = as_list(as_mapping(as_mapping(item).get("metadata")).get("ownerReferences"))
    for index, owner in enumerate(owners):
        if as_mapping(owner).get("kind") != _SET_KIND:
            continue
        path: FieldPath = ("metadata", "ownerReferences", index)
        name = str(as_mapping(owner).get("name"))
        if converted_keys.get((_SET_KIND, namespace, name)):
            problem = (
                f"the UpstreamPolicy {name} makes this variant, as the {_SET_KIND} did: left out"
            )
            return False, Remark(path, problem, is_lost=False)
        problem = (
            f"the {_SET_KIND} {name} that made it is not translated; this is as if written by hand"
        )
        return True, Remark(path, problem, "import both together", is_lost=False)
    return True, None


def _convert_fields(
    mapping: KindMapping, item: Mapping[str, Any]
) -> Iterator[TargetField | Remark]:
    yield TargetField(("apiVersion",), API_VERSION, ("apiVersion",))
    yield TargetField(("kind",), mapping.target_kind, ("kind",))
    yield from convert_object(mapping, item)
    if mapping.kind == _SET_KIND:
        yield from _add_default_stage(item)


def _add_default_stage(item: Mapping[str, Any]) -> Iterator[TargetField | Remark]:
    """Put all targets into one stage; without a stage nothing is published."""
    spec: FieldPath = ("spec",)
    for index, _ in enumerate(as_list(as_mapping(item.get("spec")).get("targets"))):
        path: FieldPath = ("spec", "targets", index)
        yield TargetField((*path, "template", "stage"), DEFAULT_STAGE, (*path, "template", "stage"))
    yield TargetField((*spec, "stages", 0, "name"), DEFAULT_STAGE, spec)
    problem = f"a set has no stages: all variants are in the one stage {DEFAULT_STAGE}"
    yield Remark(spec, problem, "write stages to promote step by step", is_lost=False)


def _unresolved_references(
    assembled_objects: Mapping[int, AssembledObject],
) -> Iterator[ObjectRemark]:
    """Yield a remark for each reference to an object that is not among the results."""
    models: dict[int, KRMObject] = {}
    for index, result in assembled_objects.items():
        model = validate_object(result.data)[0] if result.data is not None else None
        if model is not None:
            models[index] = model
    index_by_model = {id(model): index for index, model in models.items()}
    reported: set[str] = set()
    for model, error in cross_check(list(models.values())):
        if error.severity == "error" and error.problem not in reported:
            reported.add(error.problem)
            index = index_by_model[id(model)]
            remedy = "import it as well, or declare it"
            yield (
                index,
                Remark(
                    assembled_objects[index].source_path(error.path),
                    error.problem,
                    remedy,
                    is_lost=False,
                ),
            )
