"""Choice of the kinds that are read: in which version, and with which of their fields."""

from collections.abc import Iterable

from fanout.declared.declaration_failure import GroupKind
from fanout.declared.required_kinds import RequiredKind
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
        for group in served.groups(item.kind) if item.group is None else (item.group,):
            previous = choices.get((group, item.kind), KindChoice(None))
            choices[group, item.kind] = KindChoice(
                previous.resource_type or served.find(group, item.kind, item.version),
                previous.with_status or item.reads_status,
            )
    return choices
