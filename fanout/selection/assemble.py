"""From targets and answers to variants: one template applied to one target at a time."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeVar

from fanout.api.pipeline import RESERVED_KEYS
from fanout.api.repository import Repository
from fanout.api.targets import FunctionTemplate, Template
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.package.paths import check_path
from fanout.selection.functions import function_of
from fanout.selection.model import Broken, Function, Injector, TargetFailure, VariantSpec
from fanout.selection.naming import variant_name
from fanout.selection.questions import Answers
from fanout.selection.targets import Target

_Part = TypeVar("_Part")
_RESERVED = frozenset(RESERVED_KEYS)
_KINDS = {
    bool: "a boolean",
    str: "text",
    int: "a number",
    float: "a number",
    list: "a list",
    dict: "a map",
}


class _NoVariant(Exception):
    """This target gets no variant; the others are not affected."""

    def __init__(self, reason: str, problem: str, field: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.field = field

    def failure(self, policy: str, target: str) -> TargetFailure:
        """As what the target gets instead of a variant."""
        return TargetFailure(policy, target, self.reason, self.problem, self.field)


class _Filled:
    """A template with the answers for one target put in."""

    def __init__(self, form: "_Form", target: Target) -> None:
        self._form = form
        self._target = target

    def _answer(self, expression: str, field: str) -> Any:
        value = self._form.answers.get(expression, {}).get(self._target.key)
        if isinstance(value, Broken):
            remedy = value.remedy or "correct the expression, or the target"
            problem = f"{expression}: {value.problem}; {remedy}"
            raise _NoVariant(value.reason, problem, self._field(field))
        return value

    def _field(self, name: str) -> str:
        return f"spec.targets[{self._target.entry}].template.{name}"

    def text(self, static: str | None, expression: str | None, field: str, default: str) -> str:
        """The expression's value where there is one, else the static one, else the default."""
        if not expression:
            return static if static is not None else default
        value = self._answer(expression, f"{field}Expr")
        if not isinstance(value, str):
            raise _NoVariant(
                "ExpressionError",
                f"{expression}: yields {_kind_of(value)} where text is needed; use string(...)",
                self._field(f"{field}Expr"),
            )
        return value

    def number(self, static: int | None, expression: str | None, field: str) -> int:
        """The same for a whole number, 0 by default."""
        if not expression:
            return static or 0
        value = self._answer(expression, f"{field}Expr")
        if not isinstance(value, int) or isinstance(value, bool):
            raise _NoVariant(
                "ExpressionError",
                f"{expression}: yields {_kind_of(value)} where a whole number is needed; use"
                " int(...)",
                self._field(f"{field}Expr"),
            )
        return value

    def mapping(
        self, static: Mapping[str, str], pairs: Iterable[Any], field: str
    ) -> dict[str, str]:
        """A map overlaid by key and value expressions, as in Porch."""
        result = dict(static)
        for index, pair in enumerate(pairs):
            at = f"{field}[{index}]"
            key = self.text(pair.key, pair.key_expr, f"{at}.key", "")
            result[key] = self.text(pair.value, pair.value_expr, f"{at}.value", "")
        return dict(sorted(result.items()))

    def offline(self, expression: str | None) -> tuple[bool, str]:
        """Is the target offline, and if nobody can say: why not? Then it counts, and is held."""
        if not expression:
            return False, ""
        value = self._form.answers.get(expression, {}).get(self._target.key)
        if isinstance(value, Broken):
            remedy = value.remedy or "correct the expression, or the target"
            return False, f"{expression}: {value.problem}; {remedy}"
        if not isinstance(value, bool):
            problem = f"yields {_kind_of(value)} where true or false is needed"
            return False, f"{expression}: {problem}; compare it with something"
        return value, ""

    def path(self, directory: str, package: str) -> str:
        """Where the package goes below the repository's directory."""
        problem = check_path(package)
        if problem:
            written = self._form.template.downstream
            name = "packageExpr" if written.package_expr else "package"
            sentence = f"{problem}; write a relative path like team/monitoring"
            raise _NoVariant("InvalidPath", sentence, self._field(f"downstream.{name}"))
        return f"{directory.strip('/')}/{package}".lstrip("/")

    def context(self) -> dict[str, str]:
        """packageContext.data and dataExprs; the keys that kpt writes itself are refused."""
        context = self._form.template.package_context
        data = self.mapping(context.data, context.data_exprs, "packageContext.dataExprs")
        taken = _RESERVED & data.keys()
        if taken:
            raise _NoVariant(
                "ExpressionError",
                f"yields the key {min(taken)}, which is reserved; choose another key",
                self._field("packageContext.dataExprs"),
            )
        return data

    def remove_keys(self) -> tuple[str, ...]:
        """packageContext.removeKeys and removeKeyExprs, without duplicates, sorted."""
        context = self._form.template.package_context
        keys = set(context.remove_keys)
        for index, expression in enumerate(context.remove_key_exprs):
            field = f"packageContext.removeKeyExprs[{index}]"
            keys.add(self.text(None, expression, field, ""))
        return tuple(sorted(keys))

    def functions(self, section: Literal["mutators", "validators"]) -> tuple[Function, ...]:
        """A section of the pipeline, its functions with their configuration."""
        written: tuple[FunctionTemplate, ...] = getattr(self._form.template.pipeline, section)
        return tuple(
            function_of(
                function,
                self.mapping(
                    function.config_map,
                    function.config_map_exprs,
                    f"pipeline.{section}[{index}].configMapExprs",
                ),
            )
            for index, function in enumerate(written)
        )

    def injectors(self) -> tuple[Injector, ...]:
        """The injectors, each with the name of the object that it chooses."""
        return tuple(
            Injector(
                name=self.text(injector.name, injector.name_expr, f"injectors[{index}].name", ""),
                group=injector.group,
                version=injector.version,
                kind=injector.kind,
            )
            for index, injector in enumerate(self._form.template.injectors)
        )

    def labels(self) -> dict[str, str]:
        """labels and labelExprs."""
        template = self._form.template
        return self.mapping(template.labels, template.label_exprs, "labelExprs")

    def annotations(self) -> dict[str, str]:
        """annotations and annotationExprs."""
        template = self._form.template
        return self.mapping(template.annotations, template.annotation_exprs, "annotationExprs")


