"""Which targets a policy has: repositories by name or label, or any objects by label."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from fanout.api.references import visible
from fanout.api.repository import Repository
from fanout.api.targets import ObjectSelector, TargetEntry
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.selection.model import Object, TargetFailure
from fanout.selection.objects import ObjectIndex, group_of
from fanout.selection.selectors import chooses, matches
from fanout.values import frozen


@frozen
class Target:
    """Something a variant is made for."""

    entry: int  # index in spec.targets
    key: str  # identity: "<Kind>[.<group>]/<namespace>/<name>" or "Repository/<name>/<package>"
    object: Object = field(compare=False)  # what expressions see as `target`
    repository: str = ""  # downstream repository where the template names none (`repoDefault`)
    package: str = ""  # downstream package where the template names none (`packageDefault`)

    @property
    def readable(self) -> str:
        """What people call it: the object's name, or repository and package."""
        kind, _, rest = self.key.partition("/")
        chosen_by_name = kind == "Repository" and "repo" in self.object
        return rest if chosen_by_name else rest.rpartition("/")[2]


@frozen
class Inventory:
    """What targets are chosen from."""

    repositories: Mapping[str, Repository]  # those that the policy may use, by name
    objects: ObjectIndex


def select(
    policy: UpstreamPolicy, inventory: Inventory
) -> tuple[tuple[Target, ...], tuple[TargetFailure, ...]]:
    """A policy's targets, ordered by entry and key, and what can be none.

    A target that two entries choose is the first one's: two variants cannot have one identity. What
    may be a target, and nobody can say, is none and is told: it must not be missed in silence.
    """
    found = [
        it
        for index, entry in enumerate(policy.spec.targets)
        for it in sorted(_of_entry(index, entry, policy, inventory), key=_position)
    ]
    failures = [it for it in found if isinstance(it, TargetFailure)]
    unclear = {failure.target for failure in failures}
    chosen: dict[str, Target] = {}
    for target in found:
        if isinstance(target, TargetFailure) or target.key in unclear:
            continue
        first = chosen.setdefault(target.key, target)
        if first is not target:
            failures.append(_chosen_twice(policy.metadata.name, first, target))
    return tuple(chosen.values()), tuple(failures)


def unmatched(policy: UpstreamPolicy, objects: ObjectIndex) -> Iterator[tuple[int, int]]:
    """The entries whose objectSelector chooses nothing, and of how many objects of its kind."""
    inventory = Inventory({}, objects)
    for index, entry in enumerate(policy.spec.targets):
        selector = entry.object_selector
        if selector is None or any(True for _ in _of_entry(index, entry, policy, inventory)):
            continue
        yield index, sum(1 for _ in _objects(selector, policy, objects))


def _position(found: Target | TargetFailure) -> str:
    return found.key if isinstance(found, Target) else found.target


def _chosen_twice(policy: str, first: Target, second: Target) -> TargetFailure:
    return TargetFailure(
        policy=policy,
        target=second.key,
        reason="DuplicateTarget",
        problem=f"chooses {second.key}, which spec.targets[{first.entry}] has already; narrow one"
        " of the selectors",
        field=f"spec.targets[{second.entry}]",
    )


def _of_entry(
    index: int, entry: TargetEntry, policy: UpstreamPolicy, inventory: Inventory
) -> Iterator[Target | TargetFailure]:
    package = policy.spec.upstream.package
    if entry.repositories:
        for choice in entry.repositories:
            for name in choice.package_names or (package,):
                both = {"repo": choice.name, "package": name}
                yield Target(index, f"Repository/{choice.name}/{name}", both, choice.name, name)
    elif entry.repository_selector is not None:
        for name, repository in inventory.repositories.items():
            if matches(entry.repository_selector, repository.metadata.labels):
                key = f"Repository/{repository.metadata.namespace}/{name}"
                yield Target(index, key, as_object(repository), name, package)
    elif entry.object_selector is not None:
        selector = entry.object_selector
        kind = _kind_in_keys(selector)
        for (namespace, name), thing in _objects(selector, policy, inventory.objects):
            if selector.name and name != selector.name:
                continue
            chosen = chooses(selector, (thing.get("metadata") or {}).get("labels"))
            if chosen is False:
                continue
            key = f"{kind}/{namespace}/{name}"
            if chosen:
                yield Target(index, key, thing, str(name), package)
            else:
                yield _unclear(index, key, policy)


def _unclear(entry: int, key: str, policy: UpstreamPolicy) -> TargetFailure:
    return TargetFailure(
        policy=policy.metadata.name,
        target=key,
        reason="InvalidObject",
        problem=f"nobody can say whether {key} is a target: a label that is asked for is no text;"
        " put its key and its value in quotes where the object is written",
        field=f"spec.targets[{entry}].objectSelector",
    )


def _objects(
    selector: ObjectSelector, policy: UpstreamPolicy, objects: ObjectIndex
) -> Iterable[tuple[tuple[str, str], Object]]:
    """Objects of the kind in the policy's own namespace, and cluster-scoped ones, by both names."""
    namespaces = ("", policy.metadata.namespace)
    kind = objects.of_kind(group_of(selector.api_version), selector.kind)
    return (item for item in kind.items() if item[0][0] in namespaces)


def _kind_in_keys(selector: ObjectSelector) -> str:
    """The kind in the keys of what it chooses: with its group, without a version."""
    group = group_of(selector.api_version)
    return f"{selector.kind}.{group}" if group else selector.kind


def as_object(repository: Repository) -> Object:
    """A Repository as expressions see it: the object that was written."""
    return repository.model_dump(mode="json", by_alias=True, exclude_unset=True)


def usable_by(namespace: str, repositories: Sequence[Repository]) -> dict[str, Repository]:
    """What objects of this namespace may name, by name; its own come before foreign ones."""
    usable: dict[str, Repository] = {}
    for repository in sorted(
        repositories, key=lambda item: (item.metadata.namespace, item.metadata.name)
    ):
        own = repository.metadata.namespace == namespace
        if own or (visible(repository, namespace) and repository.metadata.name not in usable):
            usable[repository.metadata.name] = repository
    return usable
