"""Errors and warnings across objects: unresolved and duplicate names, cycles."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from fanout.api.approver_names import check_approvers, warn_unknown_authors
from fanout.api.fanout_configuration import FanoutConfiguration
from fanout.api.field_errors import FieldError, FieldPath, suggest_name
from fanout.api.function_catalog import warn_external_functions
from fanout.api.git_repository import ForgeType, Repository
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy, governs_policy, matches_any_name
from fanout.api.scenario import Scenario
from fanout.api.stages import Check, Stage
from fanout.api.text_fields import list_first
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.scenario_rules import check_scenario
from fanout.api.validators.stage_references import find_cycles
from fanout.values import Value, replace


def warn_doubtful_settings(policy: UpstreamPolicy) -> Iterator[FieldError]:
    """Yield warnings about settings of a policy that are valid but hardly intended."""
    for index, stage in enumerate(policy.spec.stages):
        path: FieldPath = ("spec", "stages", index)
        if not stage.verification and not stage.control_flow:
            problem = (
                f"stage {stage.name} has no checks: a variant is ready as soon as it is published"
            )
            remedy = "add a check if the variant can be checked"
            yield FieldError((*path, "verification"), problem, remedy, "warning")
        for number, check in enumerate(stage.requires):
            approval = check.approval
            # It means absent, and not "expires at once".
            if approval and approval.expires is None and "expires" in approval.model_fields_set:
                expiry_path = (*path, "requires", number, "approval", "expires")
                problem = "0 means no limit: approvals never expire"
                remedy = "remove it, or set a duration, like 72h"
                yield FieldError(expiry_path, problem, remedy, "warning")
        for check_path, check in _list_checks(stage, path):
            if check.commit_status is not None and not check.commit_status.by:
                problem = "without by, a status of anyone who can push counts"
                remedy = "list the accepted creators, like [ci-bot]"
                yield FieldError((*check_path, "commitStatus", "by"), problem, remedy, "warning")
        rollout, after = stage.rollout, stage.after  # see docs/concepts/rollouts.md
        if rollout and rollout.max_in_flight is not None and rollout.max_in_flight == 0:
            problem = f"maxInFlight 0 releases nothing in stage {stage.name}"
            remedy = "raise it to release variants"
            yield FieldError((*path, "rollout", "maxInFlight"), problem, remedy, "warning")
        if after and isinstance(after.at_least, int) and after.at_least > len(after.stages):
            problem = f"{after.at_least} of {len(after.stages)} listed stages means all of them"
            remedy = "lower it, or list more stages"
            yield FieldError((*path, "after", "atLeast"), problem, remedy, "warning")
    for index, entry in enumerate(policy.spec.targets):
        path = ("spec", "targets", index, "template")
        if entry.template.stage is None and entry.template.stage_expr is None:
            problem = "the targets of this entry have no stage: their drafts are never published"
            yield FieldError((*path, "stage"), problem, "add stage or stageExpr", "warning")
        yield from warn_external_functions(entry.template.pipeline, (*path, "pipeline"))


def _list_checks(stage: Stage, stage_path: FieldPath) -> Iterator[tuple[FieldPath, Check]]:
    for group in ("verification", "requires"):
        for index, check in enumerate(getattr(stage, group)):
            yield (*stage_path, group, index), check


# the name of a variant that a policy makes (docs/concepts/selection.md)
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
    variant_keys = variants_by_key.keys()
    policy_keys = {(it.metadata.namespace, it.metadata.name) for it in policies}
    namespaces = sorted({namespace for namespace, _ in variant_keys})
    edges: dict[str, dict[str, dict[str, FieldPath]]] = {it: {} for it in namespaces}
    for variant in variants:
        namespace = variant.metadata.namespace
        for index, dependency in enumerate(variant.spec.depends_on):
            for field, kind, name, declared, invalid in (
                ("policy", "UpstreamPolicy", dependency.policy, policy_keys, invalid_policies),
                ("variant", "PackageVariant", dependency.variant, variant_keys, invalid_variants),
            ):
                key = (namespace, name or "")
                if not name or key in declared or key in invalid:
                    continue
                may_be_generated = field == "variant" and _GENERATED_VARIANT_NAME.fullmatch(name)
                if may_be_generated and any(namespace == place for place, _ in policy_keys):
                    continue
                names = sorted(other for place, other in declared if place == namespace)
                problem = f"there is no {kind} {name} in this namespace"
                remedy = suggest_name(name, names, "declare it, or remove the dependency")
                path: FieldPath = ("spec", "dependsOn", index, field)
                yield variant, FieldError(path, problem, remedy)
    for (namespace, name), variant in variants_by_key.items():
        edges[namespace][name] = {
            dependency.variant: (name, "spec", "dependsOn", index, "variant")
            for index, dependency in enumerate(variant.spec.depends_on)
            if dependency.variant and (namespace, dependency.variant) in variant_keys
        }
    for namespace in namespaces:
        for error in find_cycles(edges[namespace], "variants form a cycle"):
            item = variants_by_key[namespace, str(error.path[0])]
            yield item, replace(error, path=error.path[1:])


Kind = TypeVar("Kind", bound=KRMObject)
ObjectError = tuple[KRMObject, FieldError]


class InvalidObjects(Value):
    """Objects that are declared but invalid, so that their content is unknown.

    References to them are not reported as unresolved: that would be a second error for one mistake.
    """

    names: frozenset[tuple[str, str, str]] = frozenset()  # kind, namespace and name
    has_unreadable_files: bool = False  # some files could not be read

    def names_of_kind(self, kind: str, namespace: str = "") -> frozenset[str]:
        """Return names of this kind, maybe in one namespace. A misspelled kind counts as any."""
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
    errors: list[ObjectError] = []

    def add(item: KRMObject, field_errors: Iterable[FieldError]) -> None:
        errors.extend((item, error) for error in field_errors)

    keys: set[tuple[str, str, str]] = set()
    for item in objects:
        key = (item.kind, item.metadata.namespace, item.metadata.name)
        if key in keys:
            problem = f"duplicate name in namespace {item.metadata.namespace}"
            add(item, [FieldError(("metadata", "name"), problem, "rename or remove one")])
        if item.metadata.name:
            keys.add(key)
    for item in _objects_of(FanoutConfiguration, objects):
        problem = "a FanoutConfiguration among the manifests is ignored"
        add(item, [FieldError(("kind",), problem, "move it elsewhere, and pass it with --config")])
    repositories = _objects_of(Repository, objects)
    policies = _objects_of(UpstreamPolicy, objects)
    promotions = _objects_of(PromotionPolicy, objects)
    variants = _objects_of(PackageVariant, objects)
    for policy in policies:
        add(policy, warn_doubtful_settings(policy))
    for variant in variants:
        add(variant, warn_external_functions(variant.spec.pipeline, ("spec", "pipeline")))
    errors += find_shared_names(policies, variants, invalid)
    # Every name may be declared in a file that could not be read, so none can be called missing.
    if invalid.has_unreadable_files:
        return errors
    for policy in policies:
        references = [*_policy_repositories(policy)]
        add(policy, _check_repositories(policy, references, repositories, invalid))
        add(policy, _check_commit_statuses(policy, references[1:], repositories))
        if not invalid.names_of_kind("PromotionPolicy", policy.metadata.namespace):
            add(policy, check_approvers(policy, promotions))
    for variant in variants:
        references = [
            (("spec", "upstream", "repository"), variant.spec.upstream.repository),
            (("spec", "downstream", "repository"), variant.spec.downstream.repository),
        ]
        add(variant, _check_repositories(variant, references, repositories, invalid))
    for promotion in promotions:
        add(promotion, warn_unknown_authors(promotion))
        add(promotion, _check_promotion(promotion, policies, variants, invalid))
    for scenario in _objects_of(Scenario, objects):
        add(scenario, _check_scenario(scenario, policies, invalid))
    errors += check_variant_dependencies(
        variants,
        policies,
        invalid.keys_of_kind("PackageVariant"),
        invalid.keys_of_kind("UpstreamPolicy"),
    )
    return errors


def find_shared_names(
    policies: Iterable[UpstreamPolicy],
    variants: Iterable[PackageVariant],
    invalid: InvalidObjects = NO_INVALID_OBJECTS,
) -> Iterator[ObjectError]:
    """Yield the error of each object that must not be used because another kind has its name.

    Commands, plans and branches of removals name a policy and a PackageVariant without their kind.
    The PackageVariant is refused, but one that is being deleted goes first.
    """
    policy_by_key = {(it.metadata.namespace, it.metadata.name): it for it in policies}
    unusable = {(place, name) for kind, place, name in invalid.names if kind == "UpstreamPolicy"}
    for variant in variants:
        key = (variant.metadata.namespace, variant.metadata.name)
        if (policy := policy_by_key.get(key)) is None and key not in unusable:
            continue
        refused: KRMObject | None = policy if variant.is_being_deleted else variant
        if refused is not None:
            other = "PackageVariant" if refused is policy else "UpstreamPolicy"
            problem = f"{other} {key[1]} in namespace {key[0]} has the same name"
            yield refused, FieldError(("metadata", "name"), problem, "rename one of them")


def is_visible(repository: Repository, namespace: str) -> bool:
    """Return whether objects of this namespace may use the repository."""
    own = repository.metadata.namespace == namespace
    return own or namespace in repository.spec.allowed_namespaces


def _objects_of(kind: type[Kind], objects: Iterable[KRMObject]) -> list[Kind]:
    return [item for item in objects if isinstance(item, kind)]


def _policy_repositories(policy: UpstreamPolicy) -> Iterator[tuple[FieldPath, str]]:
    """Yield the repositories that a policy names: that of upstream, then those of downstream."""
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
    policy: UpstreamPolicy,
    downstream: Sequence[tuple[FieldPath, str]],
    repositories: Sequence[Repository],
) -> Iterator[FieldError]:
    """Yield an error for every commitStatus check on repositories without a forge."""
    usable = [it for it in repositories if is_visible(it, policy.metadata.namespace)]
    unsupported = sorted(it.metadata.name for it in usable if it.spec.forge.type is ForgeType.NONE)
    if downstream:
        unsupported = sorted({*unsupported} & {name for _, name in downstream})
    elif len(unsupported) < len(usable):
        # Selectors may choose any usable repository, so it is an error only if none has a forge.
        return
    if not unsupported:
        return
    problem = f"commit statuses need a forge; without one: Repository {list_first(unsupported, 1)}"
    for number, stage in enumerate(policy.spec.stages):
        for path, check in _list_checks(stage, ("spec", "stages", number)):
            if check.commit_status is not None:
                remedy = "use report: {} and let the pipeline report"
                yield FieldError((*path, "commitStatus"), problem, remedy)


def _check_repositories(
    item: KRMObject,
    references: Iterable[tuple[FieldPath, str]],
    repositories: Sequence[Repository],
    invalid: InvalidObjects,
) -> Iterator[FieldError]:
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
        yield FieldError(path, problem, remedy)


def _check_promotion(
    promotion: PromotionPolicy,
    policies: Sequence[UpstreamPolicy],
    variants: Sequence[PackageVariant],
    invalid: InvalidObjects,
) -> Iterator[FieldError]:
    """Yield errors and warnings for names of policies, stages and variants that are not there."""
    spec, namespace = promotion.spec, promotion.metadata.namespace
    invalid_names = invalid.names_of_kind("UpstreamPolicy", namespace)
    names = frozenset(_names_in_namespace(promotion, policies)) | invalid_names
    for index, pattern in enumerate(spec.policies):
        if not matches_any_name(pattern, names):
            problem = (
                f"no UpstreamPolicy in this namespace matches {pattern}"
                if "*" in pattern
                else f"there is no UpstreamPolicy {pattern} in this namespace"
            )
            remedy = "declare it, or remove the name"
            yield _unmatched(("spec", "policies", index), pattern, problem, names, remedy)
    governed_policies = [policy for policy in policies if governs_policy(promotion, policy)]
    # The stages may be in a policy that cannot be read.
    has_invalid = any(matches_any_name(pattern, invalid_names) for pattern in spec.policies)
    if spec.auto_promotion and governed_policies and not has_invalid:
        stages = (stage for policy in governed_policies for stage in policy.spec.stages)
        stage_names = frozenset(stage.name for stage in stages)
        for index, pattern in enumerate(spec.auto_promotion.stages):
            if not matches_any_name(pattern, stage_names):
                path: FieldPath = ("spec", "autoPromotion", "stages", index)
                problem = f"no stage of the selected policies matches {pattern}"
                yield _unmatched(path, pattern, problem, stage_names, "correct or remove the name")
    known_variants = {
        *_names_in_namespace(promotion, variants),
        *invalid.names_of_kind("PackageVariant", namespace),
    }
    for index, name in enumerate(spec.variants):
        if name not in known_variants:
            problem = f"there is no PackageVariant {name} in this namespace"
            remedy = suggest_name(name, sorted(known_variants), "declare it, or remove the name")
            yield FieldError(("spec", "variants", index), problem, remedy)


def _unmatched(
    path: FieldPath, pattern: str, problem: str, names: Iterable[str], remedy: str
) -> FieldError:
    """Return the warning about a pattern without a match, or the error about a name."""
    if "*" in pattern:
        return FieldError(path, problem, "ignore this if one will be added", "warning")
    return FieldError(path, problem, suggest_name(pattern, sorted(names), remedy))


def _check_scenario(
    scenario: Scenario, policies: Sequence[UpstreamPolicy], invalid: InvalidObjects
) -> Iterator[FieldError]:
    name, stages = scenario.spec.policy, scenario.spec.stages
    if name:
        namespace = scenario.metadata.namespace
        key = (namespace, name)
        named = (it for it in policies if (it.metadata.namespace, it.metadata.name) == key)
        if (policy := next(named, None)) is None:
            problem = f"there is no UpstreamPolicy {name} in this namespace"
            names = _names_in_namespace(scenario, policies)
            remedy = suggest_name(name, names, "pass its file with -f")
            if name not in invalid.names_of_kind("UpstreamPolicy", namespace):
                yield FieldError(("spec", "policy"), problem, remedy)
            return
        stages = policy.spec.stages
    yield from check_scenario(scenario, stages)


def _names_in_namespace(reference: KRMObject, candidates: Iterable[KRMObject]) -> list[str]:
    namespace = reference.metadata.namespace
    return sorted(item.metadata.name for item in candidates if item.metadata.namespace == namespace)
