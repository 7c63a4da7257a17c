"""Errors and warnings across objects: unresolved and duplicate names, cycles."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from fanout.api.approver_names import check_approvers, warn_unknown_authors
from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.api.field_errors import FieldError, FieldPath, suggest_name
from fanout.api.function_catalog import warn_external_functions
from fanout.api.git_repository import ForgeType, Repository
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import (
    PromotionPolicy,
    governs_policy,
    matches_any_name,
)
from fanout.api.scenario import Scenario
from fanout.api.stages import Stage
from fanout.api.text_fields import list_first
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.scenario_rules import check_scenario
from fanout.api.validators.stage_references import find_cycles
from fanout.values import Value


def check_commit_statuses(
    policy: UpstreamPolicy,
    named_repositories: Collection[str],
    usable_repositories: Sequence[Repository],
) -> Iterator[FieldError]:
    """Yield an error for every commitStatus check on repositories without a forge.

    `named_repositories`: the downstream repositories that the policy names. If expressions
    or selectors choose them, it may be any of `usable_repositories`.
    """
    without_forge = [
        repository.metadata.name
        for repository in usable_repositories
        if repository.spec.forge.type is ForgeType.NONE
    ]
    if named_repositories:
        unsupported = sorted(set(without_forge) & set(named_repositories))
    else:
        # Selectors may choose any usable repository, so it is an error only if none has a forge.
        unsupported = (
            sorted(without_forge) if len(without_forge) == len(usable_repositories) else []
        )
    if not unsupported:
        return
    problem = f"commit statuses need a forge; without one: Repository {list_first(unsupported, 1)}"
    for number, stage in enumerate(policy.spec.stages):
        for group in ("verification", "requires"):
            for index, check in enumerate(getattr(stage, group)):
                if check.commit_status is not None:
                    path: FieldPath = ("spec", "stages", number, group, index, "commitStatus")
                    yield FieldError(path, problem, "use report: {} and let the pipeline report")


def warn_doubtful_settings(policy: UpstreamPolicy) -> Iterator[FieldError]:
    """Yield warnings about settings of a policy that are valid but hardly intended."""
    for index, stage in enumerate(policy.spec.stages):
        path: FieldPath = ("spec", "stages", index)
        if not stage.verification and not stage.control_flow:
            problem = (
                f"stage {stage.name} has no checks: a variant is ready as soon as it is published"
            )
            yield FieldError(
                (*path, "verification"),
                problem,
                "add a check if the variant can be checked",
                "warning",
            )
        yield from _warn_zero_expiry(stage, path)
        yield from _warn_unnamed_creators(stage, path)
        yield from _warn_amounts(stage, path)
    for index, entry in enumerate(policy.spec.targets):
        if entry.template.stage is None and entry.template.stage_expr is None:
            path = ("spec", "targets", index, "template", "stage")
            problem = "the targets of this entry have no stage: their drafts are never published"
            yield FieldError(path, problem, "add stage or stageExpr", "warning")
        pipeline_path: FieldPath = ("spec", "targets", index, "template", "pipeline")
        yield from warn_external_functions(entry.template.pipeline, pipeline_path)


def _warn_zero_expiry(stage: Stage, stage_path: FieldPath) -> Iterator[FieldError]:
    """Warn about `expires: 0`, which means absent (design §6) and not "expires at once"."""
    for index, check in enumerate(stage.requires):
        approval = check.approval
        if approval and approval.expires is None and "expires" in approval.model_fields_set:
            path = (*stage_path, "requires", index, "approval", "expires")
            problem = "0 means no limit: approvals never expire"
            yield FieldError(path, problem, "remove it, or set a duration, like 72h", "warning")


def _warn_unnamed_creators(stage: Stage, stage_path: FieldPath) -> Iterator[FieldError]:
    """Warn about statuses of commits that anybody may set."""
    for group in ("verification", "requires"):
        for index, check in enumerate(getattr(stage, group)):
            if check.commit_status is not None and not check.commit_status.by:
                path = (*stage_path, group, index, "commitStatus", "by")
                problem = "without by, a status of anyone who can push counts"
                yield FieldError(
                    path, problem, "list the accepted creators, like [ci-bot]", "warning"
                )


def _warn_amounts(stage: Stage, stage_path: FieldPath) -> Iterator[FieldError]:
    """Warn about misleading numbers of a stage (design §6, "What counts")."""
    rollout, after = stage.rollout, stage.after
    if rollout and rollout.max_in_flight is not None and rollout.max_in_flight == 0:
        problem = f"maxInFlight 0 releases nothing in stage {stage.name}"
        path = (*stage_path, "rollout", "maxInFlight")
        yield FieldError(path, problem, "raise it to release variants", "warning")
    if after and isinstance(after.at_least, int) and after.at_least > len(after.stages):
        problem = f"{after.at_least} of {len(after.stages)} listed stages means all of them"
        path = (*stage_path, "after", "atLeast")
        yield FieldError(path, problem, "lower it, or list more stages", "warning")


# the name of a variant that a policy makes (design §3)
_GENERATED_VARIANT_NAME = re.compile(r".+-[0-9a-f]{10}")


def check_variant_dependencies(
    variants: Sequence[PackageVariant],
    policies: Sequence[UpstreamPolicy],
    invalid_variants: frozenset[tuple[str, str]],
    invalid_policies: frozenset[tuple[str, str]],
) -> Iterator[tuple[PackageVariant, FieldError]]:
    """Yield errors for unresolved `dependsOn` entries and for cycles of variants.

    `invalid_variants`, `invalid_policies`: (namespace, name) of objects that are declared
    but cannot be read. If a policy has the target is known only once its targets are
    selected; a variant without it is held then.
    """
    variants_by_key = {(it.metadata.namespace, it.metadata.name): it for it in variants}
    policy_keys = {(it.metadata.namespace, it.metadata.name) for it in policies}
    policy_namespaces = {namespace for namespace, _ in policy_keys}
    known_policies = policy_keys | invalid_policies
    known_variants = variants_by_key.keys() | invalid_variants
    for variant in variants:
        namespace = variant.metadata.namespace
        for index, dependency in enumerate(variant.spec.depends_on):
            path: FieldPath = ("spec", "dependsOn", index)
            if dependency.policy and (namespace, dependency.policy) not in known_policies:
                problem_and_remedy = _unresolved_dependency(
                    "UpstreamPolicy", dependency.policy, namespace, policy_keys
                )
                yield variant, FieldError((*path, "policy"), *problem_and_remedy)
            if dependency.variant and (namespace, dependency.variant) not in known_variants:
                if (
                    _GENERATED_VARIANT_NAME.fullmatch(dependency.variant)
                    and namespace in policy_namespaces
                ):
                    continue  # a policy may generate it
                problem_and_remedy = _unresolved_dependency(
                    "PackageVariant", dependency.variant, namespace, variants_by_key
                )
                yield variant, FieldError((*path, "variant"), *problem_and_remedy)
    yield from _check_dependency_cycles(variants_by_key)


def _unresolved_dependency(
    kind: str, name: str, namespace: str, known_keys: Iterable[tuple[str, str]]
) -> tuple[str, str]:
    """Return problem and remedy of a dependency that is not declared."""
    names = sorted(other for place, other in known_keys if place == namespace)
    problem = f"there is no {kind} {name} in this namespace"
    return problem, suggest_name(name, names, "declare it, or remove the dependency")


def _check_dependency_cycles(
    variants_by_key: dict[tuple[str, str], PackageVariant],
) -> Iterator[tuple[PackageVariant, FieldError]]:
    for namespace in sorted({namespace for namespace, _ in variants_by_key}):
        edges: dict[str, dict[str, FieldPath]] = {}
        for (variant_namespace, name), variant in variants_by_key.items():
            if variant_namespace == namespace:
                edges[name] = {
                    dependency.variant: (name, "spec", "dependsOn", index, "variant")
                    for index, dependency in enumerate(variant.spec.depends_on)
                    if dependency.variant and (namespace, dependency.variant) in variants_by_key
                }
        for error in find_cycles(
            edges, "variants form a cycle", "remove one of these dependencies"
        ):
            item = variants_by_key[namespace, str(error.path[0])]
            yield item, FieldError(error.path[1:], error.problem, error.remedy)


Kind = TypeVar("Kind", bound=KRMObject)
ObjectError = tuple[KRMObject, FieldError]


class InvalidObjects(Value):
    """Objects that are declared but invalid, so that their content is unknown.

    References to them are not reported as unresolved: that would be a second error for one
    mistake.
    """

    names: frozenset[tuple[str, str, str]] = frozenset()  # kind, namespace and name
    has_unreadable_files: bool = False  # some files could not be read

    def names_of_kind(self, kind: str, namespace: str = "") -> frozenset[str]:
        """Return the names of this kind, in one namespace if given.

        A misspelled kind counts as any.
        """
        keys = self.keys_of_kind(kind)
        return frozenset(name for place, name in keys if namespace in ("", place))

    def keys_of_kind(self, kind: str) -> frozenset[tuple[str, str]]:
        """Return (namespace, name) of the objects of this kind. A misspelled kind counts as any."""
        return frozenset(
            (namespace, name)
            for declared_kind, namespace, name in self.names
            if declared_kind == kind or declared_kind not in KINDS
        )


NO_INVALID_OBJECTS = InvalidObjects()


def cross_check(
    objects: Sequence[KRMObject], invalid: InvalidObjects = NO_INVALID_OBJECTS
) -> list[ObjectError]:
    """Return errors and warnings of the objects as a set, each with its object.

    `invalid`: objects that are declared and could not be read. With unreadable files
    missing names are not reported, since any name may be in them.
    """
    errors: list[ObjectError] = [*_check_unique_names(objects), *_check_misplaced(objects)]
    repositories = _objects_of(Repository, objects)
    policies = _objects_of(UpstreamPolicy, objects)
    promotions = _objects_of(PromotionPolicy, objects)
    variants = _objects_of(PackageVariant, objects)
    for policy in policies:
        errors += _errors_of(policy, warn_doubtful_settings(policy))
    for variant in variants:
        warnings = warn_external_functions(variant.spec.pipeline, ("spec", "pipeline"))
        errors += _errors_of(variant, warnings)
    # Every name may be declared in a file that could not be read, so none can be called
    # missing.
    if invalid.has_unreadable_files:
        return errors
    for policy in policies:
        errors += _check_repositories(policy, _policy_repositories(policy), repositories, invalid)
        errors += _errors_of(policy, _check_commit_statuses(policy, repositories))
        if not invalid.names_of_kind("PromotionPolicy", policy.metadata.namespace):
            errors += _errors_of(policy, check_approvers(policy, promotions))
    for variant in variants:
        errors += _check_repositories(
            variant, _variant_repositories(variant), repositories, invalid
        )
    for promotion in promotions:
        errors += _errors_of(promotion, warn_unknown_authors(promotion))
        invalid_names = invalid.names_of_kind("UpstreamPolicy", promotion.metadata.namespace)
        policy_errors = _check_promotion_policies(promotion, policies, invalid_names)
        stage_errors = _check_promotion_stages(promotion, policies, invalid_names)
        errors += _errors_of(promotion, chain(policy_errors, stage_errors))
        invalid_names = invalid.names_of_kind("PackageVariant", promotion.metadata.namespace)
        variant_errors = _check_promotion_variants(promotion, variants, invalid_names)
        errors += _errors_of(promotion, variant_errors)
    for scenario in _objects_of(Scenario, objects):
        invalid_names = invalid.names_of_kind("UpstreamPolicy", scenario.metadata.namespace)
        errors += _errors_of(scenario, _check_scenario(scenario, policies, invalid_names))
    errors += check_variant_dependencies(
        variants,
        policies,
        invalid.keys_of_kind("PackageVariant"),
        invalid.keys_of_kind("UpstreamPolicy"),
    )
    return errors


def is_visible(repository: Repository, namespace: str) -> bool:
    """Return whether objects of this namespace may use the repository."""
    own = repository.metadata.namespace == namespace
    return own or namespace in repository.spec.allowed_namespaces


def _errors_of(item: KRMObject, errors: Iterable[FieldError]) -> Iterator[ObjectError]:
    return ((item, error) for error in errors)


def _objects_of(kind: type[Kind], objects: Iterable[KRMObject]) -> list[Kind]:
    return [item for item in objects if isinstance(item, kind)]


def _check_unique_names(objects: Iterable[KRMObject]) -> Iterator[ObjectError]:
    keys: set[tuple[str, str, str]] = set()
    for item in objects:
        key = (item.kind, item.metadata.namespace, item.metadata.name)
        if key in keys:
            problem = f"duplicate name in namespace {item.metadata.namespace}"
            yield item, FieldError(("metadata", "name"), problem, "rename or remove one")
        if item.metadata.name:
            keys.add(key)


def _check_misplaced(objects: Iterable[KRMObject]) -> Iterator[ObjectError]:
    for item in _objects_of(FanoutConfiguration, objects):
        problem = "a FanoutConfiguration among the manifests is ignored"
        yield item, FieldError(("kind",), problem, "move it elsewhere, and pass it with --config")


def _policy_repositories(policy: UpstreamPolicy) -> Iterator[tuple[FieldPath, str]]:
    yield ("spec", "upstream", "repository"), policy.spec.upstream.repository
    for index, entry in enumerate(policy.spec.targets):
        path = ("spec", "targets", index)
        downstream = entry.template.downstream
        if downstream.repository:
            yield (*path, "template", "downstream", "repository"), downstream.repository
        if downstream.repository or downstream.repository_expr:
            continue  # then the names of the entry are no downstream repositories
        for number, target in enumerate(entry.repositories or ()):
            yield (*path, "repositories", number, "name"), target.name


def _check_commit_statuses(
    policy: UpstreamPolicy, repositories: Sequence[Repository]
) -> Iterator[FieldError]:
    usable_repositories = [it for it in repositories if is_visible(it, policy.metadata.namespace)]
    _, *downstream = _policy_repositories(policy)
    return check_commit_statuses(policy, {name for _, name in downstream}, usable_repositories)


def _variant_repositories(variant: PackageVariant) -> Iterator[tuple[FieldPath, str]]:
    yield ("spec", "upstream", "repository"), variant.spec.upstream.repository
    yield ("spec", "downstream", "repository"), variant.spec.downstream.repository


def _check_repositories(
    item: KRMObject,
    references: Iterable[tuple[FieldPath, str]],
    repositories: Sequence[Repository],
    invalid: InvalidObjects,
) -> Iterator[ObjectError]:
    namespace = item.metadata.namespace
    usable = {it.metadata.name for it in repositories if is_visible(it, namespace)}
    namespaces = {it.metadata.name: it.metadata.namespace for it in repositories}
    for path, name in references:
        if name in usable or name in invalid.names_of_kind("Repository"):
            continue
        if name in namespaces:
            problem = (
                f"Repository {name} of namespace {namespaces[name]} does not allow {namespace}"
            )
            remedy = f"add {namespace} to its spec.allowedNamespaces"
        else:
            problem = f"there is no Repository {name} that namespace {namespace} may use"
            remedy = suggest_name(name, sorted(usable), "declare it, or correct the name")
        yield item, FieldError(path, problem, remedy)


def _check_promotion_policies(
    promotion: PromotionPolicy, policies: Sequence[UpstreamPolicy], invalid_names: frozenset[str]
) -> Iterator[FieldError]:
    names = sorted({*_names_in_namespace(promotion, policies), *invalid_names})
    known_names = frozenset(names)
    for index, pattern in enumerate(promotion.spec.policies):
        if matches_any_name(pattern, known_names):
            continue
        path: FieldPath = ("spec", "policies", index)
        if "*" in pattern:
            problem = f"no UpstreamPolicy in this namespace matches {pattern}"
            yield FieldError(path, problem, "ignore this if one will be added", "warning")
        else:
            problem = f"there is no UpstreamPolicy {pattern} in this namespace"
            yield FieldError(
                path, problem, suggest_name(pattern, names, "declare it, or remove the name")
            )


def _check_promotion_stages(
    promotion: PromotionPolicy, policies: Sequence[UpstreamPolicy], invalid_names: frozenset[str]
) -> Iterator[FieldError]:
    if any(matches_any_name(pattern, invalid_names) for pattern in promotion.spec.policies):
        return  # the keys may exist there
    governed_policies = [policy for policy in policies if governs_policy(promotion, policy)]
    stage_names = frozenset(
        stage.name for policy in governed_policies for stage in policy.spec.stages
    )
    names = sorted(stage_names)
    automatic = promotion.spec.auto_promotion
    for index, pattern in enumerate(automatic.stages if automatic and governed_policies else ()):
        if matches_any_name(pattern, stage_names):
            continue
        path: FieldPath = ("spec", "autoPromotion", "stages", index)
        problem = f"no stage of the selected policies matches {pattern}"
        if "*" in pattern:
            yield FieldError(path, problem, "ignore this if one will be added", "warning")
        else:
            yield FieldError(
                path, problem, suggest_name(pattern, names, "correct or remove the name")
            )


def _check_scenario(
    scenario: Scenario, policies: Sequence[UpstreamPolicy], invalid_names: frozenset[str]
) -> Iterator[FieldError]:
    name, stages = scenario.spec.policy, scenario.spec.stages
    if name:
        key = (scenario.metadata.namespace, name)
        named = (it for it in policies if (it.metadata.namespace, it.metadata.name) == key)
        policy = next(named, None)
        if policy is None:
            problem = f"there is no UpstreamPolicy {name} in this namespace"
            remedy = suggest_name(
                name, _names_in_namespace(scenario, policies), "pass its file with -f"
            )
            if name not in invalid_names:
                yield FieldError(("spec", "policy"), problem, remedy)
            return
        stages = policy.spec.stages
    yield from check_scenario(scenario, stages)


def _check_promotion_variants(
    promotion: PromotionPolicy, variants: Sequence[PackageVariant], invalid_names: frozenset[str]
) -> Iterator[FieldError]:
    names = sorted({*_names_in_namespace(promotion, variants), *invalid_names})
    for index, name in enumerate(promotion.spec.variants):
        if name not in names:
            problem = f"there is no PackageVariant {name} in this namespace"
            remedy = suggest_name(name, names, "declare it, or remove the name")
            yield FieldError(("spec", "variants", index), problem, remedy)


def _names_in_namespace(reference: KRMObject, candidates: Iterable[KRMObject]) -> list[str]:
    namespace = reference.metadata.namespace
    return sorted(item.metadata.name for item in candidates if item.metadata.namespace == namespace)
