"""From targets and answers to variants: one template applied to one target at a time."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

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

    def __init__(self, template: Template, target: Target, answers: Answers) -> None:
        self._template = template
        self._target = target
        self._answers = answers

    def _answer(self, expression: str, field: str) -> Any:
        value = self._answers.get((self._target.entry, expression), {}).get(self._target.key)
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
        value = self._answers.get((self._target.entry, expression), {}).get(self._target.key)
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
            written = self._template.downstream
            name = "packageExpr" if written.package_expr else "package"
            sentence = f"{problem}; write a relative path like team/monitoring"
            raise _NoVariant("InvalidPath", sentence, self._field(f"downstream.{name}"))
        return f"{directory.strip('/')}/{package}".lstrip("/")

    def context(self) -> dict[str, str]:
        """packageContext.data and dataExprs; the keys that kpt writes itself are refused."""
        context = self._template.package_context
        data = self.mapping(context.data, context.data_exprs, "packageContext.dataExprs")
        taken = sorted(data.keys() & set(RESERVED_KEYS))
        if taken:
            raise _NoVariant(
                "ExpressionError",
                f"yields the key {taken[0]}, which is reserved; choose another key",
                self._field("packageContext.dataExprs"),
            )
        return data

    def remove_keys(self) -> tuple[str, ...]:
        """packageContext.removeKeys and removeKeyExprs, without duplicates, sorted."""
        context = self._template.package_context
        keys = set(context.remove_keys)
        for index, expression in enumerate(context.remove_key_exprs):
            field = f"packageContext.removeKeyExprs[{index}]"
            keys.add(self.text(None, expression, field, ""))
        return tuple(sorted(keys))

    def functions(self, section: Literal["mutators", "validators"]) -> tuple[Function, ...]:
        """A section of the pipeline, its functions with their configuration."""
        written: tuple[FunctionTemplate, ...] = getattr(self._template.pipeline, section)
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
            for index, injector in enumerate(self._template.injectors)
        )


def repository_of(policy: UpstreamPolicy, target: Target, answers: Answers) -> str | TargetFailure:
    """The name of a target's downstream repository, after the first round of answers."""
    template = policy.spec.targets[target.entry].template
    filled = _Filled(template, target, answers)
    written = template.downstream
    try:
        return filled.text(
            written.repository, written.repository_expr, "downstream.repository", target.repository
        )
    except _NoVariant as failure:
        return failure.failure(policy.metadata.name, target.key)


def assemble(
    policy: UpstreamPolicy,
    target: Target,
    repository: Repository,
    answers: Answers,
) -> VariantSpec | TargetFailure:
    """The variant that the policy makes for the target, after the second round of answers."""
    entry = policy.spec.targets[target.entry]
    template = entry.template
    filled = _Filled(template, target, answers)
    offline, unclear = filled.offline(entry.offline_when)
    meta = policy.metadata
    try:
        written = template.downstream
        package = filled.text(
            written.package, written.package_expr, "downstream.package", target.package
        )
        return VariantSpec(
            name=variant_name(meta.namespace, meta.name, target.key, target.readable),
            namespace=meta.namespace,
            policy=meta.name,
            stage=filled.text(template.stage, template.stage_expr, "stage", ""),
            target=target.key,
            upstream_repository=policy.spec.upstream.repository,
            upstream_package=policy.spec.upstream.package,
            repository=repository.metadata.name,
            path=filled.path(repository.spec.directory, package),
            context=filled.context(),
            remove_keys=filled.remove_keys(),
            mutators=filled.functions("mutators"),
            validators=filled.functions("validators"),
            injectors=filled.injectors(),
            labels=filled.mapping(template.labels, template.label_exprs, "labelExprs"),
            annotations=filled.mapping(
                template.annotations, template.annotation_exprs, "annotationExprs"
            ),
            priority=filled.number(template.priority, template.priority_expr, "priority"),
            offline=offline,
            unclear=unclear,
        )
    except _NoVariant as failure:
        return failure.failure(meta.name, target.key)


def _kind_of(value: Any) -> str:
    return "nothing" if value is None else _KINDS.get(type(value), "another type")
