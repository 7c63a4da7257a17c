"""A watch that ends, against played responses: how soon it is begun again, and what it keeps.

The server itself is asked by `test_object_watch.py`; it does not end a watch every minute.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Event, Thread
from typing import Any

import pytest
from kube.record_fleet import wait_until

from fanout.errors import FanoutError, Unavailable
from fanout.kube import object_watch
from fanout.kube.api_connection import ApiConnection
from fanout.kube.object_sources import ListedKind, WatchedObjects
from fanout.kube.object_watch import FIRST_PAUSE, MAX_PAUSE, MIN_WATCH, ObjectWatch
from fanout.kube.resource_discovery import ResourceType

CUT = Unavailable("a load balancer closed the connection")


def read_text(item: Any) -> str:
    return str(item["spec"]["text"])


def cluster(text: str, version: int) -> dict[str, Any]:
    meta = {"name": "a", "namespace": "n", "resourceVersion": str(version)}
    return {"metadata": meta, "spec": {"text": text}}


class Played(ApiConnection):
    """A connection with played responses: a list, and watches that end."""

    def __init__(self, seconds: float, error: FanoutError | None) -> None:
        super().__init__(None)
        self.seconds, self.error = seconds, error
        self.clock = 1000.0
        self.lists = self.watches = 0
        self.items: list[Any] = []

    def get(self, path: str, accept: str = "") -> Any:
        self.lists += 1
        version = max((it["metadata"]["resourceVersion"] for it in self.items), default="10")
        return {"metadata": {"resourceVersion": version}, "items": self.items}

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        self.watches += 1

        def events() -> Iterator[Any]:
            self.clock += self.seconds
            if self.error is not None:
                raise self.error
            yield from ()

        yield events()


class Pauses:
    """Stands for the event that ends a watch, and notes for how long it was waited."""

    def __init__(self, connection: Played, attempts: int) -> None:
        self.connection, self.attempts = connection, attempts
        self.seconds: list[float] = []

    def is_set(self) -> bool:
        return self.connection.watches >= self.attempts

    def wait(self, seconds: float) -> None:
        self.seconds.append(seconds)

    def clear(self) -> None:
        """Do nothing: no pause is ended early."""


def watch_played(
    monkeypatch: pytest.MonkeyPatch, seconds: float, error: FanoutError | None, attempts: int = 12
) -> tuple[list[float], int]:
    """Return the longest pauses between watches of that length, and the number of lists."""
    connection = Played(seconds, error)
    monkeypatch.setattr(object_watch, "monotonic", lambda: connection.clock)
    monkeypatch.setattr(object_watch, "choose_pause", lambda low, high: high)
    watch = ObjectWatch(connection, "/sites", lambda item: item["spec"]["text"], lambda: None)
    pauses = Pauses(connection, attempts)
    watch._stopped = watch._retry = pauses  # type: ignore[assignment]
    watch._run()
    return pauses.seconds, connection.lists


def test_a_watch_that_is_cut_every_minute_is_begun_again_at_once(monkeypatch: pytest.MonkeyPatch):
    pauses, lists = watch_played(monkeypatch, 60, CUT)
    assert set(pauses) == {FIRST_PAUSE}
    assert lists == 12


def test_watches_that_fail_at_once_are_begun_with_growing_pauses(monkeypatch: pytest.MonkeyPatch):
    pauses, _ = watch_played(monkeypatch, 0, CUT)
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == MAX_PAUSE


def test_a_watch_that_the_server_ends_in_time_is_begun_again_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
):
    assert watch_played(monkeypatch, MIN_WATCH, None) == ([], 1)


def test_watches_that_end_at_once_are_attempts_although_nothing_failed(
    monkeypatch: pytest.MonkeyPatch,
):
    pauses, lists = watch_played(monkeypatch, 0, None)
    assert pauses[:4] == [1, 2, 4, 8]
    assert lists == 1, "the version of the last event is still good"


class Outage(Played):
    """A connection that answers nothing until the outage ends, and then with watches that stay."""

    def __init__(self) -> None:
        super().__init__(0, None)
        self.is_out = True
        self.paths: list[str] = []  # of the watches that are open
        self.end = Event()

    def get(self, path: str, accept: str = "") -> Any:
        if self.is_out:
            raise CUT
        return super().get(path)

    @contextmanager
    def watch(self, path: str) -> Iterator[Iterator[Any]]:
        if self.is_out:
            raise CUT

        def events() -> Iterator[Any]:
            self.end.wait()
            yield from ()

        self.paths.append(path.partition("?")[0])
        yield events()


def test_a_watch_that_returns_ends_the_pauses_of_all_others(monkeypatch: pytest.MonkeyPatch):
    connection, returns = Outage(), list[str]()
    # One that tries soon, and one that has failed often.
    seconds = {"/soon": 0.01, "/late": 3600.0}
    watches = {it: ObjectWatch(connection, it, read_text, lambda: None) for it in seconds}
    paused = Event()

    def wait(name: str, retry: Event, pause: float) -> bool:
        if name == "/late":
            paused.set()
        return Event.wait(retry, seconds[name])

    for name, it in watches.items():
        monkeypatch.setattr(it._retry, "wait", partial(wait, name, it._retry))
    connection.on_return(lambda: returns.append("the loop"))
    threads = [Thread(target=it._run, daemon=True) for it in watches.values()]
    for it in watches.values():
        connection.on_return(it._retry.set)
    for thread in threads:
        thread.start()
    assert paused.wait(60)
    connection.is_out = False
    wait_until(lambda: sorted(connection.paths) == ["/late", "/soon"], "a watch waits")
    assert returns == ["the loop"], "once, although both returned"
    for it in watches.values():
        it.stop()
    connection.end.set()
    for thread in threads:
        thread.join()


def test_a_watch_that_is_cut_and_begun_again_is_no_outage(monkeypatch: pytest.MonkeyPatch):
    connection, returns = Played(60, CUT), list[str]()
    connection.on_return(lambda: returns.append("the loop"))
    monkeypatch.setattr(object_watch, "monotonic", lambda: connection.clock)
    watch = ObjectWatch(connection, "/sites", read_text, lambda: None)
    watch._stopped = watch._retry = Pauses(connection, 12)  # type: ignore[assignment]
    watch._run()
    assert not returns


def test_the_pauses_of_many_watches_differ(monkeypatch: pytest.MonkeyPatch):
    connection = Played(0, CUT)
    monkeypatch.setattr(object_watch, "monotonic", lambda: connection.clock)
    watch, pauses = (
        ObjectWatch(connection, "/sites", read_text, lambda: None),
        Pauses(connection, 6),
    )
    watch._stopped = watch._retry = pauses  # type: ignore[assignment]
    watch._run()
    assert len(set(pauses.seconds)) == 6
    assert all(0 <= it <= FIRST_PAUSE * 2**6 for it in pauses.seconds)


def test_the_response_to_a_write_does_not_bring_back_what_was_deleted_meanwhile():
    watch = ObjectWatch(Played(0, None), "/sites", lambda item: item["spec"]["text"], lambda: None)
    watch.refresh()
    watch._apply("ADDED", cluster("one", 100))
    watch._apply("DELETED", cluster("one", 101))
    assert watch.apply_response(cluster("one", 100)) == "one"
    assert not watch.values()


def test_the_response_to_a_write_is_there_before_its_event():
    watch = ObjectWatch(Played(0, None), "/sites", lambda item: item["spec"]["text"], lambda: None)
    watch.refresh()
    watch.apply_response(cluster("one", 100))
    changes = watch.count_changes()
    assert watch.values() == {("n", "a"): "one"}
    assert not watch._apply("ADDED", cluster("one", 100))
    assert watch.count_changes() == changes


def test_the_response_to_a_write_outlasts_an_earlier_event_that_is_being_applied():
    def convert(item: Any) -> str:
        if item["spec"]["text"] == "earlier":
            # Before the event is applied; one that waits for its end cannot be waited for here.
            writing.start()
            writing.join(0.3)
        return str(item["spec"]["text"])

    watch = ObjectWatch(Played(0, None), "/sites", convert, lambda: None)
    writing = Thread(target=lambda: watch.apply_response(cluster("written", 107)))
    watch.refresh()
    watch._apply("ADDED", cluster("earlier", 105))
    writing.join()
    assert watch.values() == {("n", "a"): "written"}
    assert not watch._apply("MODIFIED", cluster("written", 107))


def test_responses_to_writes_may_come_in_another_order():
    watch = ObjectWatch(Played(0, None), "/sites", lambda item: item["spec"]["text"], lambda: None)
    watch.refresh()
    watch.apply_response(cluster("second", 102))
    watch.apply_response(cluster("first", 101))
    assert watch.values() == {("n", "a"): "second"}


def test_a_bookmark_moves_the_version_and_changes_nothing():
    watch = ObjectWatch(Played(0, None), "/sites", lambda item: item["spec"]["text"], lambda: None)
    watch.refresh()
    before = watch.count_changes()
    assert not watch._apply("BOOKMARK", {"metadata": {"resourceVersion": "500"}})
    assert (watch.count_changes(), watch._version) == (before, 500)


def test_a_value_is_counted_when_it_can_be_read(monkeypatch: pytest.MonkeyPatch):
    """Whoever lists between the event and its notification must see that something changed."""
    connection = Played(0, None)
    source = WatchedObjects(connection, lambda: None)
    resource_type = ResourceType(
        "fanout.dev", "v1alpha1", "PromotionPolicy", "promotionpolicies", is_namespaced=True
    )
    kind = ListedKind(resource_type)
    monkeypatch.setattr(ObjectWatch, "_run", lambda self: None)
    source.start()
    assert not source.objects(kind)
    version = source.version()
    freeze = {"metadata": {"name": "a", "namespace": "n", "resourceVersion": "11"}, "spec": {}}
    # The thread of the watch has applied the event, and has yet to tell of it.
    source._watches[kind]._apply("ADDED", freeze)
    connection.items = [freeze]
    source._watches[kind].refresh()
    assert list(source.objects(kind)) == [("n", "a")]
    assert source.version() != version
    source.retain(())
    assert source.version() > version + 1
