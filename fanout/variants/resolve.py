"""What one variant depends on: the cluster objects for its injection points, and the digest.

This is done for every variant in every pass, also where nothing changed, so it is kept to a few
look-ups and one hash.
"""

from collections.abc import Container
from hashlib import sha256

from fanout.api.functions import full_image
from fanout.selection.model import Function, Injector, VariantSpec
from fanout.selection.objects import ObjectIndex
from fanout.variants.canonical import canonical
from fanout.variants.functions.function import mapping
from fanout.variants.functions.registry import find, find_scripted
from fanout.variants.model import Injection, Inputs
from fanout.variants.points import Point
from fanout.variants.prepared import PreparedPackage
from fanout.variants.questions import Programs

_DIGITS = 40


def resolve(
    prepared: PreparedPackage,
    spec: VariantSpec,
    objects: ObjectIndex,
    before: Inputs | None = None,
) -> Inputs:
    """Choose the source of every injection point and digest all that the rendering depends on.

    `before` is what the very same package and spec came to: it is the answer again where the
    objects hold what they held.

    A point that gets nothing is an answer with a `problem`, not an error. Equal digests mean equal
    renderings (design §4); policy, stage, target, priority, suspension and being
    offline are not in it.
    """
    injections = tuple(
        [_injection(point, spec, objects, prepared.fillable) for point in prepared.points]
    )
    if before is not None and before.injections == injections:
        return before
    return Inputs(_digest(prepared, spec, injections), injections, objects.versions)


def _digest(prepared: PreparedPackage, spec: VariantSpec, injections: tuple[Injection, ...]) -> str:
    parts = [
        spec.name,
        spec.path,
        dict(spec.context),
        spec.remove_keys,
        [_function(function, prepared) for function in spec.mutators],
        [[item.name, item.group, item.version, item.kind] for item in spec.injectors],
        dict(spec.labels),
        dict(spec.annotations),
        [[item.point, item.source, item.value, item.problem] for item in injections],
    ]
    if spec.validators:
        parts.append([_function(function, prepared) for function in spec.validators])
    text = canonical(parts)
    return sha256(f"{prepared.fingerprint}{text}".encode()).hexdigest()[:_DIGITS]


def _function(function: Function, prepared: PreparedPackage) -> list[object]:
    parts: list[object] = [function.image, function.name, dict(function.config)]
    parts.append(_version(function, prepared.programs))
    if prepared.declared_scopes and not function.exec:
        found = find(function.image)
        parts += [prepared.declared_scopes] if found and found.by_scope else []
    further = function.further()
    return [*parts, further] if further else parts


def _version(function: Function, programs: Programs) -> str:
    """Of what is run; what is not available has none, and fails when it is to be run."""
    if function.exec:
        program = programs.executables.get(function.exec)
        return program.version if program else ""
    found = find(function.image)
    if found is not None:
        return found.version
    program = programs.images.get(full_image(function.image, function.tag))
    if program is not None:
        return program.version
    scripted = find_scripted(function.image)
    return scripted.version if scripted else ""


def _injection(
    point: Point,
    spec: VariantSpec,
    objects: ObjectIndex,
    fillable: Container[str],
) -> Injection:
    """Walk the injectors in order; the first object that is there is taken (porch.md §2.1)."""
    if point.key not in fillable:
        return _nothing(point, f"objects of kind {point.kind} may not be injected")
    if not spec.injectors:
        return _nothing(point, "the variant has no injectors")
    tried: list[str] = []
    for injector in spec.injectors:
        if not _applies(injector, point):
            continue
        source = objects.get(point.group, point.kind, spec.namespace, injector.name)
        if source is not None:
            if mapping(source).get(point.field) is None:
                return _nothing(point, f"{point.kind} {injector.name} has no {point.field}")
            return Injection(
                point=point.key,
                required=point.required,
                source=injector.name,
                value=source[point.field],
                key=f"{point.group}/{point.kind}/{spec.namespace}/{injector.name}",
            )
        tried.append(injector.name)
    if not tried:
        return _nothing(point, f"no injector is for the kind {point.kind}")
    return _nothing(point, f"no {point.kind} {' or '.join(tried)} in namespace {spec.namespace}")


def _nothing(point: Point, problem: str) -> Injection:
    return Injection(point.key, point.required, problem=problem)


def _applies(injector: Injector, point: Point) -> bool:
    return (
        injector.group in (None, point.group)
        and injector.version in (None, point.version)
        and injector.kind in (None, point.kind)
    )
