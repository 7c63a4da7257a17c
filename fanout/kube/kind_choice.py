"""Choice of the kinds that are read: in which version, and with which of their fields."""

from collections.abc import Iterable, Iterator, Mapping

from fanout.api.field_errors import FieldError
from fanout.declared.declaration_failure import GroupKind
from fanout.declared.required_kinds import KindReference, RequiredKind
from fanout.kube import kube_wording as wording
from fanout.kube.resource_discovery import ResourceType, ServedKinds
from fanout.values import frozen


@frozen
class KindChoice:
    """A kind that is read."""

    resource_type: ResourceType | None  # None: the API server does not serve it
    with_status: bool = False  # its objects are read with their status


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


def list_groups(kind: RequiredKind, served: ServedKinds) -> tuple[str, ...]:
    """Return the API groups of a kind; one that names none may be in several."""
    return served.groups(kind.kind) if kind.group is None else (kind.group,)
