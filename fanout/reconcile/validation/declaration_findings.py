"""Findings of `fanout validate` about targets, selectors and function configuration.

Variants of every policy are resolved as in a pass, without Git, to report what a pass
would refuse or hold. An error makes a target fail in every sweep; a warning may be
intended, or only the package can decide. Equal findings of many targets are combined.

The expressions of stages are evaluated for the targets that are in them: a condition or a check
whose expression fails for a target holds that target's variant in every pass, and the pass reports
it only once the variant is that far.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime

from fanout.api.field_errors import Severity, suggest_name
from fanout.api.object_meta import GROUP
from fanout.api.reasons import Reason
from fanout.api.results import NO_AGGREGATES
from fanout.api.text_fields import format_value, pluralize
from fanout.api.upstream_policy import FunctionTemplate, UpstreamPolicy, VariantTemplate
from fanout.calendar.publication_calendar import compute_window_state
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.errors import InvalidInput
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.gates.policy_windows import build_calendars
from fanout.ports import Sandbox
from fanout.reconcile.ownership.path_claims import PathClaims
from fanout.reconcile.pass_results import PassProblem
from fanout.reconcile.problem_aggregation import ProblemGroup, group_problems
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, resolve_policies
from fanout.reconcile.selection.selector_warnings import find_missing_sources
from fanout.selection.label_selector import matches
from fanout.selection.path_collisions import PathOwner
from fanout.selection.variant_spec import ExpressionFailure, TargetFailure, VariantSpec
from fanout.values import as_data, replace
from fanout.variants.function_registry import find_function, find_script_function
from fanout.variants.functions.function_interface import UnknownField

_CONDITION = "propagateWhen"


class _TargetProblem(TargetFailure):
    """Problem of one target, at a field of its policy."""

    severity: Severity = "error"


def _find_stage_expression_failures(
    resolved_policy: ResolvedPolicy, sandbox: Sandbox
) -> Iterator[_TargetProblem]:
    """Yield a problem for each expression of a stage and each target for which it fails.

    Only expressions that read `target`, and conditions that read the counts of their stage as
    they are before a rollout: the revision and the answer to a check are known in a pass only.
    """
    policy, budget = resolved_policy.upstream_policy, EvaluationBudget()
    for index, stage in enumerate(policy.spec.stages if policy is not None else ()):
        variants = [
            it
            for it in resolved_policy.variants
            if it.stage == stage.name and it.name in resolved_policy.expression_variables
        ]
        if not variants:
            continue
        counts = as_data(replace(NO_AGGREGATES, total=len(variants)))
        rows = [
            {"target": resolved_policy.expression_variables[it.name]["target"], "stage": counts}
            for it in variants
        ]
        # By field path within the stage: conditions, and addresses of checks.
        texts = {
            f"{_CONDITION}[{number}]": text for number, text in enumerate(stage.propagate_when)
        }
        texts |= {
            f"{section}[{number}].{check.method.value}.{name}Expr": expression
            for section in ("requires", "verification")
            for number, check in enumerate(getattr(stage, section))
            for name in ("name", "address", "query", "url")
            if (expression := getattr(check.machine_check, f"{name}_expr", None))
        }
        broken = sandbox.compile(list(texts.values()), [])
        names, _ = sandbox.free_variables(list(texts.values()), [])
        names_by_field = dict(zip(texts, names, strict=True))
        expressions = {
            field: text
            for field, text in texts.items()
            if text not in broken
            and names_by_field[field]
            <= ({"target", "stage"} if field.startswith(_CONDITION) else {"target"})
        }
        values = sandbox.evaluate(list(expressions.values()), rows, budget) if expressions else []
        for (field, text), row_values in zip(expressions.items(), values, strict=True):
            reads_counts = "stage" in names_by_field[field]
            for variant, value in zip(variants, row_values, strict=True):
                # One that fails for these counts may not for others.
                if reads_counts and isinstance(value, ExpressionFailure):
                    continue
                is_condition = field.startswith(_CONDITION)
                if isinstance(value, bool if is_condition else str) and value != "":
                    continue
                wanted = "true or false" if is_condition else "a string that is not empty"
                if isinstance(value, ExpressionFailure):
                    remedy = value.remedy or "correct the expression, or the target"
                    problem = f"{value.problem}; {remedy}"
                else:
                    problem = f"yields {format_value(value)}, expected {wanted}"
                yield _TargetProblem(
                    variant.target,
                    Reason.EXPRESSION_ERROR,
                    f"{text}: {problem}",
                    f"spec.stages[{index}].{field}",
                )


Locate = Callable[[str, str, str, str], str]
"""Group, kind, namespace and name of an object → `file:line`, or "" where that is not known."""

_MAX_SHOWN = 3  # targets that a finding names


def find_target_findings(
    declared: DeclaredObjects,
    sandbox: Sandbox,
    locate: Locate,
    reported_findings: Iterable[Finding],
) -> tuple[Finding, ...]:
    """Evaluate all policies.

    Fields for which `reported_findings` has an error are left out, and missing objects that a
    file may declare that cannot be read.
    """
    fields_with_errors = {
        (it.where.object, it.where.field) for it in reported_findings if it.severity == "error"
    }
    resolved_policies = resolve_policies(declared, sandbox)
    # The present owners of paths are on record, and who can write a repository shows in it;
    # neither is read here.
    claims = PathClaims.build(resolved_policies, ())
    collisions = claims.find_refusals({}, claims.claims_by_access)
    findings: list[Finding] = []
    for resolved_policy in resolved_policies:
        declaration, policy = resolved_policy.declaration, resolved_policy.upstream_policy
        assert declaration is not None, "a policy is resolved from a declaration"
        problems_by_field: defaultdict[tuple[str, Severity], list[PassProblem]] = defaultdict(list)
        for it in (
            *_find_target_problems(resolved_policy, collisions, declared),
            *_find_stage_expression_failures(resolved_policy, sandbox),
        ):
            target = resolved_policy.targets.get(it.target)
            problem = PassProblem(
                policy=declaration.identity,
                subject=it.target,
                reason=it.reason,
                message=it.problem,
                noun="target",
                names=(target.readable,) if target is not None else (),
            )
            problems_by_field[it.field, it.severity].append(problem)
        for (field, severity), problems in problems_by_field.items():
            where = declared.where(declaration, field)
            findings += [
                Finding(where, _format_group(group, resolved_policy, locate), "", severity)
                for group in group_problems(problems)
            ]
        if policy is not None and not any(declared.find_unusable_targets(policy)):
            findings += _find_unmatched_groups(resolved_policy, policy, declared)
    return tuple(
        it for it in findings if (it.where.object, it.where.field) not in fields_with_errors
    )


def _format_group(group: ProblemGroup, resolved_policy: ResolvedPolicy, locate: Locate) -> str:
    """Format the targets of a group, the first of them with locations, and their problem."""
    names = sorted(group.subjects)
    if resolved_policy.upstream_policy is None:
        return group.first.message
    shown: list[str] = []
    for name in names[:_MAX_SHOWN]:
        target = resolved_policy.targets.get(name)
        kind, _, qualified_name = name.partition("/")
        kind, _, api_group = kind.partition(".")
        namespace, _, object_name = qualified_name.partition("/")
        if target is not None and "repo" in target.object:  # a repository selected by name
            api_group, object_name = GROUP, target.repository
            namespace = resolved_policy.namespace
        elif kind == "Repository" and not api_group:
            api_group = GROUP
        location = locate(api_group, kind, namespace, object_name)
        shown.append(f"{name} ({location})" if location else name)
    prefix = f"{pluralize(len(names), 'target')}: " if len(names) > 1 else "target "
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{prefix}{', '.join(shown)}{more}: {group.first.message}"


def _find_target_problems(
    resolved_policy: ResolvedPolicy, collisions: Mapping[PathOwner, str], declared: DeclaredObjects
) -> Iterator[_TargetProblem]:
    declaration = resolved_policy.declaration
    assert declaration is not None, "a policy is resolved from a declaration"
    for failure in resolved_policy.failures:
        if failure.is_consequence:
            continue
        # The sentence of a pass begins with the place, which the finding has by itself.
        place = f"{declared.where(declaration, failure.field)}: "
        problem = failure.problem.removeprefix(place)
        yield _TargetProblem(failure.target, failure.reason, problem, failure.field)
    loses_all = resolved_policy.upstream_policy is not None and all(
        (it.namespace, it.name) in collisions for it in resolved_policy.variants
    )
    for spec in resolved_policy.variants:
        yield from _find_stage_problems(resolved_policy, spec, declared)
        path, template = _find_template(resolved_policy, spec.target)
        # A source may be of any kind.
        missing = find_missing_sources(spec, declared.objects) if not declared.unread else ()
        for index, problem in missing:
            suffix = "Expr" if template and template.injectors[index].name_expr else ""
            yield _TargetProblem(
                spec.target,
                Reason.REQUIRED_INJECTION_MISSING,
                f"{problem}; if the injection point is required, the variant is held: declare the"
                " object, or correct the injector",
                f"{path}.injectors[{index}].name{suffix}",
                severity="warning",
            )
        if collision := collisions.get((spec.namespace, spec.name)):
            suffix = "Expr" if template and template.downstream.package_expr else ""
            field = f"{path}.downstream.package{suffix}"
            # Some lost variants are a warning: the present owner keeps the path, and is unknown
            # here. A policy without any other variant is a mistake, such as a fixed path.
            severity: Severity = "error" if loses_all else "warning"
            yield _TargetProblem(
                spec.target, Reason.PATH_COLLISION, collision, field, severity=severity
            )


def _find_stage_problems(
    resolved_policy: ResolvedPolicy, spec: VariantSpec, declared: DeclaredObjects
) -> Iterator[_TargetProblem]:
    policy = resolved_policy.upstream_policy
    if policy is None:
        return
    stages = [stage.name for stage in policy.spec.stages]
    if stages and spec.stage not in stages:
        path, template = _find_template(resolved_policy, spec.target)
        # An unknown stage is an error; no stage may be intended.
        severity: Severity = "error" if spec.stage else "warning"
        problem = "it is in no stage, so its variant is held"
        if spec.stage:
            remedy = suggest_name(spec.stage, stages, f"there are: {', '.join(stages)}")
            problem = f"the policy has no stage {spec.stage}; {remedy}"
        field = f"{path}.stage{'Expr' if template and template.stage_expr else ''}"
        yield _TargetProblem(spec.target, Reason.NOT_IN_STAGE, problem, field, severity=severity)
    if spec.offline_error:
        field = f"spec.targets[{resolved_policy.targets[spec.target].entry}].offlineWhen"
        place = f"{declared.where(policy, field)}: "
        problem = spec.offline_error.removeprefix(place)
        yield _TargetProblem(spec.target, Reason.OFFLINE, problem, field)


def _find_template(resolved_policy: ResolvedPolicy, key: str) -> tuple[str, VariantTemplate | None]:
    """Return the field path that defines a target's variant, and its template."""
    if resolved_policy.upstream_policy is None:
        return "spec", None
    entry = resolved_policy.targets[key].entry
    template = resolved_policy.upstream_policy.spec.targets[entry].template
    return f"spec.targets[{entry}].template", template


