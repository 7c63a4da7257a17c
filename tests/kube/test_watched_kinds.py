"""Watches and discovery over a played connection."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any, cast

import pytest

from fanout.errors import Unavailable
from fanout.kube import object_sources
from fanout.kube.api_connection import JSON_TYPE, ApiConnection
from fanout.kube.object_sources import ListedKind, WatchedObjects
from fanout.kube.object_watch import ObjectWatch, read_name
from fanout.kube.resource_discovery import DEFINITIONS_PATH, ResourceType

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
        if path == "/api" or path == DEFINITIONS_PATH:
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


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the present reading of the monotonic clock, as the only item."""
    reading = [1000.0]
    monkeypatch.setattr(object_sources, "monotonic", lambda: reading[0])
    return reading


@pytest.fixture
def connection() -> PlayedConnection:
    return PlayedConnection()


@pytest.fixture
def source(connection: PlayedConnection) -> WatchedObjects:
    return WatchedObjects(open_played(connection), lambda: None)


def test_a_kind_that_is_served_later_is_found(
    connection: PlayedConnection, source: WatchedObjects, clock: list[float]
):
    assert source.served().find(*METRICS) is None
    source.expect([METRICS])
    connection.groups.append(group(*METRICS))
    before = source.version()
    clock[0] += 59
    assert source.version() == before
    assert connection.discoveries == 1, "once in a minute is enough"
    clock[0] += 1
    after = source.version()
    assert after != before, "whoever reads when the number changes reads again"
    assert source.served().find(*METRICS) is not None
    assert source.served().find(*DEPLOYMENT) is not None
    clock[0] += 1000
    source.expect([])
    assert source.version() == after
    assert connection.discoveries == 2, "nothing is missing any more"


def test_a_kind_that_is_still_not_served_is_no_change(
    connection: PlayedConnection, source: WatchedObjects, clock: list[float]
):
    source.served()
    source.expect([METRICS])
    before = source.version()
    for _ in range(3):
        clock[0] += 30
        assert source.version() == before
    assert connection.discoveries == 2


def test_without_a_missing_kind_discovery_is_asked_once(
    connection: PlayedConnection, source: WatchedObjects, clock: list[float]
):
    source.served()
    clock[0] += 1000
    before = source.version()
    source.served()
    assert (source.version(), connection.discoveries) == (before, 1)


def test_a_discovery_that_fails_or_lacks_a_group_takes_no_kind_away(
    connection: PlayedConnection, source: WatchedObjects, clock: list[float]
):
    """A group of which the server is down is missing in the answer."""
    source.served()
    source.expect([METRICS])
    before = source.version()
    connection.failure = Unavailable("down")
    clock[0] += 60
    assert source.version() == before
    connection.failure, connection.groups = None, [group(*METRICS)]
    clock[0] += 59
    assert source.version() == before, "a failure counts as an attempt"
    clock[0] += 1
    assert source.version() != before
    assert all(source.served().find(*it) for it in (METRICS, DEPLOYMENT))


SITES = ListedKind(ResourceType("example.com", "v1", "Site", "sites", is_namespaced=True))


class Hanging(PlayedConnection):
    """An API server that does not list a kind before it is allowed to."""

    def __init__(self) -> None:
        super().__init__()
        self.may_answer, self.is_ended = Event(), Event()

    def get(self, path: str, accept: str = JSON_TYPE) -> Any:
        if path == SITES.path:
            self.may_answer.wait()
        return super().get(path, accept)

    def on_return(self, listener: Any) -> None:
        """Do nothing: there is no outage."""

    ignore_return = on_return

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        self.is_ended.wait()
        yield iter(())


def test_a_kind_that_the_server_does_not_list_in_time_is_there_when_it_does(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(object_sources, "LIST_SECONDS", 0.05)
    connection, is_changed = Hanging(), Event()
    source = WatchedObjects(open_played(connection), is_changed.set)
    for _ in range(2):
        with pytest.raises(Unavailable, match=r"has not answered /apis/example\.com/v1/sites"):
            source.objects(SITES)
    before = source.version()
    meta = {"name": "a", "namespace": "one"}
    connection.items = [{"metadata": meta, "spec": {}}]
    connection.may_answer.set()
    assert is_changed.wait(60)
    assert source.version() != before
    assert list(source.objects(SITES)) == [("one", "a")]
    source.stop()
    connection.is_ended.set()
