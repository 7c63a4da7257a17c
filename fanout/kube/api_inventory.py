"""Declared objects of an API server: fanout's own kinds, and those that its policies name."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from fanout.api.field_errors import FieldError, FieldPath, format_path
from fanout.api.git_repository import Repository
from fanout.api.object_meta import GROUP, KRMObject, is_secret
from fanout.api.package_variant import PackageVariant
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.object_validation import validate_object
from fanout.declared.declaration_assembly import assemble_declared, build_finding
from fanout.declared.declared_objects import (
    DeclarationFailure,
    DeclaredObjects,
    ObjectKey,
    key_of,
    own_kind,
)
from fanout.declared.finding import Finding
from fanout.declared.required_kinds import (
    KindReference,
    RequiredKind,
    find_open_injectors,
    list_references,
    merge_references,
)
from fanout.declared.schedule_errors import find_schedule_errors
from fanout.errors import Bug, Denied, ErrorLocation, Unavailable
from fanout.kube.api_connection import LISTED_AGAIN_REMEDY, NOT_SERVED_REMEDY, NotServed
from fanout.kube.object_sources import ListedKind, ListedObjects, WatchedObjects, without_request
from fanout.kube.resource_discovery import ServedKinds, describe_unserved_kind
from fanout.selection.cluster_objects import (
    ClusterObjectIndex,
    GroupKind,
    ObjectsByName,
    VersionedKind,
)
from fanout.selection.variant_spec import Object
from fanout.values import Value, replace


class UnreadableKind(Value):
    """A kind whose objects cannot be read in some version: why, and what to do."""

    problem: str
    remedy: str
    is_version: bool = False  # True: the kind is served in other versions


def list_versions(kind: RequiredKind, served: ServedKinds) -> Iterator[VersionedKind]:
    """Yield the kind in each of its groups, in the named version or else the preferred one.

    The version of a kind that is not served is the named one, or "".
    """
    # A kind that names no group may be in several.
    groups = (kind.group,) if kind.group is not None else served.groups(kind.kind)
    if kind.group is None:
        groups = tuple(it for it in groups if served.find(it, kind.kind, kind.version)) or groups
    for group in groups:
        resource_type = served.find(group, kind.kind, kind.version)
        yield group, kind.kind, resource_type.version if resource_type else kind.version


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
        first, *others = (it for it in served.versions(group, kind) if (group, kind, it) in objects)
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
            problem = describe_unserved_kind(name, "")
            yield ("", name, ""), FieldError(path, problem, NOT_SERVED_REMEDY)


def find_unserved_version(key: VersionedKind, served: ServedKinds) -> UnreadableKind:
    """Return why a kind that is not served in this version cannot be read."""
    group, kind, version = key
    if not (versions := served.versions(group, kind)):
        problem = describe_unserved_kind(kind, group)
        return UnreadableKind(problem, NOT_SERVED_REMEDY)
    name = f"kind {kind}" + (f" of group {group}" if group else "")
    problem = f"the API server serves {name} as {' or '.join(versions)}, not as {version}"
    return UnreadableKind(problem, "name a version that is served", is_version=True)


_OWN_KINDS = (Repository, UpstreamPolicy, PackageVariant, PromotionPolicy)


class ApiPosition(Value):
    """Position of an object in the API: it has fields and no lines."""

    value: Any

    def locate(self, identity: str, path: FieldPath) -> ErrorLocation:
        """Return the location of a field of the object, which messages call `identity`."""
        namespace = self.value["metadata"].get("namespace", "")
        kind, _, name = identity.partition("/")
        return ErrorLocation(f"{kind}/{namespace}/{name}", format_path(path))


class _ValidatedObject(Value):
    """An object of fanout as it was last validated: usable if there is an item and no error."""

    data: Object
    item: KRMObject | None
    errors: tuple[FieldError, ...]
    references: tuple[KindReference, ...]  # to kinds of cluster objects


@dataclass(slots=True)
class _Reading:
    """Objects read so far, and what could not be read or used."""

    own_objects: dict[ObjectKey, tuple[KRMObject, ApiPosition]] = field(default_factory=dict)
    objects: dict[VersionedKind, ObjectsByName] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    broken: list[tuple[ObjectKey, ApiPosition]] = field(default_factory=list)
    unread: list[DeclarationFailure] = field(default_factory=list)
    unread_kinds: dict[VersionedKind, UnreadableKind] = field(default_factory=dict)
    listed_kinds: list[ListedKind] = field(default_factory=list)


class ApiInventory:
    """Declared objects of an API server, read by one thread at a time.

    What did not change from one reading to the next stays the same object.
    """

    def __init__(self, source: ListedObjects | WatchedObjects, namespace: str = "") -> None:
        """Read nothing yet; kinds that must not be listed everywhere are read in `namespace`."""
        self._source = source
        self._namespace = namespace
        # By packages, for injectors that name no kind.
        self._injected: dict[ObjectKey, frozenset[GroupKind]] = {}
        self._read_kinds: frozenset[VersionedKind] = frozenset()
        self._served = ServedKinds(())  # as of the last reading
        self._validated: dict[ObjectKey, _ValidatedObject] = {}
        self._objects = ClusterObjectIndex()
        self._declared: DeclaredObjects | None = None
        self._version = 0  # of the source, at most as new as what is declared

    def read(self) -> DeclaredObjects:
        """Return what is declared; the same value if nothing changed.

        Raises InvalidInput if fanout's kinds are not installed, and Unavailable. A kind that must
        not be listed is in `unread`.
        """
        version = self._source.version()
        if self._declared is None or version != self._version:
            self._declared = self._read_objects(self._source.served())
            # Asked before: what changed during the reading is read again.
            self._version = version
        return self._declared

    def require(self, injected: Mapping[ObjectKey, Collection[GroupKind]]) -> bool:
        """Return whether some of the kinds, which packages inject, have yet to be read.

        The next reading has them, or lacks the policies and variants that need them.
        """
        declared, new = self.read(), set[VersionedKind]()
        for declaration in declared.declarations:
            key = key_of(declaration)
            previous = self._injected.get(key, frozenset())
            added = frozenset(injected.get(key, ())) - previous
            if added and any(find_open_injectors(declaration)):
                self._injected[key] = previous | added
                for kind in list_injected(declaration, added, self._served):
                    new |= {*list_versions(kind, self._served)}
        if new <= self._read_kinds:
            return False
        self._declared = None
        return True

    def _read_objects(self, served: ServedKinds) -> DeclaredObjects:
        reading, self._served = _Reading(), served
        for model in _OWN_KINDS:
            # What fanout wrote into a status is no input of fanout.
            listed_kind = ListedKind(served.require_own(model.__name__))
            for data in self._list(listed_kind, reading).values():
                key, position = ObjectKey.of(data), ApiPosition(data)
                validated = self._validate(key, data)
                if validated.item is not None and not validated.errors:
                    reading.own_objects[key] = validated.item, position
                else:
                    _add_broken(key, position, validated.errors, reading)
        named = merge_references(
            it for key in reading.own_objects for it in self._validated[key].references
        )
        # Of injectors without a kind, by the packages seen so far.
        injected = [
            it
            for key, kinds in self._injected.items()
            if key in reading.own_objects
            and isinstance(own := reading.own_objects[key][0], (UpstreamPolicy, PackageVariant))
            for it in list_injected(own, kinds, served)
        ]
        with_status: dict[VersionedKind, bool] = {}
        for item in (*named, *injected):
            for version in list_versions(item, served):
                with_status[version] = with_status.get(version, False) or item.reads_status
        for version in sorted(with_status):
            resource_type = served.find(*version)
            if is_secret(*version[:2]):
                problem = "fanout reads no Secrets as targets, sources or checks"
                remedy = "name another kind in the policy"
                reading.unread_kinds[version] = UnreadableKind(problem, remedy)
            elif resource_type is None:
                reading.unread_kinds[version] = find_unserved_version(version, served)
            else:
                listed_kind = ListedKind(resource_type, with_status[version])
                reading.objects[version] = self._list(listed_kind, reading)
        self._refuse_unread_kinds(served, reading)
        self._read_kinds = frozenset(with_status) - reading.unread_kinds.keys()
        present = {*reading.own_objects, *(key for key, _ in reading.broken)}
        self._validated = {key: it for key, it in self._validated.items() if key in present}
        self._injected = {key: it for key, it in self._injected.items() if key in present}
        self._source.retain(reading.listed_kinds)
        versions = (
            version
            for it in (*named, *injected)
            for version in [*list_versions(it, served)] or [("", it.kind, it.version)]
        )
        self._source.expect([it for it in versions if served.find(*it) is None])
        self._objects = self._objects.with_objects(*split_versions(reading.objects, served))
        # Kinds that could be read in none of the versions that are named. Where one could be read,
        # only policies that name another one lack it, and they are left out.
        in_some = {key[:2] for key in reading.objects.keys() - reading.unread_kinds.keys()}
        unread = dict.fromkeys(key[:2] for key in reading.unread_kinds if key[:2] not in in_some)
        read = DeclaredObjects(
            objects=self._objects,
            served_scopes=served.scopes(),
            definition_times=served.definition_times,
            faults=tuple(reading.findings),
            broken=tuple(reading.broken),
            unread=(
                *reading.unread,
                *(DeclarationFailure(_source_of(kind), kind) for kind in unread),
            ),
        )
        return assemble_declared(reading.own_objects, {}, read)

    def _refuse_unread_kinds(self, served: ServedKinds, reading: _Reading) -> None:
        """Take out the objects that need a kind which cannot be read.

        To them all objects of the kind would look deleted, and injected values be those of the
        package.
        """
        named: set[VersionedKind] = set()
        unread_kinds = reading.unread_kinds.keys()
        for key, (item, position) in list(reading.own_objects.items()):
            references = self._validated[key].references
            errors = [*find_unread_kinds(references, reading.unread_kinds, served)]
            if isinstance(item, (UpstreamPolicy, PackageVariant)) and key in self._injected:
                injected = list_injected(item, self._injected[key], served)
                kinds = {kind for it in injected for kind in list_versions(it, served)}
                # Packages inject these by injectors that name no kind.
                injectors = () if item.is_being_deleted else find_open_injectors(item)
                for (path, _), kind in product(injectors, sorted(kinds & unread_kinds)):
                    reason = reading.unread_kinds[kind]
                    errors.append((kind, FieldError(path, reason.problem, reason.remedy)))
            if errors:
                del reading.own_objects[key]
                named |= {kind for kind, _ in errors}
                _add_broken(key, position, [error for _, error in errors], reading)
        for kind, it in reading.unread_kinds.items():
            if kind not in named:
                where = ErrorLocation(_source_of(kind[:2]))
                reading.findings.append(Finding(where, it.problem, it.remedy))

    def _list(self, listed_kind: ListedKind, reading: _Reading) -> ObjectsByName:
        """Return the objects of a kind; none if it cannot be listed, which is noted."""
        reading.listed_kinds.append(listed_kind)
        try:
            return self._source.objects(listed_kind)
        except (Denied, Unavailable, Bug) as error:
            resource_type = listed_kind.resource_type
            # Without fanout's own kinds nothing is known. Any other concerns those that name it.
            is_own = resource_type.group == GROUP
            if isinstance(error, Unavailable) and is_own and not isinstance(error, NotServed):
                raise
            is_narrowable = resource_type.is_namespaced and not listed_kind.namespace
            if isinstance(error, Denied) and self._namespace and is_narrowable:
                if (kind := (resource_type.group, resource_type.kind)) == own_kind(Repository):
                    # Those of other namespaces may allow this one to use them.
                    subject = "Repository objects of other namespaces"
                    reading.unread.append(DeclarationFailure(subject, kind, self._namespace))
                return self._list(replace(listed_kind, namespace=self._namespace), reading)
            key = resource_type.group, resource_type.kind, resource_type.version
            is_refused = isinstance(error, (Denied, NotServed, Bug))
            remedy = error.remedy if is_refused else LISTED_AGAIN_REMEDY
            reading.unread_kinds[key] = UnreadableKind(error.problem, remedy)
            return {}

    def _validate(self, key: ObjectKey, data: Object) -> _ValidatedObject:
        """Validate an object, or return the same result as before: memos compare by identity."""
        if (previous := self._validated.get(key)) is not None and previous.data is data:
            return previous
        item, errors = validate_object(without_request(data))
        if previous is not None and previous.item == item:
            item = previous.item
        errors = (*errors, *find_schedule_errors(item))
        references: tuple[KindReference, ...] = ()
        if isinstance(item, (UpstreamPolicy, PackageVariant)):
            # A deleted one has no targets.
            references = () if item.metadata.deletion_timestamp else list_references(item)
        validated = _ValidatedObject(data, item, errors, references)
        self._validated[key] = validated
        return validated


def _add_broken(
    key: ObjectKey, position: ApiPosition, errors: Iterable[FieldError], reading: _Reading
) -> None:
    reading.findings += (build_finding(key.identity, position, error) for error in errors)
    reading.broken.append((key, position))


def _source_of(kind: GroupKind) -> str:
    return ".".join(part for part in reversed(kind) if part)
