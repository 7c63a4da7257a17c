"""Target selection: repositories by name or label, or any cluster objects by label.

The inputs of a rollout (groups, expression variables) are known before Git is observed
and change only with the files.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from fanout.api.git_repository import Repository
from fanout.api.stages import Stage
from fanout.api.upstream_policy import ObjectSelector, TargetEntry, UpstreamPolicy
from fanout.api.validators.object_references import is_visible
from fanout.selection.cluster_objects import (
    ClusterObjectIndex,
    NamespacedName,
    group_of,
    version_of,
)
from fanout.selection.label_selector import match_raw_labels, matches, read_labels
from fanout.selection.variant_spec import Object, TargetFailure, VariantSpec
from fanout.values import KeyedValue, Value, field


class VariantTarget(KeyedValue):
    """An object or repository for which a variant is made."""

    UNCOMPARED: ClassVar = ("object",)

    entry: int  # index in spec.targets
    key: str  # identity: "<Kind>[.<group>]/<namespace>/<name>" or "Repository/<name>/<package>"
    object: Object  # the variable `target` of expressions
    repository: str = ""  # downstream repository where the template names none (`repoDefault`)
    package: str = ""  # downstream package where the template names none (`packageDefault`)

    @property
    def readable(self) -> str:
        """Return the display name: the object's name, or repository and package."""
        kind, _, rest = self.key.partition("/")
        chosen_by_name = kind == "Repository" and "repo" in self.object
        return rest if chosen_by_name else rest.rpartition("/")[2]


class TargetInventory(Value):
    """Repositories and objects among which targets are selected."""

    repositories: Mapping[str, Repository]  # those that the policy may use, by name
    objects: ClusterObjectIndex
    # Targets by key that the same policy had before; an object that is the same is one again.
    previous: Mapping[str, VariantTarget] = field(default_factory=dict)


def select_targets(
    policy: UpstreamPolicy, inventory: TargetInventory
) -> tuple[tuple[VariantTarget, ...], tuple[TargetFailure, ...]]:
    """Select a policy's targets, ordered by entry and key, and report invalid ones.

    A target that two entries select belongs to the first: two variants cannot have one identity. An
    object whose match is unknown is reported as a failure, never missed in silence.
    """
    candidates = [
        it
        for index, entry in enumerate(policy.spec.targets)
        for it in sorted(
            _select_entry(index, entry, policy, inventory),
            key=lambda it: it.key if isinstance(it, VariantTarget) else it.target,
        )
    ]
    failures = [it for it in candidates if isinstance(it, TargetFailure)]
    # Another entry may select the object clearly, but with the wrong template: fail closed.
    unclear_keys = {failure.target for failure in failures}
    targets: dict[str, VariantTarget] = {}
    for target in candidates:
        if isinstance(target, TargetFailure) or target.key in unclear_keys:
            continue
        if (first_target := targets.setdefault(target.key, target)) is not target:
            failure = TargetFailure(
                target=target.key,
                reason="DuplicateTarget",
                problem=f"selects {target.key}, which spec.targets[{first_target.entry}] selects"
                " already; narrow one of the selectors",
                field=f"spec.targets[{target.entry}]",
            )
            failures.append(failure)
    return tuple(targets.values()), tuple(failures)


def find_unmatched(
    policy: UpstreamPolicy, objects: ClusterObjectIndex
) -> Iterator[tuple[int, int]]:
    """Yield entries whose objectSelector selects nothing, and how many objects its kind has."""
    inventory = TargetInventory({}, objects)
    for index, entry in enumerate(policy.spec.targets):
        selector = entry.object_selector
        if selector is None or any(True for _ in _select_entry(index, entry, policy, inventory)):
            continue
        kind = objects.of_kind(*_kind_of(selector), version_of(selector.api_version))
        namespaces = ("", policy.metadata.namespace)
        yield index, sum(namespace in namespaces for namespace, _ in kind)


