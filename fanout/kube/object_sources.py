"""Sources of objects of an API server: kinds that a command lists, or a controller watches."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any
from urllib.parse import urlencode

from fanout.api.object_meta import GROUP, Label
from fanout.api.package_variant import PackageVariant
from fanout.declared.declared_objects import own_kind
from fanout.errors import FanoutError
from fanout.kube.api_connection import ApiConnection
from fanout.kube.object_watch import ObjectWatch, read_name
from fanout.kube.resource_discovery import (
    DEFINITIONS_PATH,
    METADATA_ACCEPT,
    ResourceType,
    ServedKinds,
    discover_kinds,
    version_rank,
)
from fanout.selection.cluster_objects import ObjectsByName, VersionedKind
from fanout.selection.variant_spec import Object
from fanout.values import Value, replace

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Bookkeeping of the API server that changes without the object.
_SERVER_FIELDS = ("managedFields", "resourceVersion", "selfLink")


class ListedKind(Value):
    """A kind that is listed: with the status of its objects or without, and in which namespace."""

    resource_type: ResourceType
    with_status: bool = False
    namespace: str = ""  # "": all

    @property
    def path(self) -> str:
        """Path of the list, with a query if it does not have all objects of the kind."""
        path = self.resource_type.path(self.namespace)
        if (self.resource_type.group, self.resource_type.kind) != own_kind(PackageVariant):
            return path
        # Those of policies are written by fanout, and read by nobody who decides.
        query = urlencode({"fieldSelector": f"{PackageVariant.SELECTABLE}="})
        return f"{path}?{query}"


class ListedObjects:
    """Source of a command: each kind is listed once, when it is asked for."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    def version(self) -> int:
        """Return 0: a command judges one state of the cluster."""
        return 0

    def served(self) -> ServedKinds:
        """Ask the API server for all kinds that it can list."""
        return discover_kinds(self._connection)

    def objects(self, kind: ListedKind) -> ObjectsByName:
        """List a kind, not older than the request, in order of namespace and name.

        Raises Denied or NotServed if the kind cannot be listed, Unavailable without a usable
        response.
        """
        # Without `resourceVersion` a restriction that the API server has acknowledged is in it.
        items = self._connection.get(kind.path).get("items") or ()
        by_name = {read_name(item): build_declared(kind, item) for item in items}
        return {name: by_name[name] for name in sorted(by_name)}

    def retain(self, kinds: Collection[ListedKind]) -> None:
        """Do nothing: nothing is kept."""

    def expect(self, kinds: Collection[VersionedKind]) -> None:
        """Do nothing: a command judges one state of the cluster."""


def build_declared(kind: ListedKind, item: Any) -> Object:
    """Build an object as its author wrote it, with apiVersion and kind.

    In lists of built-in kinds only the list has these. A status that nobody reads is taken
    off: controllers write it every few seconds, and each time the object would have changed.
    """
    meta = {name: value for name, value in item["metadata"].items() if name not in _SERVER_FIELDS}
    annotations = meta.get("annotations") or {}
    if _LAST_APPLIED in annotations:
        others = {name: value for name, value in annotations.items() if name != _LAST_APPLIED}
        meta["annotations"] = others
        if not others:
            del meta["annotations"]
    built = {
        **item,
        "apiVersion": kind.resource_type.api_version,
        "kind": kind.resource_type.kind,
        "metadata": meta,
    }
    if not kind.with_status:
        built.pop("status", None)
    return built


def without_request(item: Object) -> Object:
    """Return an object of fanout without the annotation that asks for a pass."""
    annotations = item["metadata"].get("annotations") or {}
    if Label.REQUESTED_AT not in annotations:
        return item
    others = {name: value for name, value in annotations.items() if name != Label.REQUESTED_AT}
    return {**item, "metadata": {**item["metadata"], "annotations": others}}


_ESTABLISHED = "Established"
# After these an API server is asked again which kinds it serves, if one is missing. Of custom kinds
# their definitions tell; nothing tells of those that a later release or an APIService adds.
DISCOVERY_PAUSE = 60.0
# For the first list of a kind that is not fanout's own: whoever needs other kinds must not wait for
# a conversion webhook, or a server behind an APIService, that does not answer.
LIST_SECONDS = 5.0


class _CustomKind(Value):
    """A kind as its CustomResourceDefinition describes it."""

    types: tuple[ResourceType, ...]  # the version that is preferred first
    created_at: datetime
    is_served: bool  # False: not established yet, or being deleted with all its objects


