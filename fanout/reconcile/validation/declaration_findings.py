"""Findings of `fanout validate` about targets, selectors and references.

Variants of every policy are resolved as in a pass, without Git, to report what a pass
would refuse or hold. An error makes a target fail in every sweep; a warning may be
intended, or only the package can decide. Equal findings of many targets are combined.

The expressions of stages are evaluated for the targets that are in them: a condition or a check
whose expression fails for a target holds that target's variant in every pass, and the pass reports
it only once the variant is that far.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from fanout.api.field_errors import Severity, suggest_name
from fanout.api.git_repository import Repository
from fanout.api.object_meta import GROUP
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.reasons import Reason
from fanout.api.results import NO_AGGREGATES
from fanout.api.text_fields import format_value, pluralize
from fanout.api.upstream_policy import UpstreamPolicy, VariantTemplate
from fanout.calendar.publication_calendar import compute_window_state
from fanout.declared.declared_objects import DeclaredObjects, own_kind
from fanout.declared.finding import Finding, group_findings
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.gates.stage_rules import build_calendars
from fanout.ports import Sandbox
from fanout.reconcile.ownership.path_claims import PathClaims
from fanout.reconcile.pass_results import PassProblem
from fanout.reconcile.problem_aggregation import ProblemGroup, group_problems
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy, resolve_policies
from fanout.selection.cluster_objects import ClusterObjectIndex, group_of
from fanout.selection.label_selector import matches
from fanout.selection.path_collisions import PathOwner
from fanout.selection.target_selection import (
    TargetInventory,
    find_unmatched,
    select_targets,
    usable_repositories,
)
from fanout.selection.variant_spec import ExpressionFailure, TargetFailure, VariantSpec
from fanout.values import as_data, replace

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
        if policy is None or any(declared.find_unusable_targets(policy)):
            continue
        # Rollout groups that select no variant of their stage.
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
                    findings.append(Finding(where, f"{none} has these labels", remedy, "warning"))
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
    policy = resolved_policy.upstream_policy
    loses_all = policy is not None and all(
        (it.namespace, it.name) in collisions for it in resolved_policy.variants
    )
    stages = [stage.name for stage in policy.spec.stages] if policy is not None else []
    for spec in resolved_policy.variants:
        path, build = "spec", partial(_TargetProblem, spec.target)
        template: VariantTemplate | None = None
        if policy is not None:
            entry = resolved_policy.targets[spec.target].entry
            path, template = f"spec.targets[{entry}].template", policy.spec.targets[entry].template
        if stages and spec.stage not in stages:
            # An unknown stage is an error; no stage may be intended.
            severity: Severity = "error" if spec.stage else "warning"
            problem = "it is in no stage, so its variant is held"
            if spec.stage:
                remedy = suggest_name(spec.stage, stages, f"there are: {', '.join(stages)}")
                problem = f"the policy has no stage {spec.stage}; {remedy}"
            field = f"{path}.stage{'Expr' if template and template.stage_expr else ''}"
            yield build(Reason.NOT_IN_STAGE, problem, field, severity=severity)
        if policy is not None and spec.offline_error:
            field = f"{path.removesuffix('.template')}.offlineWhen"
            place = f"{declared.where(policy, field)}: "
            problem = spec.offline_error.removeprefix(place)
            yield build(Reason.OFFLINE, problem, field)
        # A source may be of any kind.
        missing = find_missing_sources(spec, declared.objects) if not declared.unread else ()
        for index, problem in missing:
            suffix = "Expr" if template and template.injectors[index].name_expr else ""
            yield build(
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
            severity = "error" if loses_all else "warning"
            yield build(Reason.PATH_COLLISION, collision, field, severity=severity)


def find_closed_windows(declared: DeclaredObjects, now: datetime) -> Iterator[Finding]:
    """Yield a warning for each PromotionPolicy whose windows never open from `now` on."""
    for promotion in declared.promotions:
        if not (calendars := build_calendars([promotion])):
            continue
        state = compute_window_state(calendars, now)
        if not state.open and state.until is None:
            where = declared.where(promotion, "spec.windows")
            problem = f"nothing is ever published: {state.message}"
            remedy = "shorten the deny windows, or add an allow window outside them"
            yield Finding(where, problem, remedy, "warning")


def find_unmatched_selectors(
    declared: DeclaredObjects, policies: Iterable[UpstreamPolicy]
) -> Iterator[Finding]:
    """Yield a warning for every objectSelector of these policies that matches no object.

    Selectors are left out that may match what cannot be read or used.
    """
    for policy in policies:
        for index, total in find_unmatched(policy, declared.objects):
            selector = policy.spec.targets[index].object_selector
            assert selector is not None, "only an objectSelector can match no object"
            group = group_of(selector.api_version)
            if any(declared.find_unusable((group, selector.kind), policy.metadata.namespace)):
                continue
            kind = f"{selector.kind}.{group}" if group else selector.kind
            if total:
                problem = f"0 of {total} {selector.kind} objects match, so no variant is created"
                remedy = "compare its labels and name with those of the objects"
            else:
                problem = (
                    f"there is no {kind} in namespace {policy.metadata.namespace} and none without"
                    " a namespace"
                )
                remedy = "correct kind and group, or pass the files of the objects to -f"
            where = declared.where(policy, f"spec.targets[{index}].objectSelector")
            yield Finding(where, problem, remedy, "warning")


def find_declaration_warnings(
    resolved_policies: Sequence[ResolvedPolicy], declared: DeclaredObjects
) -> Iterator[str]:
    """Yield the warnings of a pass: disabled automation, and selectors without a match."""
    namespaces = sorted({it.namespace for it in resolved_policies})
    for unusable in dict.fromkeys(
        it for name in namespaces for it in declared.find_unusable_own(PromotionPolicy, name)
    ):
        yield (
            f"automatic promotion is off while {unusable} cannot be read: a PromotionPolicy can"
            " restrict what others allow; correct it"
        )
    policies = [
        it.upstream_policy
        for it in resolved_policies
        if it.upstream_policy is not None and it.is_complete and not it.is_being_deleted
    ]
    yield from (line for _, line in group_findings(find_unmatched_selectors(declared, policies)))


def find_unmatched_dependencies(declared: DeclaredObjects) -> Iterator[Finding]:
    """Yield a warning for every `dependsOn` on a target that its policy does not have.

    Policies are left out that may have targets in what cannot be read or used.
    """
    dependent_variants = [
        it
        for it in declared.variants
        if any(dependency.target for dependency in it.spec.depends_on)
    ]
    if not dependent_variants:
        return
    referenced_policies = {
        (it.metadata.namespace, dependency.policy)
        for it in dependent_variants
        for dependency in it.spec.depends_on
    }
    targets_by_policy: dict[tuple[str, str], dict[str, None]] = {}
    for policy in declared.policies:
        namespace, name = policy.metadata.namespace, policy.metadata.name
        is_referenced = (namespace, name) in referenced_policies
        if is_referenced and not any(declared.find_unusable_targets(policy)):
            repository_by_name = usable_repositories(namespace, declared.repositories)
            inventory = TargetInventory(repository_by_name, declared.objects)
            present, _ = select_targets(policy, inventory)
            targets_by_policy[namespace, name] = dict.fromkeys(target.key for target in present)
    for variant in dependent_variants:
        for index, dependency in enumerate(variant.spec.depends_on):
            targets = targets_by_policy.get((variant.metadata.namespace, dependency.policy or ""))
            if targets is None or dependency.target is None or dependency.target in targets:
                continue  # cross-reference validation reports a missing policy
            where = declared.where(variant, f"spec.dependsOn[{index}].target")
            problem = (
                f"UpstreamPolicy {dependency.policy or ''} has no target {dependency.target}, so"
                " the variant waits"
            )
            remedy = suggest_name(
                dependency.target, [*targets], "correct it, or add the target later"
            )
            yield Finding(where, problem, remedy, "warning")


def find_missing_sources(
    spec: VariantSpec, objects: ClusterObjectIndex
) -> Iterator[tuple[int, str]]:
    """Yield injectors of a variant without a source: index and problem.

    An injection point takes the first existing object among the injectors of its kind, so a
    kind is missing only if none of its injectors has an object. The kind of injectors
    without one is defined by the package, so they are missing only if no object of any kind
    has one of their names.
    """
    if spec.injectors and not any(it.kind for it in spec.injectors):
        names = list(dict.fromkeys(it.name for it in spec.injectors))
        if not any(objects.has_name(spec.namespace, name) for name in names):
            fitting = f"object {' or '.join(names)} of any kind"
            yield 0, f"there is no {fitting} in namespace {spec.namespace}"
    for kind in dict.fromkeys(it.kind for it in spec.injectors if it.kind):
        fitting_injectors = [
            (position, it) for position, it in enumerate(spec.injectors) if it.kind in (None, kind)
        ]
        if not any(
            objects.get(group, kind, spec.namespace, it.name)
            for _, it in fitting_injectors
            for group in (objects.groups(kind) if it.group is None else (it.group,))
        ):
            index = next(position for position, it in fitting_injectors if it.kind == kind)
            names = list(dict.fromkeys(it.name for _, it in fitting_injectors))
            fitting = f"{kind} {' or '.join(names)}"
            yield index, f"there is no {fitting} in namespace {spec.namespace}"


def find_unmatched_repositories(declared: DeclaredObjects) -> Iterator[Finding]:
    """Yield a warning for every repositorySelector that matches no repository.

    Policies are left out that may use a Repository that cannot be read or used.
    """
    for policy in declared.policies:
        if any(declared.find_unusable(own_kind(Repository), policy.metadata.namespace)):
            continue
        usable = usable_repositories(policy.metadata.namespace, declared.repositories)
        for index, entry in enumerate(policy.spec.targets):
            selector = entry.repository_selector
            if selector is None or any(
                matches(selector, it.metadata.labels) for it in usable.values()
            ):
                continue
            where = declared.where(policy, f"spec.targets[{index}].repositorySelector")
            problem = f"0 of {len(usable)} Repository objects match, so no variant is created"
            yield Finding(
                where, problem, "compare its labels with those of the repositories", "warning"
            )
