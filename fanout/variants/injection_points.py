"""Injection points: objects with content from the cluster (porch.md §2.1)."""

from collections.abc import Iterable

from fanout.api.fanout_configuration import InjectionRules
from fanout.api.object_meta import Label, is_secret
from fanout.api.reasons import Reason
from fanout.errors import ErrorLocation, InvalidInput
from fanout.package.kptfile import KPTFILE_NAME as KPTFILE
from fanout.selection.cluster_objects import group_of
from fanout.values import Value
from fanout.variants.functions.function_interface import mapping
from fanout.variants.manifest_objects import ManifestObject

_ANNOTATION = Label.CONFIG_INJECTION.value
_REQUIRED_BY_TEXT = {"required": True, "optional": False}


class InjectionPoint(Value):
    """An object of the package whose `data` or `spec` is taken from the cluster."""

    file: str
    number: int  # of the object in the file
    line: int
    group: str
    version: str
    kind: str
    name: str
    required: bool
    key: str  # in the name of its condition; unique in a package
    field: str  # replaced field: `data` of a ConfigMap, `spec` of others


def find_injection_points(
    objects: Iterable[tuple[str, int, ManifestObject]],
) -> tuple[InjectionPoint, ...]:
    """Return the injection points among these objects, given as (file, number, object).

    Raises InvalidInput for an annotation that is neither `required` nor `optional`, and
    for two points of one name, whose conditions in the Kptfile would be the same.
    """
    points = [point for place in objects if (point := _parse_point(*place))]
    first_by_key: dict[str, InjectionPoint] = {}
    for point in points:
        first = first_by_key.setdefault(point.key, point)
        if first is not point:
            raise InvalidInput(
                f"injection point {point.key} is also in {first.file}",
                reason=Reason.INVALID_PACKAGE,
                remedy="rename one of the two objects",
                where=ErrorLocation(
                    object=f"{point.kind}/{point.name}", file=point.file, line=point.line
                ),
            )
    return tuple(points)


def is_injectable(point: InjectionPoint, injectable: InjectionRules) -> bool:
    """Return whether the administrator allows injection; Secrets never are injectable."""
    # Beside the rules, because no configuration may make Secrets injectable.
    return not is_secret(point.group, point.kind) and injectable.allows(
        point.group, point.kind, point.field
    )


def _parse_point(file: str, number: int, manifest_object: ManifestObject) -> InjectionPoint | None:
    item = mapping(manifest_object.value)
    meta = mapping(item.get("metadata"))
    annotations = mapping(meta.get("annotations"))
    if _ANNOTATION not in annotations:
        return None
    path = ("metadata", "annotations", _ANNOTATION)
    kind, name = str(item.get("kind", "")), str(meta.get("name", ""))
    line = manifest_object.line_of(path)
    where = ErrorLocation(f"{kind}/{name}", f"metadata.annotations[{_ANNOTATION}]", file, line)
    required = (
        _REQUIRED_BY_TEXT.get(annotations[_ANNOTATION])
        if isinstance(annotations[_ANNOTATION], str)
        else None
    )
    if required is None:
        raise InvalidInput(
            f"{annotations[_ANNOTATION]!r} is not a mode of injection",
            reason=Reason.INVALID_PACKAGE,
            remedy="write required or optional",
            where=where,
        )
    if not kind or not name or kind == KPTFILE:
        raise InvalidInput(
            "this object cannot be an injection point",
            reason=Reason.INVALID_PACKAGE,
            remedy="mark an object that has kind and name and is not a Kptfile",
            where=where,
        )
    api_version = str(item.get("apiVersion", ""))
    group = group_of(api_version)
    return InjectionPoint(
        file=file,
        number=number,
        line=line,
        group=group,
        version=api_version.rpartition("/")[2],
        kind=kind,
        name=name,
        required=required,
        key=f"{kind}.{name}",
        field="data" if (group, kind) == ("", "ConfigMap") else "spec",
    )
