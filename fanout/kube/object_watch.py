"""Objects of one kind as an informer keeps them: listed once, then watched on a thread of its own.

A watch begins at the version of the list. If the server has forgotten it (410 Gone), or the watch
fails, the objects are listed again.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from threading import Event, Lock, Thread
from time import monotonic
from typing import Any, Generic, TypeVar

import structlog

from fanout.errors import Bug, Denied, FanoutError, Unavailable
from fanout.kube.api_connection import LISTED_AGAIN_REMEDY, ApiConnection, NotServed, WatchExpired
from fanout.retries import choose_pause
from fanout.selection.cluster_objects import has_same_content
from fanout.telemetry.error_isolation import BARRIER

Value = TypeVar("Value")

# After these the server ends a watch, and the next one begins. Less than the READ_TIMEOUT of a
# connection: a kind of which nothing has changed since the server started has no bookmarks either.
WATCH_SECONDS = 75
FIRST_PAUSE, MAX_PAUSE = 0.5, 30.0  # seconds before another attempt
MIN_WATCH = 5.0  # seconds after which a watch counts as one that works

_log = structlog.get_logger()


class ObjectWatch(Generic[Value]):
    """Values of the objects of one kind, by namespace and name. Thread-safe.

    `convert` makes the value of an object as the API server sent it; None leaves the object out.
    """

    def __init__(
        self,
        connection: ApiConnection,
        path: str,
        convert: Callable[[Any], Value | None],
        notify: Callable[[], None],
    ) -> None:
        """Watch nothing yet; `notify` is called on the thread of the watch after a change."""
        self._connection = connection
        self._path = path
        self._convert = convert
        self._notify = notify
        self._lock = Lock()
        self._values: dict[tuple[str, str], Value] = {}
        # Resource versions of writes whose events are to come.
        self._written_versions: dict[tuple[str, str], int] = {}
        self._snapshot: Mapping[tuple[str, str], Value] | None = None  # None: to be made
        self._failure: FanoutError | None = None  # of the last list
        self._watch_failure: FanoutError | None = None  # until a watch begins
        self._version = 0  # resource version that the values are at least as new as
        self._changes = 0
        self._must_list = True
        self._watching_since = inf  # by the monotonic clock
        self._attempts = 0  # that failed, in a row
        self._stopped = Event()
        self._retry = Event()  # ends a pause
        self._listed = Event()  # after the first attempt

    def start(self) -> None:
        """List the objects, and start the thread that watches them. Raises Unavailable.

        A kind that cannot be listed is tried again by the thread.
        """
        with suppress(Denied, NotServed):  # as the failure
            self.refresh()
        self._start_thread()

    def start_within(self, seconds: float) -> None:
        """Start the thread, which lists and watches the objects, and wait for the first list.

        After `seconds`, or a list that fails, `values` raises why there are no objects yet.
        """
        self._failure = Unavailable(
            f"the API server has not answered {self._path} within {seconds:g} s",
            reason="ClusterUnavailable",
            remedy=LISTED_AGAIN_REMEDY,
        )
        self._start_thread()
        self._listed.wait(seconds)

    def _start_thread(self) -> None:
        self._connection.on_return(self._retry.set)
        Thread(target=self._run, name=f"watch {self._path}", daemon=True).start()

    def stop(self) -> None:
        """End the watch; the thread ends with the next event at the latest."""
        self._stopped.set()
        self._connection.ignore_return(self._retry.set)
        self._retry.set()

    def count_changes(self) -> int:
        """Return how often the values or their failure have changed so far."""
        with self._lock:
            return self._changes

    def values(self) -> Mapping[tuple[str, str], Value]:
        """Return the values in order of namespace and name; the same mapping if none changed.

        Raises Denied or NotServed if the kind cannot be listed or watched, Unavailable before a
        list.
        """
        with self._lock:
            # What can be listed and not watched would be outdated unnoticed.
            failure = self._failure or self._watch_failure
            if failure is not None:
                raise failure
            if self._snapshot is None:
                self._snapshot = {name: self._values[name] for name in sorted(self._values)}
            return self._snapshot

    def refresh(self) -> None:
        """List the objects as they are now or later. Raises Denied, NotServed or Unavailable."""
        try:
            self._list()
        finally:
            self._listed.set()

    def _list(self) -> None:
        with self._lock:
            version_before = self._version
        try:
            # Without a resourceVersion the list is consistent: it has what the API server
            # acknowledged before.
            document = self._connection.get(self._path)
        except FanoutError as error:
            # Else the values of the last response still count, if there was one.
            if isinstance(error, (Denied, NotServed)) or type(self._failure) is Unavailable:
                with self._lock:
                    is_new = str(self._failure) != str(error)
                    self._failure, self._must_list = error, True
                    self._changes += is_new
                if is_new:
                    self._notify()
            raise
        # Resource versions of a kind are comparable numbers since Kubernetes 1.35.
        version = int(document["metadata"]["resourceVersion"])
        values = {
            read_name(item): value
            for item in document.get("items") or ()
            if (value := self._convert(item)) is not None
        }
        with self._lock:
            # A lower version than before tells of a storage that was restored. Otherwise events
            # that came during the call may have made the values newer than the list.
            if version_before <= version < self._version:
                return
            is_same = self._failure is None and (
                self._values.keys() == values.keys()
                and all(
                    has_same_content(self._values[name], value) for name, value in values.items()
                )
            )
            self._values, self._version = values, version
            self._written_versions.clear()  # a storage that was restored counts from another number
            self._failure, self._must_list = None, False
            if is_same:
                return
            self._mark_changed()
        self._notify()

    def apply_response(self, item: Any) -> Value | None:
        """Take in an object as the response to a write has it, and return its value.

        Its event, and earlier ones that have yet to come, then change nothing.
        """
        value, name = self._convert(item), read_name(item)
        version = int(item["metadata"]["resourceVersion"])
        with self._lock:
            # Events of the write, and perhaps of a later deletion, may have come before, and so may
            # the response to a later write.
            newest_version = max(self._version, self._written_versions.get(name, 0))
            if value is not None and version > newest_version:
                self._values[name] = value
                self._written_versions[name] = version
                self._mark_changed()
        return value

    def _mark_changed(self) -> None:
        """Count a change under the lock: who compares counts must not miss its value."""
        self._changes += 1
        self._snapshot = None

    def _set_watch_failure(self, error: FanoutError | None) -> None:
        with self._lock:
            is_new = str(self._watch_failure) != str(error)
            self._watch_failure = error
            self._changes += is_new
        if is_new:
            self._notify()

    # ---- on the thread of the watch ------------------------------------------------------------

    def _run(self) -> None:
        last_problem = ""
        while not self._stopped.is_set():
            # What is announced during the attempt ends the pause after it.
            self._retry.clear()
            self._watching_since = inf
            failure = self._watch_once()
            # One that a proxy cuts every minute works, and its end is no failed attempt. One that
            # ends at once is an attempt that failed, whatever the response was.
            is_lasting = monotonic() - self._watching_since >= MIN_WATCH
            self._attempts = 0 if is_lasting else self._attempts + 1
            if failure is None:
                last_problem = ""
            else:
                if str(failure) != last_problem and not isinstance(failure, WatchExpired):
                    last_problem = str(failure)
                    _log.warning("Watch ended", path=self._path, problem=last_problem)
                # A storage that was restored may count its versions from another number.
                self._must_list = True
            if failure is not None or not is_lasting:
                # Full jitter: all watches end together when an API server restarts.
                longest = min(FIRST_PAUSE * 2.0 ** min(self._attempts, 10), MAX_PAUSE)
                self._retry.wait(choose_pause(0, longest))

    def _watch_once(self) -> FanoutError | None:
        """Watch the objects until it ends, listed before if necessary; return why it failed."""
        try:
            with BARRIER:
                if self._must_list:
                    self.refresh()
                self._follow()
        except (Denied, NotServed, Bug) as error:
            # Until a watch begins. If a list that succeeds ended it, the failure would come and go
            # with each attempt.
            self._set_watch_failure(error)
            return error
        except FanoutError as error:  # the values of the last response still count
            return error
        return None

    def _follow(self) -> None:
        """Apply events until the server ends the watch."""
        query = (
            f"watch=1&allowWatchBookmarks=true&resourceVersion={self._version}"
            f"&timeoutSeconds={WATCH_SECONDS}"
        )
        separator = "&" if "?" in self._path else "?"
        with self._connection.watch(f"{self._path}{separator}{query}") as events:
            self._set_watch_failure(None)
            if self._attempts:
                self._connection.announce_return()
                self._retry.clear()  # or one that ends at once would be begun without a pause
            self._watching_since = monotonic()
            for event in events:
                if self._stopped.is_set():
                    return
                if self._apply(event["type"], event["object"]):
                    self._notify()

    def _apply(self, event_type: str, item: Any) -> bool:
        """Apply one event; return whether a value changed."""
        version = int(item["metadata"]["resourceVersion"])
        # Under the lock all the time: a response that comes meanwhile is newer than the event.
        with self._lock:
            # `refresh` may have listed what this watch has yet to tell.
            if version <= self._version:
                return False
            name = ("", "") if event_type == "BOOKMARK" else read_name(item)
            # Most events of an object that is written here are those of the writes.
            if event_type == "BOOKMARK" or version <= self._written_versions.get(name, 0):
                self._version = version
                return False
            value = self._convert(item) if event_type in ("ADDED", "MODIFIED") else None
            self._version = version
            self._written_versions.pop(name, None)
            if has_same_content(self._values.get(name), value):
                return False
            if value is None:
                del self._values[name]
            else:
                self._values[name] = value
            self._mark_changed()
            return True


def read_name(item: Any) -> tuple[str, str]:
    """Return namespace and name of an object; a cluster-scoped one has the namespace ""."""
    meta = item["metadata"]
    return meta.get("namespace", ""), meta["name"]
