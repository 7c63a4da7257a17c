"""Sources of injection points: the cluster objects whose content they get (porch.md §2.1)."""

from collections.abc import Container

from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import VariantSpec
from fanout.variants.functions.function_interface import mapping
from fanout.variants.injection_points import InjectionPoint
from fanout.variants.render_model import Injection


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
        # Only objects in the variant's own namespace, as in Porch (porch.md §2.1).
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
