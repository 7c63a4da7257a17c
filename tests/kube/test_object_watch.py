"""A watch on a real kube-apiserver, and what ends it: the version, silence, a missing right."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kube.record_fleet import wait_until
from kube.twin import open_twin
from kube_server import KubeServer

from fanout.errors import Denied
from fanout.kube import api_connection, object_sources, object_watch
from fanout.kube.api_connection import ApiConnection, WatchExpired, open_connection
from fanout.kube.api_inventory import ApiInventory
from fanout.kube.object_sources import WatchedObjects
from fanout.kube.object_watch import ObjectWatch

pytestmark = pytest.mark.kube

LISTER = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: lister}
rules: [{apiGroups: [infra.example.com], resources: [clusters], verbs: [VERBS]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: lister}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: lister}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: carol}]
"""


class Traced(ApiConnection):
    """A connection that notes what it is asked, and what ended each watch."""

    def __init__(self, connection: ApiConnection) -> None:
        super().__init__(connection._client)
        self.lists = 0
        self.watches: list[str] = []
        self.ends: list[BaseException] = []
        self.change_query: Callable[[str], str] = str

    def get(self, path: str, accept: str = api_connection.JSON_TYPE) -> Any:
        self.lists += 1
        return super().get(path, accept)

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        self.watches.append(path)
        try:
            with super().watch(self.change_query(path)) as events:
                yield events
        except BaseException as error:
            self.ends.append(error)
            raise


class Site:
    """Clusters of a namespace, and a watch of them."""

    def __init__(self, server: KubeServer, namespace: str) -> None:
        self.server, self.namespace = server, namespace
        self.states: list[str] = []  # what can be read at each notification
        self.connection = Traced(open_connection(server.kubeconfig, "admin"))
        self.started: ObjectWatch[str] | None = None

    def write(self, text: str) -> None:
        meta = {"name": "a", "namespace": self.namespace}
        item = {"apiVersion": "infra.example.com/v1", "kind": "Cluster", "metadata": meta}
        self.server.apply({**item, "spec": {"text": text}})

    def begin(self) -> None:
        path = f"/apis/infra.example.com/v1/namespaces/{self.namespace}/clusters"
        self.started = ObjectWatch(self.connection, path, read_text, self.note)
        self.started.start()

    def note(self) -> None:
        self.states.append(self.read())

    def read(self) -> str:
        """Return the text of the Cluster, or why it cannot be read."""
        assert self.started is not None
        try:
            return self.started.values().get((self.namespace, "a"), "")
        except Denied as error:
            return error.problem

    def await_text(self, text: str) -> None:
        wait_until(lambda: self.read() == text, f"{text} is not noticed")


def read_text(item: Any) -> str | None:
    text: str | None = item["spec"].get("text")
    return text


@pytest.fixture
def site(server: KubeServer, kube_namespace: str) -> Iterator[Site]:
    made = Site(server, kube_namespace)
    yield made
    if made.started is not None:
        made.started.stop()


def test_a_version_that_the_server_has_forgotten_lists_again(site: Site):
    site.write("one")

    def outdate(path: str) -> str:
        first = len(site.connection.watches) == 1
        version = path.partition("resourceVersion=")[2].partition("&")[0]
        return path.replace(f"={version}&", "=1&") if first else path

    site.connection.change_query = outdate
    site.begin()
    wait_until(lambda: bool(site.connection.ends), "the watch goes on")
    assert isinstance(site.connection.ends[0], WatchExpired)
    site.write("two")
    site.await_text("two")
    assert site.connection.lists == 2
    assert site.states == ["one", "two"]


def test_a_silent_watch_is_begun_again(site: Site, monkeypatch: pytest.MonkeyPatch):
    """Nothing changes here, and bookmarks come once a minute."""
    monkeypatch.setattr(api_connection, "READ_TIMEOUT", 1.5)  # in which a list succeeds, too
    site.write("one")
    site.begin()
    wait_until(lambda: len(site.connection.ends) >= 2, "the watch goes on without a byte")
    assert site.connection.lists >= 2
    site.write("two")
    site.await_text("two")
    assert site.states == ["one", "two"], "silence is no change"