def _select_entry(
    index: int, entry: TargetEntry, policy: UpstreamPolicy, inventory: TargetInventory
) -> Iterator[VariantTarget | TargetFailure]:
    package = policy.spec.upstream.package
    if entry.repositories:
        for choice in entry.repositories:
            for name in choice.package_names or (package,):
                target_object = {"repo": choice.name, "package": name}
                yield VariantTarget(
                    index, f"Repository/{choice.name}/{name}", target_object, choice.name, name
                )
    elif entry.repository_selector is not None:
        for name, repository in inventory.repositories.items():
            if matches(entry.repository_selector, repository.metadata.labels):
                key = f"Repository/{repository.metadata.namespace}/{name}"
                yield VariantTarget(index, key, to_object(repository), name, package)
    elif entry.object_selector is not None:
        selector, objects = entry.object_selector, inventory.objects
        kind, version = _kind_of(selector), version_of(selector.api_version)
        label = f"{selector.kind}.{kind[0]}" if kind[0] else selector.kind
        candidates: Iterable[tuple[NamespacedName, Object]]
        # Those that are cluster-scoped, or in the policy's namespace.
        for namespace in ("", policy.metadata.namespace):
            if selector.name:
                named = objects.get(*kind, namespace, selector.name, version)
                candidates = [((namespace, selector.name), named)] if named else []
            else:
                candidates = objects.find_candidates(kind, namespace, selector, version)
            for (_, name), cluster_object in candidates:
                key = f"{label}/{namespace}/{name}"
                target = inventory.previous.get(key)
                # By identity: comparing contents would cost as much as matching labels.
                if target is not None and target.object is cluster_object and target.entry == index:
                    yield target
                    continue
                if is_match := match_raw_labels(selector, read_labels(cluster_object)):
                    yield VariantTarget(index, key, cluster_object, str(name), package)
                elif is_match is None:
                    problem = (
                        f"cannot decide whether {key} is a target: the value of a selected label is"
                        " not a string; quote the label's key and value in the object's file"
                    )
                    path = f"spec.targets[{index}].objectSelector"
                    yield TargetFailure(key, "InvalidObject", problem, path)


def _kind_of(selector: ObjectSelector) -> tuple[str, str]:
    return group_of(selector.api_version), selector.kind


def to_object(repository: Repository) -> Object:
    """Return a Repository as expressions see it: the object that was written."""
    return repository.model_dump(mode="json", by_alias=True, exclude_unset=True)


def usable_repositories(
    namespace: str, repositories: Sequence[Repository]
) -> dict[str, Repository]:
    """Return the repositories that a namespace may name, by name; its own take precedence."""
    usable: dict[str, Repository] = {}
    for repository in sorted(
        repositories, key=lambda item: (item.metadata.namespace, item.metadata.name)
    ):
        is_own = repository.metadata.namespace == namespace
        if is_own or (is_visible(repository, namespace) and repository.metadata.name not in usable):
            usable[repository.metadata.name] = repository
    return usable


# Fields that `propagateWhen` may read, by variable (docs/concepts/rollouts.md); empty: all.
VARIABLES: Mapping[str, frozenset[str]] = {
    "stage": frozenset({"total", "updated", "ready", "inFlight", "failed"}),
    "target": frozenset(),
    "upstream": frozenset({"repository", "package", "revision"}),
    "variant": frozenset({"name", "labels", "stage", "priority", "target"}),
}


def find_rollout_group(stage: Stage, spec: VariantSpec, labels: Mapping[str, str]) -> int:
    """Return the index of the first group that selects the variant.

    After all of them if none does. `labels` are its target's; the variant's own take precedence.
    """
    groups = stage.rollout.groups if stage.rollout else ()
    merged_labels = {**labels, **spec.labels} if groups else {}
    indexes = (index for index, selector in enumerate(groups) if matches(selector, merged_labels))
    return next(indexes, len(groups))


def build_rollout_variables(
    policy: UpstreamPolicy, spec: VariantSpec, target: VariantTarget
) -> Mapping[str, Any]:
    """Return the variables of the variant, without the revision and its stage's counts."""
    upstream = policy.spec.upstream
    return {
        "target": target.object,
        "upstream": {"repository": upstream.repository, "package": upstream.package},
        "variant": {
            "name": spec.name,
            "labels": dict(spec.labels),
            "stage": spec.stage,
            "priority": spec.priority,
            "target": spec.target,
        },
    }


def shorten_target_keys(keys: Iterable[str]) -> Mapping[str, str]:
    """Return a name of each target by its key; no two keys get the same name.

    The name is the object's name, with its namespace if two objects share the name, and the whole
    key if that is not unique either.
    """
    all_keys = tuple(dict.fromkeys(keys))
    forms: dict[str, tuple[str, ...]] = {}  # the shortest first; see `VariantTarget.key`
    for key in all_keys:
        namespace, _, name = key.partition("/")[2].partition("/")
        with_namespace = f"{namespace}/{name}" if namespace else ""
        forms[key] = tuple(filter(None, (name, with_namespace, key)))
    # A name that is a form of two keys is given to neither: which of them is meant must not depend
    # on the order of targets.
    counts = Counter(form for key in all_keys for form in set(forms[key]))
    return {key: next((form for form in forms[key] if counts[form] == 1), key) for key in all_keys}
