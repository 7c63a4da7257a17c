"""Declared objects: usable ones by kind, errors, and what could not be read or used."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from fanout.api.field_errors import FieldPath, format_path
from fanout.api.git_repository import Repository
from fanout.api.kind_registry import KINDS
from fanout.api.object_meta import GROUP, KRMObject
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.scenario import Scenario
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.declared.finding import Finding
from fanout.errors import ErrorLocation
from fanout.selection.cluster_objects import ClusterObjectIndex, GroupKind, group_of
from fanout.selection.variant_spec import Object
from fanout.values import Value, field
from fanout.variants.functions.kind_scopes import CRD_KIND, read_scopes


def own_kind(kind: type[KRMObject]) -> GroupKind:
    """Return group and kind of one of fanout's own kinds."""
    return GROUP, kind.__name__


class DeclarationFailure(Value):
    """A source of declarations that could not be read, or an object that cannot be used.

    `source` names it in messages. Where kind or namespace is not known, it may be any.
    """

    source: str
    kind: GroupKind | None = None  # None: any
    namespace: str = ""  # "": any, or cluster-scoped

    def concerns(self, kind: GroupKind, namespace: str) -> bool:
        """Return whether objects of a kind may be missing that a namespace reads."""
        return self.kind in (None, kind) and self.namespace in ("", namespace)


class ObjectKey(NamedTuple):
    """Unique key of an object: group, kind, namespace and name."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, data: Object) -> "ObjectKey":
        """Return the key of an object whose identifying fields have been checked."""
        meta = data["metadata"]
        return cls(group_of(data["apiVersion"]), data["kind"], meta["namespace"], meta["name"])

    @property
    def identity(self) -> str:
        """Return `Kind/name`, as messages name the object."""
        return f"{self.kind}/{self.name}"

    def may_be(self, kind: type[KRMObject]) -> bool:
        """Return whether an object meant for fanout is of this kind; a misspelled one may be."""
        return self.kind == kind.__name__ or self.kind not in KINDS


class ObjectPosition(Protocol):
    """Position of a declared object where its users write it: in a file, or in the API."""

    @property
    def value(self) -> Any:
        """The object's data as it was written."""

    def locate(self, identity: str, path: FieldPath) -> ErrorLocation:
        """Return the location of a field of the object, which messages call `identity`."""


_PATH_PART = re.compile(r"\[(\d+)\]|\[\"([^\"]*)\"\]|([^.\[]+)")


class DeclaredObjects(Value):
    """Usable objects by kind, sorted by namespace and name, and all errors.

    `left_out` names objects of fanout's kinds that are declared and cannot be used; `broken`
    are those of them with errors of their own. What is in `unread` may have declared anything
    of its kind and namespace. `unusable` describes declared objects that would be, or would
    hold, a target: objects without a name, duplicates, and repositories. Code that relies on
    something not being declared must ask for what is unusable: an unreadable PromotionPolicy was
    still meant to restrict somebody.
    """

    repositories: tuple[Repository, ...] = ()
    policies: tuple[UpstreamPolicy, ...] = ()
    variants: tuple[PackageVariant, ...] = ()
    promotions: tuple[PromotionPolicy, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    objects: ClusterObjectIndex = field(default_factory=ClusterObjectIndex)
    # As an API server reports them; see `scopes`.
    served_scopes: Mapping[GroupKind, bool] = field(default_factory=dict)
    # When the definition of each custom kind was created, as an API server reports it.
    definition_times: Mapping[GroupKind, datetime] = field(default_factory=dict)
    faults: tuple[Finding, ...] = ()
    left_out: tuple[ObjectKey, ...] = ()
    broken: tuple[tuple[ObjectKey, ObjectPosition], ...] = ()
    unread: tuple[DeclarationFailure, ...] = ()
    unusable: tuple[DeclarationFailure, ...] = ()
    positions: Mapping[ObjectKey, ObjectPosition] = field(default_factory=dict)

    @property
    def scopes(self) -> Mapping[GroupKind, bool]:
        """Scopes of custom kinds, by group and kind: True if their objects are in namespaces."""
        return {**self.served_scopes, **read_scopes(self.objects.of_kind(*CRD_KIND).values())}

    @property
    def declarations(self) -> tuple[UpstreamPolicy | PackageVariant, ...]:
        """Policies and hand-written variants."""
        return (*self.policies, *self.variants)

    @property
    def own_count(self) -> int:
        """Number of objects of fanout's own kinds, usable or not."""
        usable = (self.policies, self.promotions, self.repositories, self.variants, self.scenarios)
        return sum(map(len, usable)) + len(self.left_out)

    def find_unusable(self, kind: GroupKind, namespace: str) -> Iterator[str]:
        """Yield what may declare objects of a kind for a namespace, and cannot be used."""
        for it in (*self.unread, *self.unusable):
            if it.concerns(kind, namespace):
                yield it.source

    def find_unusable_targets(self, policy: UpstreamPolicy) -> Iterator[str]:
        """Yield what may declare targets of a policy or their repositories, and cannot be used."""
        for entry in policy.spec.targets:
            if (selector := entry.object_selector) is not None:
                kind = (group_of(selector.api_version), selector.kind)
                yield from self.find_unusable(kind, policy.metadata.namespace)
        yield from self.find_unusable(own_kind(Repository), policy.metadata.namespace)

    def find_unusable_own(self, kind: type[KRMObject], namespace: str) -> Iterator[str]:
        """Yield what may declare an object of fanout in a namespace, and cannot be used."""
        yield from self.find_unusable(own_kind(kind), namespace)
        for key in self.left_out:
            if key.namespace == namespace and key.may_be(kind):
                yield f"{key.kind} {key.namespace}/{key.name}"

    def where(self, item: KRMObject, field_path: str | FieldPath = ()) -> ErrorLocation:
        """Return the location of a field, by path or as text (`spec.stages[3].after`)."""
        path = _parse_path(field_path) if isinstance(field_path, str) else field_path
        if (position := self.positions.get(key_of(item))) is None:
            return ErrorLocation(item.identity, format_path(path))
        return position.locate(item.identity, path)


_read_restrictions = attrgetter(
    *("repositories", "policies", "variants", "promotions", "served_scopes", "definition_times"),
    *("left_out", "unread", "unusable"),
)


def have_same_restrictions(previous: DeclaredObjects, present: DeclaredObjects) -> bool:
    """Return whether two values are the same but for cluster objects and positions.

    What restricts or removes something is in objects of fanout, or in what cannot be read or used.
    """
    return bool(_read_restrictions(previous) == _read_restrictions(present))


def locate_broken(key: ObjectKey, position: ObjectPosition, at: str) -> ErrorLocation:
    """Return the location of a field of an object that cannot be used."""
    return position.locate(key.identity, _parse_path(at))


def key_of(item: KRMObject) -> ObjectKey:
    """Return the key of an object of fanout's own."""
    return ObjectKey(GROUP, item.kind, item.metadata.namespace, item.metadata.name)


def _parse_path(text: str) -> FieldPath:
    """Split a field path such as `spec.stages[3].after` into its parts."""
    parts = (match.groups() for match in _PATH_PART.finditer(text))
    return tuple(int(index) if index else key or word for index, key, word in parts)
