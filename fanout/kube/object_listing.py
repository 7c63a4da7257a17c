"""Objects of an API server as their authors wrote them, and their lists."""

from collections.abc import Collection
from typing import Any
from urllib.parse import urlencode

from fanout.api.object_meta import Label
from fanout.api.package_variant import PackageVariant
from fanout.declared.declared_objects import own_kind
from fanout.kube.api_connection import ApiConnection
from fanout.kube.object_watch import read_name
from fanout.kube.resource_discovery import ResourceType, ServedKinds, discover_kinds
from fanout.selection.cluster_objects import ObjectsByName, VersionedKind
from fanout.selection.variant_spec import Object
from fanout.values import Value

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
        path = self.resource_type.path_in(self.namespace)
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
