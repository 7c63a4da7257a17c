"""What chooses or names targets that are not there: mostly a mistyped label, told as a warning."""

from collections.abc import Iterable, Iterator, Mapping

from fanout.api.nearest import suggestion
from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.cluster.declared import Declared
from fanout.cluster.findings import Finding
from fanout.selection.model import Injector, Object, VariantSpec
from fanout.selection.objects import ObjectIndex, group_of
from fanout.selection.selectors import matches
from fanout.selection.targets import Inventory, select, unmatched, usable_by


def unmatched_selectors(
    declared: Declared, policies: Iterable[UpstreamPolicy]
) -> tuple[Finding, ...]:
    """A warning for every objectSelector of these policies that chooses none of the objects.

    Nothing is said while a file cannot be read: what is chosen may be in it.
    """
    if declared.unread:
        return ()
    return tuple(it for policy in policies for it in _of_policy(policy, declared))


def unmatched_dependencies(declared: Declared) -> tuple[Finding, ...]:
    """A warning for every `dependsOn` on a target that its policy has not, as far as can be told.

    Nothing is said while a file cannot be read: the target may be in it.
    """
    waiting = [it for it in declared.variants if any(one.target for one in it.spec.depends_on)]
    if declared.unread or not waiting:
        return ()
    named = {(it.metadata.namespace, one.policy) for it in waiting for one in it.spec.depends_on}
    known: dict[tuple[str, str], dict[str, None]] = {}
    for policy in declared.policies:
        namespace, name = policy.metadata.namespace, policy.metadata.name
        if (namespace, name) in named:
            usable = usable_by(namespace, declared.repositories)
            targets, _ = select(policy, Inventory(usable, declared.objects))
            known[namespace, name] = dict.fromkeys(target.key for target in targets)
    return tuple(it for variant in waiting for it in _of_variant(variant, known, declared))


def missing_sources(spec: VariantSpec, objects: ObjectIndex) -> Iterator[tuple[int, str]]:
    """The injectors of a variant that find no source, by index, each with the problem.

    A point takes the first object that is there among the injectors of its kind, so a kind is
    missing only where all its injectors find nothing. Injectors without a kind are left out: which
    kind they are for is the package's to say.
    """
    for kind in dict.fromkeys(it.kind for it in spec.injectors if it.kind):
        fitting = [(at, it) for at, it in enumerate(spec.injectors) if it.kind in (None, kind)]
        found = [source for _, it in fitting if (source := _source(kind, it, spec, objects))]
        if not found:
            index = next(at for at, it in fitting if it.kind == kind)
            names = " or ".join(dict.fromkeys(it.name for _, it in fitting))
            yield index, f"there is no {kind} {names} in namespace {spec.namespace}"


def _source(
    kind: str, injector: Injector, spec: VariantSpec, objects: ObjectIndex
) -> Object | None:
    groups = objects.groups(kind) if injector.group is None else (injector.group,)
    found = (objects.get(group, kind, spec.namespace, injector.name) for group in groups)
    return next((it for it in found if it is not None), None)


def unmatched_repositories(declared: Declared) -> tuple[Finding, ...]:
    """A warning for every repositorySelector that chooses none of the repositories."""
    if declared.unread:
        return ()
    return tuple(it for policy in declared.policies for it in _of_repositories(policy, declared))


def _of_repositories(policy: UpstreamPolicy, declared: Declared) -> Iterator[Finding]:
    usable = usable_by(policy.metadata.namespace, declared.repositories).values()
    for index, entry in enumerate(policy.spec.targets):
        selector = entry.repository_selector
        if selector is None or any(matches(selector, it.metadata.labels) for it in usable):
            continue
        where = declared.where(policy, f"spec.targets[{index}].repositorySelector")
        problem = f"0 of {len(usable)} Repository objects match, so nothing is made"
        yield Finding(
            where, problem, "compare its labels with those of the repositories", "warning"
        )


def _of_variant(
    variant: PackageVariant, known: Mapping[tuple[str, str], dict[str, None]], declared: Declared
) -> Iterator[Finding]:
    for index, one in enumerate(variant.spec.depends_on):
        targets = known.get((variant.metadata.namespace, one.policy or ""))
        if targets is None or one.target is None or one.target in targets:
            continue  # a policy that is not there is told elsewhere
        where = declared.where(variant, f"spec.dependsOn[{index}].target")
        problem = f"UpstreamPolicy {one.policy} has no target {one.target}, so the variant waits"
        remedy = suggestion(one.target, [*targets], "correct it, or nothing to do if it is to come")
        yield Finding(where, problem, remedy, "warning")


def _of_policy(policy: UpstreamPolicy, declared: Declared) -> Iterator[Finding]:
    for index, total in unmatched(policy, declared.objects):
        selector = policy.spec.targets[index].object_selector
        assert selector is not None, "it has chosen nothing"
        group = group_of(selector.api_version)
        kind = f"{selector.kind}.{group}" if group else selector.kind
        if total:
            problem = f"0 of {total} {selector.kind} objects match, so nothing is made"
            remedy = "compare its labels and name with those of the objects"
        else:
            namespace = policy.metadata.namespace
            problem = f"there is no {kind} in namespace {namespace}, nor one without a namespace"
            remedy = "correct kind and group, or give the objects to -f too"
        where = declared.where(policy, f"spec.targets[{index}].objectSelector")
        yield Finding(where, problem, remedy, "warning")
