"""The queue between whoever notices something and the one worker who looks.

It forgets duplicates: a key that waits already is not queued twice. One worker takes all that
waits at once, so one pass serves it together, and there are never two at once for one policy.
"""

from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")


class KeyQueue(Generic[Key]):
    """Any thread may put; one takes."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[Key, None] = {}
        # SimpleQueue alone may be put into while the same thread takes: close() is for a signal.
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._closed = False

    def put(self, key: Key) -> None:
        """Queue a key, unless it waits already."""
        with self._lock:
            if key not in self._waiting:
                self._waiting[key] = None
                self._bell.put(None)

    def take(self, timeout: float) -> tuple[Key, ...] | None:
        """All keys that wait, in order of arrival; none after `timeout` seconds; None: closed."""
        if not self._closed:
            with suppress(Empty):
                self._bell.get(timeout=timeout)
        if self._closed:
            return None
        with self._lock:
            keys = tuple(self._waiting)
            self._waiting.clear()
            while not self._bell.empty():  # one for each key
                self._bell.get()
        return keys

    def close(self) -> None:
        """Wake the taker for the last time. May be called in a signal handler."""
        self._closed = True
        self._bell.put(None)