def test_a_watch_that_the_server_ends_goes_on_where_it_was(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(object_watch, "WATCH_SECONDS", 1)
    site.write("one")
    site.begin()
    wait_until(lambda: len(site.connection.watches) >= 2, "the watch does not end")
    site.write("two")
    site.await_text("two")
    assert site.connection.lists == 1
    assert all("allowWatchBookmarks=true" in it for it in site.connection.watches)
    assert site.connection.ends == []


def test_a_kind_that_must_not_be_watched_stays_unread(site: Site, monkeypatch: pytest.MonkeyPatch):
    """A list succeeds each time, and what it tells would be outdated unnoticed."""
    monkeypatch.setattr(object_watch, "MAX_PAUSE", 0.2)
    grant(site, "get, list")
    site.connection = Traced(open_connection(site.server.kubeconfig, "carol"))
    site.write("one")
    site.begin()
    wait_until(lambda: site.connection.lists > 4, "it is not tried again")
    assert 'cannot watch resource "clusters"' in site.read()
    assert len(site.states) == 2, "nothing has changed since the first refusal"
    site.write("two")
    grant(site, "get, list, watch")
    site.await_text("two")


def grant(site: Site, verbs: str) -> None:
    """Let carol do this with the Clusters of the namespace, and nothing else."""
    role = LISTER.replace("VERBS", verbs)
    site.server.kubectl("apply", "-f", "-", stdin=role, namespace=site.namespace)
    right = (verbs.rpartition(" ")[2], "clusters.infra.example.com", site.namespace)
    wait_until(partial(site.server.may, "carol", *right), "the right is not in force")


def test_a_large_list_is_compressed(site: Site):
    for number in range(3):
        meta = {"name": f"large-{number}", "namespace": site.namespace}
        item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        site.server.create({**item, "data": {"text": "x" * 100_000}})
    answers: list[Any] = []
    connection = site.connection
    open_ = connection._open

    def keep(*request: Any) -> Any:
        answers.append(open_(*request))
        return answers[-1]

    connection._open = keep  # type: ignore[method-assign,assignment]
    listed = connection.get(f"/api/v1/namespaces/{site.namespace}/configmaps")
    assert len(listed["items"]) == 3
    assert answers[0].getheader("Content-Encoding") == "gzip"
    assert "resourceVersion=" not in str(answers[0].response.geturl()), "the list is consistent"


class Hiding(ApiConnection):
    """A connection to an API server that does not serve a group yet."""

    hidden = "apps"
    discoveries = 0

    def get(self, path: str, accept: str = api_connection.JSON_TYPE) -> Any:
        document = super().get(path, accept)
        if path == "/apis":
            self.discoveries += 1
            groups = [it for it in document["items"] if it["metadata"]["name"] != self.hidden]
            return {**document, "items": groups}
        return document


def test_a_built_in_kind_that_is_served_later_is_read_without_a_restart(
    server: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(object_sources, "DISCOVERY_PAUSE", 0.1)
    with open_twin(server, tmp_path) as twin:
        selector = ("infra.example.com/v1, kind: Cluster", "apps/v1, kind: Deployment")
        twin.fleet.policy("late", selector)
        twin.move()
        twin.apply()
        connection = Hiding(open_connection(server.kubeconfig, "admin")._client)
        source = WatchedObjects(connection, lambda: None)
        source.start()
        inventory = ApiInventory(source)

        def read_names() -> set[str]:
            declared = inventory.read()
            policies = [it.metadata for it in declared.policies]
            return {it.name for it in policies if it.namespace == twin.namespace}

        try:
            assert read_names() == {"monitoring"}
            problems = [it.problem for it in inventory.read().faults]
            assert any("does not serve kind Deployment" in it for it in problems)
            before = inventory.read()
            discoveries = connection.discoveries
            while connection.discoveries < discoveries + 2:
                assert inventory.read() is before, "it is still not served"
            connection.hidden = ""
            wait_until(lambda: read_names() == {"monitoring", "late"}, "it is not discovered")
        finally:
            source.stop()


def test_the_watch_of_a_kind_ends_with_the_last_policy_that_names_it(
    server: KubeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(object_watch, "WATCH_SECONDS", 1)  # its thread notices the end then
    watch = "watch /apis/infra.example.com/v1/clusters"

    def is_watched() -> bool:
        return watch in {it.name for it in threading.enumerate()}

    with open_twin(server, tmp_path) as twin:
        source = WatchedObjects(open_connection(server.kubeconfig, "admin"), lambda: None)
        source.start()
        inventory = ApiInventory(source)
        try:
            assert len(inventory.read().policies) == 1
            assert is_watched()
            meta = {"name": "monitoring", "namespace": twin.namespace}
            policy = {"apiVersion": "fanout.dev/v1alpha1", "kind": "UpstreamPolicy"}
            server.delete({**policy, "metadata": meta})
            wait_until(lambda: not inventory.read().policies, "the policy is still there")
            wait_until(lambda: not is_watched(), "its targets are still watched")
            twin.apply()
            wait_until(lambda: bool(inventory.read().policies), "the policy is not back")
            assert is_watched()
        finally:
            source.stop()
    wait_until(lambda: not is_watched(), "the watch outlives its source")


EXTRA = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: extras.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Extra, plural: extras, singular: extra}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""


def test_definitions_are_listed_in_full_only_if_one_has_come_or_gone(
    server: KubeServer, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
):
    # The watch stays silent, as one of which the connection is lost.
    monkeypatch.setattr(ObjectWatch, "_run", lambda self: None)
    full_lists: list[str] = []

    class Listing(Traced):
        def get(self, path: str, accept: str = api_connection.JSON_TYPE) -> Any:
            if accept == api_connection.JSON_TYPE:
                full_lists.append(path)
            return super().get(path, accept)

    source = WatchedObjects(Listing(open_connection(server.kubeconfig, "admin")), lambda: None)
    source.start()
    assert source.served().find("example.com", "Extra") is None
    full_lists.clear()
    source.refresh()
    assert full_lists == []
    server.kubectl("apply", "-f", "-", stdin=EXTRA)
    request.addfinalizer(
        lambda: server.kubectl("delete", "--ignore-not-found", "crd", "extras.example.com")
    )
    server.kubectl("wait", "--for=condition=Established", "crd/extras.example.com")
    source.refresh()
    assert len(full_lists) == 1
    assert source.served().find("example.com", "Extra") is not None
    source.refresh()
    assert len(full_lists) == 1
    server.kubectl("delete", "crd", "extras.example.com")
    source.refresh()
    assert source.served().find("example.com", "Extra") is None