def _find_unmatched_groups(
    resolved_policy: ResolvedPolicy, policy: UpstreamPolicy, declared: DeclaredObjects
) -> Iterator[Finding]:
    """Yield a warning for each rollout group that selects no variant of its stage."""
    for index, stage in enumerate(policy.spec.stages):
        variants = [spec for spec in resolved_policy.variants if spec.stage == stage.name]
        groups = stage.rollout.groups if stage.rollout and variants else ()
        labels = [
            {**resolved_policy.labels_by_target[it.target], **it.labels}
            for it in (variants if groups else ())
        ]
        for number, group in enumerate(groups):
            if not any(matches(group, it) for it in labels):
                where = declared.where(policy, f"spec.stages[{index}].rollout.groups[{number}]")
                none = f"none of {pluralize(len(variants), 'variant')} of stage {stage.name}"
                remedy = "compare them with the labels of the targets"
                yield Finding(where, f"{none} has these labels", remedy, "warning")


def find_function_findings(declared: DeclaredObjects) -> tuple[Finding, ...]:
    """Return a finding for every configuration that its function would refuse.

    Values of expressions are not available; of such a configuration only the keys are
    validated.
    """
    policy_pipelines = [
        (policy, f"spec.targets[{index}].template.pipeline", entry.template.pipeline)
        for policy in declared.policies
        for index, entry in enumerate(policy.spec.targets)
    ]
    variant_pipelines = [
        (variant, "spec.pipeline", variant.spec.pipeline) for variant in declared.variants
    ]
    functions = (
        (declaration, f"{field}.{section}[{index}].configMap", function)
        for declaration, field, pipeline in (*policy_pipelines, *variant_pipelines)
        for section in ("mutators", "validators")
        for index, function in enumerate(getattr(pipeline, section))
    )
    findings: list[Finding] = []
    for declaration, field, function in functions:
        implementation = find_function(function.image) or find_script_function(function.image)
        if implementation is None or function.config_path:
            continue
        exprs = function.config_map_exprs if isinstance(function, FunctionTemplate) else ()
        data: dict[str, str] = {**function.config_map}
        data |= {pair.key: pair.value or "x" for pair in exprs if pair.key}
        try:
            implementation.configure({"apiVersion": "v1", "kind": "ConfigMap", "data": data})
        except InvalidInput as error:
            if not exprs or isinstance(error, UnknownField):
                # `configMap` has the keys of the ConfigMap's data.
                problem = error.problem.removeprefix("data.").replace(" data.", " ", 1)
                sentence = f"{implementation.name}: {problem}"
                findings.append(Finding(declared.where(declaration, field), sentence, error.remedy))
    return tuple(findings)


def find_closed_windows(declared: DeclaredObjects, now: datetime) -> Iterator[Finding]:
    """Yield a warning for each PromotionPolicy whose windows never open from `now` on."""
    for promotion in declared.promotions:
        calendars = build_calendars([promotion])
        if not calendars:
            continue
        state = compute_window_state(calendars, now)
        if not state.open and state.until is None:
            where = declared.where(promotion, "spec.windows")
            problem = f"nothing is ever published: {state.message}"
            remedy = "shorten the deny windows, or add an allow window outside them"
            yield Finding(where, problem, remedy, "warning")
