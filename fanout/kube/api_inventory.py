"""Declared objects of an API server: fanout's own kinds, and those that its policies name."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from fanout.api.field_errors import FieldPath, format_path
from fanout.api.git_repository import Repository
from fanout.api.object_meta import GROUP, KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_validation import validate_object
from fanout.declared.declaration_assembly import Declarations, assemble_declared, build_finding
from fanout.declared.declaration_failure import DeclarationFailure, GroupKind, own_kind
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.declared.object_key import ObjectKey
from fanout.declared.required_kinds import (
    RequiredKind,
    has_open_injectors,
    list_required_kinds,
)
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.errors import Denied, ErrorLocation, InvalidInput
from fanout.kube import kube_wording as wording
from fanout.kube.api_connection import ApiConnection, NotServed
from fanout.kube.kind_choice import KindChoice, choose_kinds
from fanout.kube.object_listing import list_objects
from fanout.kube.resource_discovery import ResourceType, ServedKinds, discover_kinds
from fanout.selection.cluster_objects import ClusterObjectIndex
from fanout.selection.variant_spec import Object
from fanout.values import frozen

_OWN_KINDS: tuple[type[KRMObject], ...] = (
    Repository,
    UpstreamPolicy,
    PackageVariant,
    PromotionPolicy,
)
_SECRET: GroupKind = ("", "Secret")


@frozen
class ApiPosition:
    """Position of an object in the API: it has fields and no lines."""

    value: Any

    def locate(self, identity: str, path: FieldPath) -> ErrorLocation:
        """Return the location of a field of the object, which messages call `identity`."""
        namespace = self.value["metadata"].get("namespace", "")
        kind, _, name = identity.partition("/")
        return ErrorLocation(f"{kind}/{namespace}/{name}", format_path(path))


@dataclass(slots=True)
class _Reading:
    """Objects read so far, and what could not be read or used."""

    own_objects: dict[ObjectKey, tuple[KRMObject, ApiPosition]] = field(default_factory=dict)
    objects: list[Object] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    broken: list[tuple[ObjectKey, ApiPosition]] = field(default_factory=list)
    unread: list[DeclarationFailure] = field(default_factory=list)


class ApiInventory:
    """Objects of an API server as listed once: a command judges one state of the cluster."""

    def __init__(self, connection: ApiConnection) -> None:
        """List nothing yet."""
        self._connection = connection
        self._injected: frozenset[GroupKind] = frozenset()  # by packages, besides what is named
        self._listed: frozenset[GroupKind] = frozenset()
        self._declared: DeclaredObjects | None = None

    def read(self) -> DeclaredObjects:
        """Return what is declared; lists it the first time.

        Raises InvalidInput if fanout's kinds are not installed, Unavailable if the API server
        cannot be reached. A kind that must not be listed is in `unread`.
        """
        if self._declared is None:
            self._declared = self._read_objects(discover_kinds(self._connection))
        return self._declared

    def require(self, kinds: Collection[GroupKind]) -> bool:
        """Return whether some of the kinds, which packages inject, have yet to be listed.

        The next reading has them. None is needed where every injector names its kind.
        """
        declared = self.read()
        missing = frozenset(kinds) - self._listed
        if not missing or not has_open_injectors(declared.policies, declared.variants):
            return False
        self._injected, self._declared = self._injected | missing, None
        return True

    def digest(self) -> str:
        """Return "": nothing tells without a listing whether anything changed."""
        return ""

    def last_digest(self) -> str:
        """Return "", as `digest` does."""
        return ""

    def _read_objects(self, served: ServedKinds) -> DeclaredObjects:
        reading = _Reading()
        for model in _OWN_KINDS:
            self._read_own_kind(model, served, reading)
        items = [item for item, _ in reading.own_objects.values()]
        named = list_required_kinds(
            (it for it in items if isinstance(it, UpstreamPolicy)),
            (it for it in items if isinstance(it, PackageVariant)),
        )
        injected = (RequiredKind(kind, group) for group, kind in sorted(self._injected))
        choices = choose_kinds((*named, *injected), served)
        for kind, choice in choices.items():
            self._read_kind(kind, choice, reading)
        self._listed = frozenset(choices)
        return assemble_declared(
            Declarations(
                own_objects=reading.own_objects,
                objects=ClusterObjectIndex(reading.objects),
                served_scopes=served.scopes(),
                findings=reading.findings,
                broken=reading.broken,
                unread=reading.unread,
            )
        )

    def _read_own_kind(
        self, model: type[KRMObject], served: ServedKinds, reading: _Reading
    ) -> None:
        resource_type = served.find(GROUP, model.__name__)
        if resource_type is None:
            raise InvalidInput(
                wording.describe_unserved_kind(model.__name__, GROUP),
                reason="ClusterUnavailable",
                remedy=wording.DEFINITIONS_REMEDY,
            )
        # What fanout wrote into a status is no input of fanout.
        for data in self._list(own_kind(model), resource_type, reading, with_status=False):
            # A policy's variants are written by fanout, and read by nobody who decides.
            if "policyRef" not in (data.get("spec") or {}):
                _validate_own(data, reading)

    def _read_kind(self, kind: GroupKind, choice: KindChoice, reading: _Reading) -> None:
        if kind == _SECRET:
            _add_unread(kind, wording.SECRETS_UNREAD, wording.SECRETS_REMEDY, reading)
        elif choice.resource_type is None:
            problem = wording.describe_unserved_kind(kind[1], kind[0])
            _add_unread(kind, problem, wording.NOT_SERVED_REMEDY, reading)
        else:
            reading.objects += self._list(
                kind, choice.resource_type, reading, with_status=choice.with_status
            )

    def _list(
        self, kind: GroupKind, resource_type: ResourceType, reading: _Reading, *, with_status: bool
    ) -> list[Object]:
        """Return the objects of a kind; none if it cannot be listed, which is noted."""
        try:
            return list_objects(self._connection, resource_type, with_status=with_status)
        except (Denied, NotServed) as error:
            _add_unread(kind, error.problem, error.remedy, reading)
            return []


def _add_unread(kind: GroupKind, problem: str, remedy: str, reading: _Reading) -> None:
    source = ".".join(part for part in reversed(kind) if part)
    reading.unread.append(DeclarationFailure(source, kind))
    reading.findings.append(Finding(ErrorLocation(source), problem, remedy))


def _validate_own(data: Object, reading: _Reading) -> None:
    key, position = ObjectKey.of(data), ApiPosition(data)
    item, errors = validate_object(data)
    errors = (*errors, *find_schedule_errors(item))
    reading.findings += (build_finding(key.identity, position, error) for error in errors)
    if item is not None and not errors:
        reading.own_objects[key] = item, position
    else:
        reading.broken.append((key, position))
