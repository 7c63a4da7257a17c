"""Lists of the objects of a kind, without what the API server adds to them."""

from typing import Any

from fanout.kube.api_connection import ApiConnection
from fanout.kube.resource_discovery import ResourceType
from fanout.selection.variant_spec import Object

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Bookkeeping of the API server that changes without the object.
_SERVER_FIELDS = ("managedFields", "resourceVersion", "selfLink")


def list_objects(
    connection: ApiConnection, resource_type: ResourceType, *, with_status: bool
) -> list[Object]:
    """List the objects of a kind in all namespaces, consistently.

    Without `resourceVersion` the answer is not older than the request: a restriction that the
    API server has acknowledged is in it. Raises Denied, NotServed and Unavailable.
    """
    items = connection.get(resource_type.path).get("items") or ()
    return [build_object(item, resource_type, with_status=with_status) for item in items]


def build_object(item: Any, resource_type: ResourceType, *, with_status: bool) -> Object:
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
        "apiVersion": resource_type.api_version,
        "kind": resource_type.kind,
        "metadata": meta,
    }
    if not with_status:
        built.pop("status", None)
    return built
