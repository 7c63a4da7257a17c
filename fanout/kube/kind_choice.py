"""Choice of the kinds that are read: in which versions, and with which of their fields."""

from collections.abc import Collection, Iterable, Iterator, Mapping

from fanout.api.field_errors import FieldError
from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.required_kinds import KindReference, RequiredKind, find_open_injectors
from fanout.kube import kube_wording as wording
from fanout.kube.resource_discovery import ResourceType, ServedKinds
from fanout.selection.cluster_objects import GroupKind, ObjectsByName, VersionedKind
from fanout.values import Value


class KindChoice(Value):
    """A kind that is read in one version."""

    resource_type: ResourceType | None  # None: the API server does not serve it
    with_status: bool = False  # its objects are read with their status


class UnreadableKind(Value):
    """A kind whose objects cannot be read in some version: why, and what to do."""

    problem: str
    remedy: str
    is_version: bool = False  # True: the kind is served in other versions


def choose_kinds(
    required: Iterable[RequiredKind], served: ServedKinds
) -> dict[VersionedKind, KindChoice]:
    """Return the kinds to read, in each version that is asked for."""
    choices: dict[VersionedKind, KindChoice] = {}
    for item in required:
        for key in list_versions(item, served):
            with_status = key in choices and choices[key].with_status
            choices[key] = KindChoice(served.find(*key), with_status or item.reads_status)
    return choices


def list_versions(kind: RequiredKind, served: ServedKinds) -> Iterator[VersionedKind]:
    """Yield the kind in each of its groups, in the named version or else the preferred one.

    The version of a kind that is not served is the named one, or "".
    """
    for group in list_groups(kind, served):
        resource_type = served.find(group, kind.kind, kind.version)
        yield group, kind.kind, resource_type.version if resource_type else kind.version


def list_missing(required: Iterable[RequiredKind], served: ServedKinds) -> list[VersionedKind]:
    """Return the kinds that are not served in the named version; of one of no group with ""."""
    missing: dict[VersionedKind, None] = {}
    for item in required:
        keys = [*list_versions(item, served)] or [("", item.kind, item.version)]
        missing |= {key: None for key in keys if served.find(*key) is None}
    return [*missing]


def list_injected(
    declaration: UpstreamPolicy | PackageVariant, kinds: Iterable[GroupKind], served: ServedKinds
) -> Iterator[RequiredKind]:
    """Yield what the injectors without a kind need of the kinds that the package injects."""
    versions = {version for _, version in find_open_injectors(declaration)}
    for group, kind in sorted(kinds):
        # The injection point of another kind may be the one with this version.
        for version in sorted(versions & {"", *served.versions(group, kind)} or {""}):
            yield RequiredKind(kind, group, version)


def split_versions(
    objects: Mapping[VersionedKind, ObjectsByName], served: ServedKinds
) -> tuple[dict[GroupKind, ObjectsByName], dict[VersionedKind, ObjectsByName]]:
    """Return the objects in the version that the server prefers among those read, and in others.

    Who names no version reads the first, and requires the preferred one of all.
    """
    kinds: dict[GroupKind, ObjectsByName] = {}
    other_versions: dict[VersionedKind, ObjectsByName] = {}
    for group, kind in dict.fromkeys((group, kind) for group, kind, _ in objects):
        versions = (it for it in served.versions(group, kind) if (group, kind, it) in objects)
        first, *others = versions
        kinds[group, kind] = objects[group, kind, first]
        other_versions |= {(group, kind, it): objects[group, kind, it] for it in others}
    return kinds, other_versions


def find_unread_kinds(
    references: Iterable[KindReference],
    unread: Mapping[VersionedKind, UnreadableKind],
    served: ServedKinds,
) -> Iterator[tuple[VersionedKind, FieldError]]:
    """Yield each referenced kind that cannot be read, with the error of the field that names it."""
    for reference in references:
        name, path = reference.kind.kind, (*reference.field[:-1], "kind")
        keys = [*list_versions(reference.kind, served)]
        for key in keys:
            if (reason := unread.get(key)) is not None:
                where = reference.field if reason.is_version else path
                yield key, FieldError(where, reason.problem, reason.remedy)
        if not keys:
            problem = wording.describe_unserved_kind(name, "")
            yield ("", name, ""), FieldError(path, problem, wording.NOT_SERVED_REMEDY)


def find_unread_injections(
    declaration: UpstreamPolicy | PackageVariant, unread: Mapping[VersionedKind, UnreadableKind]
) -> Iterator[tuple[VersionedKind, FieldError]]:
    """Yield the errors of injectors that name no kind.

    `unread`: the kinds that the packages of the declaration inject and that cannot be read.
    """
    if declaration.is_being_deleted:
        return
    for path, _ in find_open_injectors(declaration):
        for key, reason in unread.items():
            yield key, FieldError(path, reason.problem, reason.remedy)


def find_unserved_version(key: VersionedKind, served: ServedKinds) -> UnreadableKind:
    """Return why a kind that is not served in this version cannot be read."""
    group, kind, version = key
    versions: Collection[str] = served.versions(group, kind)
    if not versions:
        problem = wording.describe_unserved_kind(kind, group)
        return UnreadableKind(problem, wording.NOT_SERVED_REMEDY)
    problem = wording.describe_unserved_version(kind, group, [*versions], version)
    return UnreadableKind(problem, wording.VERSION_REMEDY, is_version=True)


def list_groups(kind: RequiredKind, served: ServedKinds) -> tuple[str, ...]:
    """Return the API groups of a kind; one that names none may be in several."""
    if kind.group is not None:
        return (kind.group,)
    groups = served.groups(kind.kind)
    return tuple(it for it in groups if served.find(it, kind.kind, kind.version)) or groups
