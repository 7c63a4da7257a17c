"""Warnings about selectors and references without a match."""

from collections.abc import Iterable, Iterator

from fanout.api.field_errors import suggest_name
from fanout.api.git_repository import Repository
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declared_objects import DeclaredObjects, Finding, own_kind
from fanout.selection.cluster_objects import ClusterObjectIndex, group_of
from fanout.selection.label_selector import matches
from fanout.selection.target_selection import (
    TargetInventory,
    find_unmatched,
    select_targets,
    usable_repositories,
)
from fanout.selection.variant_spec import VariantSpec


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
