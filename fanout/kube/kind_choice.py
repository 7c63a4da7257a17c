"""Choice of the kinds that are read: in which version, and with which of their fields."""

from collections.abc import Iterable, Iterator, Mapping

from fanout.api.field_errors import FieldError
from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.declaration_failure import GroupKind
from fanout.declared.required_kinds import KindReference, RequiredKind, find_open_injectors
from fanout.kube import kube_wording as wording
from fanout.kube.resource_discovery import ResourceType, ServedKinds
from fanout.values import frozen


@frozen
class KindChoice:
    """A kind that is read."""

    resource_type: ResourceType | None  # None: the API server does not serve it
    with_status: bool = False  # its objects are read with their status


@frozen
class UnreadableKind:
    """A kind whose objects cannot be read: why, and what to do."""

    problem: str
    remedy: str


def choose_kinds(
    required: Iterable[RequiredKind], served: ServedKinds
) -> dict[GroupKind, KindChoice]:
    """Return the kinds to read, each in the version that is asked for first and is served."""
    choices: dict[GroupKind, KindChoice] = {}
    for item in required:
        for group in list_groups(item, served):
            previous = choices.get((group, item.kind), KindChoice(None))
            choices[group, item.kind] = KindChoice(
                previous.resource_type or served.find(group, item.kind, item.version),
                previous.with_status or item.reads_status,
            )
    return choices


def find_other_versions(
    references: Iterable[KindReference],
    choices: Mapping[GroupKind, KindChoice],
    served: ServedKinds,
) -> Iterator[FieldError]:
    """Yield an error for each reference to a version in which its kind is not read."""
    for reference in references:
        kind = reference.kind
        for group in list_groups(kind, served) if kind.version else ():
            resource_type = choices[group, kind.kind].resource_type
            if resource_type is not None and resource_type.version != kind.version:
                problem = wording.describe_other_version(
                    resource_type.api_version, kind.kind, kind.version
                )
                yield FieldError(reference.field, problem, wording.VERSION_REMEDY)


def find_unread_kinds(
    references: Iterable[KindReference],
    unread: Mapping[GroupKind, UnreadableKind],
    served: ServedKinds,
) -> Iterator[tuple[GroupKind, FieldError]]:
    """Yield each referenced kind that cannot be read, with the error of the field that names it."""
    for reference in references:
        name, path = reference.kind.kind, (*reference.field[:-1], "kind")
        groups = list_groups(reference.kind, served)
        for group in groups:
            if (reason := unread.get((group, name))) is not None:
                yield (group, name), FieldError(path, reason.problem, reason.remedy)
        if not groups:
            problem = wording.describe_unserved_kind(name, "")
            yield ("", name), FieldError(path, problem, wording.NOT_SERVED_REMEDY)


def find_unread_injections(
    declaration: UpstreamPolicy | PackageVariant, unread: Mapping[GroupKind, UnreadableKind]
) -> Iterator[tuple[GroupKind, FieldError]]:
    """Yield the errors of injectors that name no kind.

    `unread`: the kinds that the packages of the declaration inject and that cannot be read.
    """
    if declaration.is_being_deleted:
        return
    for path in find_open_injectors(declaration):
        for kind, reason in unread.items():
            yield kind, FieldError(path, reason.problem, reason.remedy)


def list_groups(kind: RequiredKind, served: ServedKinds) -> tuple[str, ...]:
    """Return the API groups of a kind; one that names none may be in several."""
    return served.groups(kind.kind) if kind.group is None else (kind.group,)