class WatchedObjects:
    """Source of a process that stays: kinds are watched from the first time they are asked for.

    Which custom kinds there are is watched, too: a definition that is being deleted takes its
    objects with it, and none of them must look as if a person had removed it.
    """

    def __init__(self, connection: ApiConnection, notify: Callable[[], None]) -> None:
        """Watch nothing yet. `notify` is called on another thread after each change."""
        self._connection = connection
        self._notify = notify
        self._ended_changes = 0  # of watches that have ended, and their ends
        self._watches: dict[ListedKind, ObjectWatch[Object]] = {}
        self._definitions = ObjectWatch(connection, DEFINITIONS_PATH, _read_definition, notify)
        self._discovered: ServedKinds | None = None
        self._discovered_at = 0.0  # by the monotonic clock
        self._discovery_changes = 0
        self._missing: frozenset[VersionedKind] = frozenset()  # needed, and not served
        self._custom_kinds: frozenset[tuple[str, str]] = frozenset()  # that were ever defined

    def start(self) -> None:
        """Begin to watch the definitions of kinds. Raises Denied, and Unavailable."""
        self._definitions.start()
        self._definitions.values()

    def stop(self) -> None:
        """End all watches."""
        self._definitions.stop()
        for watch in self._watches.values():
            watch.stop()

    def version(self) -> int:
        """Return a number that changes whenever objects or kinds change.

        Whoever reads again when it changes asks often. So this is where missing kinds are looked
        for, at most once in `DISCOVERY_PAUSE` seconds.
        """
        previous, now = self._discovered, monotonic()
        if self._missing and previous is not None and now - self._discovered_at >= DISCOVERY_PAUSE:
            # A failure is none of who reads: what was served may be read all the same.
            self._discovered_at = now
            with suppress(FanoutError):
                self._discovered = previous.with_later(discover_kinds(self._connection))
                self._discovery_changes += self._discovered is not previous
        # Counted with the values: a count of its own would be late, and a value unnoticed.
        watches: list[ObjectWatch[Any]] = [self._definitions, *self._watches.values()]
        counts = (it.count_changes() for it in watches)
        return self._ended_changes + self._discovery_changes + sum(counts)

    def served(self) -> ServedKinds:
        """Return the kinds that are served now; definitions have the last word."""
        definitions = self._definitions.values().values()
        if self._discovered is None:
            self._discovered = discover_kinds(self._connection)
            self._discovered_at = monotonic()
        defined = {(it.types[0].group, it.types[0].kind): it for it in definitions}
        self._custom_kinds |= defined.keys()
        return self._discovered.with_kinds(
            {
                kind: defined[kind].types if kind in defined and defined[kind].is_served else ()
                for kind in self._custom_kinds
            },
            {kind: it.created_at for kind, it in defined.items()},
        )

    def expect(self, kinds: Collection[VersionedKind]) -> None:
        """Look for these kinds again from time to time, and for no others."""
        self._missing = frozenset(kinds)

    def objects(self, kind: ListedKind) -> ObjectsByName:
        """Return the objects of a kind, which is listed the first time and watched from then on.

        They are in order of namespace and name; an unchanged kind is the same mapping. Raises
        Denied, NotServed, Unavailable, and Bug if an object cannot be read.
        """
        if (watch := self._watches.get(kind)) is None:
            watch = ObjectWatch(
                self._connection, kind.path, partial(build_declared, kind), self._notify
            )
            if kind.resource_type.group == GROUP:
                watch.start()
            else:
                watch.start_within(LIST_SECONDS)
            self._watches[kind] = watch
        return watch.values()

    def retain(self, kinds: Collection[ListedKind]) -> None:
        """End the watches of all other kinds."""
        # Where all namespaces must not be listed, one is watched, and all are tried again.
        retained = {replace(kind, namespace="") for kind in kinds}
        for kind in list(self._watches):
            if replace(kind, namespace="") not in retained:
                watch = self._watches.pop(kind)
                watch.stop()
                self._ended_changes += watch.count_changes() + 1

    def refresh(self) -> None:
        """List fanout's own kinds anew, and the definitions if one has come or gone.

        What is read afterwards is not older than the call. Raises Denied, NotServed or Unavailable.
        """
        own = [watch for it, watch in self._watches.items() if it.resource_type.group == GROUP]
        calls = [self._refresh_definitions, *(watch.refresh for watch in own)]
        with ThreadPoolExecutor(len(calls)) as executor:
            for result in [executor.submit(call) for call in calls]:
                result.result()

    def _refresh_definitions(self) -> None:
        """List the definitions anew unless all of them are there as they were.

        Many clusters have hundreds, which are some megabytes with their schemas. What matters
        before a removal is whether the kind of a target goes with all its objects.
        """
        created = {
            read_name(item): datetime.fromisoformat(item["metadata"]["creationTimestamp"])
            for item in self._connection.get(DEFINITIONS_PATH, METADATA_ACCEPT).get("items") or ()
            if "deletionTimestamp" not in item["metadata"]
        }
        definitions = self._definitions.values()
        is_same = created.keys() <= definitions.keys() and all(
            created.get(name) == it.created_at for name, it in definitions.items() if it.is_served
        )
        if not is_same:
            self._definitions.refresh()


def _read_definition(item: Any) -> _CustomKind:
    # A definition that was just created has no conditions, or null.
    spec, conditions = item["spec"], item.get("status", {}).get("conditions") or ()
    types = (
        ResourceType(
            spec["group"],
            version["name"],
            spec["names"]["kind"],
            spec["names"]["plural"],
            is_namespaced=spec["scope"] == "Namespaced",
        )
        for version in spec["versions"]
        if version["served"]
    )
    return _CustomKind(
        tuple(sorted(types, key=lambda it: version_rank(it.version), reverse=True)),
        datetime.fromisoformat(item["metadata"]["creationTimestamp"]),
        "deletionTimestamp" not in item["metadata"]
        and any(it["type"] == _ESTABLISHED and it["status"] == "True" for it in conditions),
    )
