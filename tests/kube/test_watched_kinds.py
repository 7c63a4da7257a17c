"""Watches over a played connection."""

from typing import Any, cast

import pytest

from fanout.kube.api_connection import JSON_TYPE, ApiConnection
from fanout.kube.object_watch import ObjectWatch, read_name
from fanout.kube.resource_discovery import DEFINITION_TYPE

METRICS = ("metrics.k8s.io", "PodMetrics", "v1beta1")
DEPLOYMENT = ("apps", "Deployment", "v1")


def group(name: str, kind: str, version: str) -> dict[str, Any]:
    """Return a group as discovery describes it."""
    resource = {
        "resource": kind.lower(),
        "responseKind": {"kind": kind},
        "scope": "Namespaced",
        "verbs": ["list"],
    }
    return {
        "metadata": {"name": name},
        "versions": [{"version": version, "resources": [resource]}],
    }


class PlayedConnection:
    """The connection to an API server of which the test decides every response."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.groups = [group(*DEPLOYMENT)]
        self.number = 1
        self.discoveries = 0
        self.failure: Exception | None = None

    def get(self, path: str, accept: str = JSON_TYPE) -> Any:
        if path == "/apis":
            self.discoveries += 1
            if self.failure is not None:
                raise self.failure
            return {"items": self.groups}
        if path == "/api" or path == DEFINITION_TYPE.path:
            return {"items": [], "metadata": {"resourceVersion": "1"}}
        self.number += 1
        return {"items": self.items, "metadata": {"resourceVersion": str(self.number)}}


def open_played(connection: PlayedConnection) -> ApiConnection:
    return cast(ApiConnection, connection)


@pytest.mark.parametrize(("before", "after"), [(1, True), (1, 1.0), (0, False)], ids=repr)
def test_a_list_with_another_type_of_a_value_is_a_change(before: object, after: object):
    """In Python 1, 1.0 and true are equal; in YAML and for an expression they are not."""
    connection, notified = PlayedConnection(), list[None]()
    watch = ObjectWatch[Any](
        open_played(connection), "/x", lambda item: item["spec"], lambda: notified.append(None)
    )
    meta = {"name": "a", "namespace": "one"}
    connection.items = [{"metadata": meta, "spec": {"replicas": before}}]
    watch.refresh()
    first, count = watch.values(), watch.count_changes()
    watch.refresh()
    assert watch.values() is first, "nothing has changed"
    connection.items = [{"metadata": meta, "spec": {"replicas": after}}]
    watch.refresh()
    assert repr(watch.values()[read_name(connection.items[0])]) == repr({"replicas": after})
    assert (watch.count_changes(), len(notified)) == (count + 1, 2)
