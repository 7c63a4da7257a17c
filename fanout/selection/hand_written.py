"""A PackageVariant that a person wrote: it names its one target itself."""

from fanout.api.package_variant import PackageVariant
from fanout.api.pipeline import Function as WrittenFunction
from fanout.api.repository import Repository
from fanout.selection.functions import function_of
from fanout.selection.model import Function, Injector, VariantSpec


def hand_written(variant: PackageVariant, downstream: Repository) -> VariantSpec:
    """The variant as selection knows it; it belongs to no policy and to no stage."""
    spec, meta = variant.spec, variant.metadata
    return VariantSpec(
        name=meta.name,
        namespace=meta.namespace,
        policy="",
        stage="",
        target=f"PackageVariant/{meta.namespace}/{meta.name}",
        upstream_repository=spec.upstream.repository,
        upstream_package=spec.upstream.package,
        repository=downstream.metadata.name,
        path=f"{downstream.spec.directory.strip('/')}/{spec.downstream.package}".lstrip("/"),
        context=dict(sorted(spec.package_context.data.items())),
        remove_keys=tuple(sorted(spec.package_context.remove_keys)),
        mutators=tuple(map(_function, spec.pipeline.mutators)),
        validators=tuple(map(_function, spec.pipeline.validators)),
        injectors=tuple(
            Injector(item.name, item.group, item.version, item.kind) for item in spec.injectors
        ),
        labels=dict(sorted(spec.labels.items())),
        annotations=dict(sorted(spec.annotations.items())),
        suspended=spec.suspend,
    )


def _function(written: WrittenFunction) -> Function:
    return function_of(written, dict(sorted(written.config_map.items())))