class _Form:
    """An entry's template, the answers to its expressions, and what is the same for all targets."""

    def __init__(self, template: Template, answers: Mapping[str, Mapping[str, Any]]) -> None:
        self.template = template
        self.answers = answers
        context, pipeline = template.package_context, template.pipeline
        self._asked = {
            "context": bool(context.data_exprs),
            "remove_keys": bool(context.remove_key_exprs),
            "mutators": any(function.config_map_exprs for function in pipeline.mutators),
            "validators": any(function.config_map_exprs for function in pipeline.validators),
            "injectors": any(injector.name_expr for injector in template.injectors),
            "labels": bool(template.label_exprs),
            "annotations": bool(template.annotation_exprs),
        }
        self._same: dict[str, Any] = {}

    def part(self, name: str, make: Callable[[], _Part]) -> _Part:
        """A part of the variant; where no expression is asked for it, all variants share it."""
        if self._asked[name]:
            return make()
        if name not in self._same:
            self._same[name] = make()
        shared: _Part = self._same[name]
        return shared


class Assembly:
    """Makes a policy's variants of its targets, and of the answers to what its templates ask."""

    def __init__(self, policy: UpstreamPolicy, answers: Answers) -> None:
        self._policy = policy
        by_entry: dict[int, dict[str, Mapping[str, Any]]] = {}
        for (entry, expression), values in answers.items():
            by_entry.setdefault(entry, {})[expression] = values
        self._forms = [
            _Form(entry.template, by_entry.get(number, {}))
            for number, entry in enumerate(policy.spec.targets)
        ]

    def repository(self, target: Target) -> str | TargetFailure:
        """The name of a target's downstream repository, after the first round of answers."""
        form = self._forms[target.entry]
        written = form.template.downstream
        try:
            return _Filled(form, target).text(
                written.repository,
                written.repository_expr,
                "downstream.repository",
                target.repository,
            )
        except _NoVariant as failure:
            return failure.failure(self._policy.metadata.name, target.key)

    def variant(self, target: Target, repository: Repository) -> VariantSpec | TargetFailure:
        """What the policy makes for the target, after the second round of answers."""
        form = self._forms[target.entry]
        try:
            return self._variant(target, repository, form, _Filled(form, target))
        except _NoVariant as failure:
            return failure.failure(self._policy.metadata.name, target.key)

    def _variant(
        self, target: Target, repository: Repository, form: _Form, filled: _Filled
    ) -> VariantSpec:
        meta, upstream = self._policy.metadata, self._policy.spec.upstream
        template = form.template
        written = template.downstream
        offline, unclear = filled.offline(self._policy.spec.targets[target.entry].offline_when)
        package = filled.text(
            written.package, written.package_expr, "downstream.package", target.package
        )
        return VariantSpec(
            name=variant_name(meta.namespace, meta.name, target.key, target.readable),
            namespace=meta.namespace,
            policy=meta.name,
            stage=filled.text(template.stage, template.stage_expr, "stage", ""),
            target=target.key,
            upstream_repository=upstream.repository,
            upstream_package=upstream.package,
            repository=repository.metadata.name,
            path=filled.path(repository.spec.directory, package),
            context=form.part("context", filled.context),
            remove_keys=form.part("remove_keys", filled.remove_keys),
            mutators=form.part("mutators", lambda: filled.functions("mutators")),
            validators=form.part("validators", lambda: filled.functions("validators")),
            injectors=form.part("injectors", filled.injectors),
            labels=form.part("labels", filled.labels),
            annotations=form.part("annotations", filled.annotations),
            priority=filled.number(template.priority, template.priority_expr, "priority"),
            offline=offline,
            unclear=unclear,
        )


def _kind_of(value: Any) -> str:
    return "nothing" if value is None else _KINDS.get(type(value), "another type")
