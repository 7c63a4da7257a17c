"""Injection points, and the cluster objects whose content they get (docs/concepts/injection.md)."""

from collections.abc import Container, Iterable

from fanout.api.object_meta import Label
from fanout.errors import ErrorLocation
from fanout.package.kptfile import KPTFILE, package_problem
from fanout.selection.cluster_objects import ClusterObjectIndex, group_of
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value
from fanout.variants.functions.function_interface import mapping
from fanout.variants.manifest_objects import ManifestObject
from fanout.variants.render_model import Injection

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
        if (first := first_by_key.setdefault(point.key, point)) is not point:
            name = f"{point.kind}/{point.name}"
            raise package_problem(
                f"injection point {point.key} is also in {first.file}",
                "rename one of the two objects",
                ErrorLocation(object=name, file=point.file, line=point.line),
            )
    return tuple(points)


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
    mode = annotations[_ANNOTATION]
    required = _REQUIRED_BY_TEXT.get(mode) if isinstance(mode, str) else None
    if required is None:
        problem = f"{mode!r} is not a mode of injection"
        raise package_problem(problem, "write required or optional", where)
    if not kind or not name or kind == KPTFILE:
        remedy = "mark an object that has kind and name and is not a Kptfile"
        raise package_problem("this object cannot be an injection point", remedy, where)
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


def find_injection(
    point: InjectionPoint,
    spec: VariantSpec,
    objects: ClusterObjectIndex,
    injectable_keys: Container[str],
    previous: Injection | None = None,
) -> Injection:
    """Return the injection from the first injector whose object exists.

    `previous` is the one that the same point and spec had before; it is returned again if its
    content is the same object. Without an object it has a `problem` and no source, which holds
    the draft if the point is required.
    """
    if point.key not in injectable_keys:
        return _without_source(point, f"objects of kind {point.kind} must not be injected")
    if not spec.injectors:
        return _without_source(point, "the variant has no injectors")
    missing_names: list[str] = []
    for injector in spec.injectors:
        if (
            injector.group not in (None, point.group)
            or injector.version not in (None, point.version)
            or injector.kind not in (None, point.kind)
        ):
            continue
        # Only objects in the variant's own namespace, as in Porch (docs/concepts/injection.md).
        source = objects.get(
            point.group, point.kind, spec.namespace, injector.name, injector.version or ""
        )
        if source is not None:
            # First what is true of most variants: a value that was injected before is content.
            if (
                previous is not None
                and previous.value is not None
                and previous.value is source.get(point.field)
                and previous.source == injector.name
            ):
                return previous
            content = mapping(source).get(point.field)
            # An API server does not store the empty data of a ConfigMap.
            if content is None or (content == {} and point.field == "data"):
                return _without_source(point, f"{point.kind} {injector.name} has no {point.field}")
            return Injection(
                point=point.key,
                required=point.required,
                source=injector.name,
                value=content,
                key=f"{point.group}/{point.kind}/{spec.namespace}/{injector.name}",
            )
        missing_names.append(injector.name)
    if not missing_names:
        return _without_source(point, f"no injector has kind {point.kind}")
    return _without_source(
        point, f"no {point.kind} {' or '.join(missing_names)} in namespace {spec.namespace}"
    )


def _without_source(point: InjectionPoint, problem: str) -> Injection:
    return Injection(point.key, point.required, problem=problem)
