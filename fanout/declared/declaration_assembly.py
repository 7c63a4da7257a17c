"""Assembly of declared objects from what a front end has read, with checks among the objects."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from fanout.api.field_errors import FieldError, find_similar_name
from fanout.api.git_repository import Repository
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.scenario import Scenario
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_references import InvalidObjects, cross_check, find_shared_names
from fanout.declared.declared_objects import (
    DeclarationFailure,
    DeclaredObjects,
    ObjectKey,
    ObjectPosition,
    key_of,
    own_kind,
)
from fanout.declared.finding import Finding
from fanout.values import replace

Kind = TypeVar("Kind", bound=KRMObject)
_ALLOWED_NAMESPACES = "allowedNamespaces"


def assemble_declared(
    own_objects: Mapping[ObjectKey, tuple[KRMObject, ObjectPosition]],
    repeated: Mapping[ObjectKey, Sequence[ObjectPosition]],
    read: DeclaredObjects,
) -> DeclaredObjects:
    """Return what a front end has read with fanout's own objects, checked among each other.

    `own_objects` are the usable ones, each validated on its own; `repeated` those that are declared
    more than once, with all their positions; `read` has everything else.
    """
    pairs = [own_objects[key] for key in sorted(own_objects)]
    items = [item for item, _ in pairs]
    unusable_positions: dict[ObjectKey, Sequence[ObjectPosition]] = {}
    for key, position in read.broken:
        unusable_positions[key] = (*unusable_positions.get(key, ()), position)
    unusable_positions |= repeated
    # References to unusable objects are not reported as missing: the object's own error is the
    # cause, and a second message would hide it.
    unusable = InvalidObjects(
        frozenset((key.kind, key.namespace, key.name) for key in unusable_positions),
        bool(read.unread),
    )
    position_by_id = {id(item): position for item, position in pairs}
    findings = [
        *read.faults,
        *(
            build_finding(item.identity, position_by_id[id(item)], error)
            for item, error in cross_check(items, unusable)
        ),
    ]
    # Repositories that cannot be used and would be, or would hold, a target.
    failures = list(read.unusable)
    for key, positions in sorted(unusable_positions.items()):
        if key.kind == Repository.__name__ or key.kind not in KINDS:  # which may be misspelled
            namespaces = _find_allowed_namespaces(key, positions)
            kind = own_kind(Repository)
            failures += [DeclarationFailure(key.identity, kind, it) for it in namespaces]
    shared = find_shared_names(
        _select_kind(UpstreamPolicy, items), _select_kind(PackageVariant, items), unusable
    )
    refused = {key_of(item): own_objects[key_of(item)][1] for item, _ in shared}
    items = [it for it in items if key_of(it) not in refused]
    return replace(
        read,
        repositories=_select_kind(Repository, items),
        policies=_select_kind(UpstreamPolicy, items),
        variants=_select_kind(PackageVariant, items),
        promotions=_select_kind(PromotionPolicy, items),
        scenarios=_select_kind(Scenario, items),
        faults=tuple(
            sorted(dict.fromkeys(findings), key=lambda it: (it.where.file, it.where.line))
        ),
        broken=(*read.broken, *refused.items()),
        left_out=tuple(sorted(unusable_positions.keys() | refused)),
        unusable=tuple(failures),
        positions={
            key: position for key, (_, position) in own_objects.items() if key not in refused
        },
    )


def _find_allowed_namespaces(key: ObjectKey, positions: Iterable[ObjectPosition]) -> Sequence[str]:
    """Return the namespaces that may name an unusable Repository; "" if any may."""
    namespaces = {key.namespace}
    for position in positions:
        spec = position.value.get("spec")
        if not isinstance(spec, Mapping):
            return [""]
        for name, value in spec.items():
            if not find_similar_name(str(name), (_ALLOWED_NAMESPACES,)):
                continue
            is_list = isinstance(value, list) and all(isinstance(it, str) for it in value)
            if name != _ALLOWED_NAMESPACES or not is_list:  # its author may have meant any
                return [""]
            namespaces.update(value)
    return sorted(namespaces)


def build_finding(identity: str, position: ObjectPosition, error: FieldError) -> Finding:
    """Build the finding for an error of the object with this `Kind/name` at its position."""
    where = position.locate(identity, error.path)
    metadata = position.value.get("metadata") if isinstance(position.value, Mapping) else None
    namespace = metadata.get("namespace") if isinstance(metadata, Mapping) else None
    return Finding(where, error.problem, error.remedy, error.severity, str(namespace or ""))


def _select_kind(kind: type[Kind], items: Iterable[KRMObject]) -> tuple[Kind, ...]:
    return tuple(item for item in items if isinstance(item, kind))
