"""Builder of variants: one template applied to one target at a time.

Expressions are not evaluated here; their values come as plain data from the two rounds
of `template_fields`.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import TypeVar

from fanout.api.git_repository import Repository
from fanout.api.package_variant import RESERVED_KEYS, Function, PackageVariant
from fanout.api.upstream_policy import FunctionTemplate, TargetEntry, UpstreamPolicy
from fanout.package.package_limits import find_package_path_problem
from fanout.selection.target_selection import VariantTarget
from fanout.selection.template_fields import (
    ExpressionValues,
    TemplateFailure,
    TemplateFields,
    Values,
    describe_unusable,
)
from fanout.selection.variant_spec import (
    FunctionSpec,
    InjectorSpec,
    TargetFailure,
    VariantSpec,
    build_variant_name,
)


def _build_function(api_function: Function, config: Mapping[str, str]) -> FunctionSpec:
    return FunctionSpec(
        image=api_function.image,
        name=api_function.name or "",
        config=config,
        exec=api_function.exec or "",
        tag=api_function.tag or "",
        config_path=api_function.config_path or "",
        selectors=tuple(row.conditions() for row in api_function.selectors),
        exclude=tuple(row.conditions() for row in api_function.exclude),
    )


_Part = TypeVar("_Part")
_RESERVED = frozenset(RESERVED_KEYS)


class _TemplateReader:
    """Template of one entry of `targets`, whose parts return values by target key.

    Every part may raise TemplateFailure.
    """

    def __init__(
        self, number: int, entry: TargetEntry, values_by_expression: Mapping[str, Values]
    ) -> None:
        self._fields = fields = TemplateFields(number, values_by_expression)
        self._entry, template = entry, entry.template
        self._offline = (
            values_by_expression.get(entry.offline_when, {}) if entry.offline_when else {}
        )
        downstream, pipeline = template.downstream, template.pipeline
        self.repository = fields.build_field(
            downstream.repository, downstream.repository_expr, "downstream.repositoryExpr"
        )
        self.package = fields.build_field(
            downstream.package, downstream.package_expr, "downstream.packageExpr"
        )
        self.stage = fields.build_field(template.stage, template.stage_expr, "stageExpr")
        self.priority = fields.build_field(
            template.priority, template.priority_expr, "priorityExpr"
        )
        self.context = self._context()
        context = template.package_context
        key_fields = [
            fields.build_field(None, expression, f"packageContext.removeKeyExprs[{index}]")
            for index, expression in enumerate(context.remove_key_exprs)
        ]
        self.remove_keys = _share_constant(
            lambda key: tuple(
                sorted({*context.remove_keys, *(it.to_text(key) for it in key_fields)})
            ),
            varies=bool(key_fields),
        )
        self.mutators = self._functions("mutators", pipeline.mutators)
        self.validators = self._functions("validators", pipeline.validators)
        injectors = [
            (
                fields.build_field(it.name, it.name_expr, f"injectors[{index}].nameExpr"),
                (it.group, it.version, it.kind),
            )
            for index, it in enumerate(template.injectors)
        ]
        self.injectors = _share_constant(
            lambda key: tuple([InjectorSpec(name.to_text(key), *kind) for name, kind in injectors]),
            varies=any(name.expression for name, _ in injectors),
        )
        labels = fields.build_map(template.labels, template.label_exprs, "labelExprs")
        self.labels = _share_constant(labels.to_map, varies=bool(labels.pairs))
        annotations = fields.build_map(
            template.annotations, template.annotation_exprs, "annotationExprs"
        )
        self.annotations = _share_constant(annotations.to_map, varies=bool(annotations.pairs))

    def offline(self, key: str) -> tuple[bool, str]:
        """Return whether the target is offline; if unknown, False and why: it is held then."""
        if not (expression := self._entry.offline_when):
            return False, ""
        value = self._offline.get(key)
        if isinstance(value, bool):
            return value, ""
        requirement = "true or false is needed; compare it with a value"
        return False, describe_unusable(expression, value, requirement)

    def path(self, directory: str, package: str) -> str:
        """Return the package's path in the repository. Raises TemplateFailure if invalid."""
        if problem := find_package_path_problem(package):
            name = "packageExpr" if self._entry.template.downstream.package_expr else "package"
            sentence = f"{problem}; write a relative path like team/monitoring"
            raise TemplateFailure(
                "InvalidPath", sentence, self._fields.field_path(f"downstream.{name}")
            )
        return f"{directory.strip('/')}/{package}".lstrip("/")

    def _context(self) -> Callable[[str], dict[str, str]]:
        """Build packageContext.data and dataExprs. The keys that kpt writes itself are refused."""
        package_context = self._entry.template.package_context
        field = "packageContext.dataExprs"
        template_map = self._fields.build_map(
            package_context.data, package_context.data_exprs, field
        )

        def build(key: str) -> dict[str, str]:
            data = template_map.to_map(key)
            reserved = _RESERVED & data.keys()
            if reserved:
                raise TemplateFailure(
                    "ExpressionError",
                    f"yields the key {min(reserved)}, which is reserved; choose another key",
                    self._fields.field_path(field),
                )
            return data

        return _share_constant(build, varies=bool(template_map.pairs))

    def _functions(
        self, section: str, functions: tuple[FunctionTemplate, ...]
    ) -> Callable[[str], tuple[FunctionSpec, ...]]:
        """Build a section of the pipeline: its functions with their configuration."""
        template_fields = [
            self._fields.build_map(
                function.config_map,
                function.config_map_exprs,
                f"pipeline.{section}[{index}].configMapExprs",
            )
            for index, function in enumerate(functions)
        ]

        def build(key: str) -> tuple[FunctionSpec, ...]:
            pairs = zip(functions, template_fields, strict=True)
            return tuple(_build_function(function, blank.to_map(key)) for function, blank in pairs)

        return _share_constant(build, varies=any(blank.pairs for blank in template_fields))


