"""Digest of a variant: one hash of everything that its rendering depends on.

Computed for every variant in every pass, even where nothing changed, and therefore
limited to a few look-ups and one hash.
"""

from hashlib import sha256

from fanout.api.function_catalog import full_image
from fanout.package.field_edits import canonical_text
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import FunctionSpec, VariantSpec
from fanout.variants.function_registry import find_function, find_script_function
from fanout.variants.function_requests import AllowedPrograms
from fanout.variants.injection_points import find_injection
from fanout.variants.package_preparation import PreparedPackage
from fanout.variants.render_model import RenderInputs

_DIGITS = 40


def resolve_inputs(
    prepared: PreparedPackage,
    spec: VariantSpec,
    objects: ClusterObjectIndex,
    previous: RenderInputs | None = None,
) -> RenderInputs:
    """Choose the source of every injection point and digest all inputs of the rendering.

    `previous` are the inputs of the same prepared package and spec; they are returned again if the
    objects are unchanged. A point without a source has a `problem` and is not an error. Equal
    digests mean equal renderings (docs/concepts/variants.md); policy, stage, target, priority,
    suspension and being offline are not part of the digest.
    """
    points, keys = prepared.points, prepared.injectable_keys
    before = previous.injections if previous is not None else [None] * len(points)
    injections = tuple(
        [
            find_injection(point, spec, objects, keys, injection)
            for point, injection in zip(points, before, strict=True)
        ]
    )
    # Returning the same object also lets later phases compare by identity whether anything changed.
    if previous is not None and previous.injections == injections:
        return previous
    parts = [
        spec.name,
        spec.path,
        dict(spec.context),
        spec.remove_keys,
        [_function_parts(function, prepared) for function in spec.mutators],
        [[item.name, item.group, item.version, item.kind] for item in spec.injectors],
        dict(spec.labels),
        dict(spec.annotations),
        [[item.point, item.source, item.value, item.problem] for item in injections],
    ]
    # Appended only where present, so that the digests of variants without validators stay the same.
    if spec.validators:
        parts.append([_function_parts(function, prepared) for function in spec.validators])
    digest = sha256(f"{prepared.fingerprint}{canonical_text(parts)}".encode()).hexdigest()[:_DIGITS]
    return RenderInputs(digest, injections, objects.content_hashes)


def _function_parts(function: FunctionSpec, prepared: PreparedPackage) -> list[object]:
    parts: list[object] = [function.image, function.name, dict(function.config)]
    parts.append(_function_version(function, prepared.limits.programs))
    if prepared.declared_scopes and not function.exec:
        catalog_function = find_function(function.image)
        parts += (
            [prepared.declared_scopes] if catalog_function and catalog_function.uses_scopes else []
        )
    further_fields = function.extra_fields()
    return [*parts, further_fields] if further_fields else parts


def _function_version(function: FunctionSpec, programs: AllowedPrograms) -> str:
    """Return the version of the function; "" if unavailable, which fails when it is run."""
    if function.exec:
        program = programs.executables.get(function.exec)
        return program.version if program else ""
    if (catalog_function := find_function(function.image, function.tag)) is not None:
        return catalog_function.version
    if (program := programs.images.get(full_image(function.image, function.tag))) is not None:
        return program.version
    script_function = find_script_function(function.image)
    return script_function.version if script_function else ""