def _share_constant(build: Callable[[str], _Part], *, varies: bool) -> Callable[[str], _Part]:
    """Share one value among all targets if the part evaluates no expression."""
    if varies:
        return build
    # Lazily, because the part may raise: that must fail the variants, not the template. Sharing one
    # value saves most of the memory and digesting of policies with thousands of targets.
    shared = cache(lambda: build(""))
    return lambda _: shared()


class VariantBuilder:
    """Builds a policy's variants from targets and values of template expressions."""

    def __init__(self, policy: UpstreamPolicy, values_by_expression: ExpressionValues) -> None:
        self._policy = policy
        by_entry: dict[int, dict[str, Values]] = {}
        for (entry, expression), values in values_by_expression.items():
            by_entry.setdefault(entry, {})[expression] = values
        self._templates = [
            _TemplateReader(number, entry, by_entry.get(number, {}))
            for number, entry in enumerate(policy.spec.targets)
        ]

    def find_repository(self, target: VariantTarget) -> str | TargetFailure:
        """Return a target's downstream repository after the first round, or its failure."""
        try:
            return self._templates[target.entry].repository.to_text(target.key, target.repository)
        except TemplateFailure as failure:
            return failure.to_target_failure(target.key)

    def build_variant(
        self, target: VariantTarget, repository: Repository
    ) -> VariantSpec | TargetFailure:
        """Build the variant for the target, after the second round of values."""
        meta, upstream = self._policy.metadata, self._policy.spec.upstream
        template, key = self._templates[target.entry], target.key
        try:
            offline, offline_error = template.offline(key)
            package = template.package.to_text(key, target.package)
            return VariantSpec(
                name=build_variant_name(meta.namespace, meta.name, key, target.readable),
                namespace=meta.namespace,
                policy=meta.name,
                stage=template.stage.to_text(key),
                target=key,
                upstream_repository=upstream.repository,
                upstream_package=upstream.package,
                repository=repository.metadata.name,
                path=template.path(repository.spec.directory, package),
                context=template.context(key),
                remove_keys=template.remove_keys(key),
                mutators=template.mutators(key),
                validators=template.validators(key),
                injectors=template.injectors(key),
                labels=template.labels(key),
                annotations=template.annotations(key),
                priority=template.priority.to_number(key),
                offline=offline,
                offline_error=offline_error,
            )
        except TemplateFailure as failure:
            return failure.to_target_failure(key)


def build_hand_written(variant: PackageVariant, downstream: Repository) -> VariantSpec:
    """Build the variant of a PackageVariant that a person wrote. It has no policy and no stage."""
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
        mutators=tuple(map(_hand_written_function, spec.pipeline.mutators)),
        validators=tuple(map(_hand_written_function, spec.pipeline.validators)),
        injectors=tuple(
            InjectorSpec(item.name, item.group, item.version, item.kind) for item in spec.injectors
        ),
        labels=dict(sorted(spec.labels.items())),
        annotations=dict(sorted(spec.annotations.items())),
        suspended=spec.suspend,
    )


def _hand_written_function(api_function: Function) -> FunctionSpec:
    return _build_function(api_function, dict(sorted(api_function.config_map.items())))
