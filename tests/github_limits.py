"""GitHub's limits of calls, on the clock of the tests' GitHub."""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from github_state import Refusal

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
READ_POINTS, WRITE_POINTS = 1, 5
FREE = "GET /rate_limit"
PRIMARY = "API rate limit exceeded for {}."
SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
)
CONTENT = (
    "You have exceeded a secondary rate limit and have been temporarily blocked from content"
    " creation. Please retry your request again later."
)
RESOURCE_CALLS = {"search": "GET /search/issues", "graphql": "GET /graphql"}
# Calls that make no content, although they write.
NO_CONTENT = ("POST /app/installations/{installation_id}/access_tokens",)


@dataclass
class Window:
    """Calls of one credential to one resource, from the first until an hour later."""

    ends: datetime
    used: int = 0


@dataclass
class Limits:
    """The limits of all installations and people; a test changes them at any time."""

    clock: Callable[[], datetime]
    hourly: dict[str, int] = field(
        default_factory=lambda: {"core": 5_000, "search": 1_800, "graphql": 5_000}
    )
    points_a_minute: dict[str, int] = field(
        default_factory=lambda: {"core": 900, "search": 900, "graphql": 2_000}
    )
    concurrent: int = 100
    content_a_minute: int = 80
    content_an_hour: int = 500
    status: int = 403  # of refusals, or 429
    retry_after: int | None = 60  # of refusals by a secondary limit; None: without the header
    most_concurrent: int = 0  # calls at once so far
    running: int = 0
    counting: threading.Lock = field(default_factory=threading.Lock)
    windows: dict[tuple[str, str], Window] = field(default_factory=dict)
    points: defaultdict[tuple[str, str], deque[tuple[datetime, int]]] = field(
        default_factory=lambda: defaultdict(deque)
    )
    content: defaultdict[str, deque[datetime]] = field(default_factory=lambda: defaultdict(deque))

    def admit(self, key: str, name: str) -> None:
        """Refuse a call that is over a limit. Raises Refusal."""
        now = self.clock()
        if self.running > self.concurrent:
            raise self._secondary(SECONDARY)
        window = self._window(key, name)
        if name != FREE and window.used >= self._limit(name):
            raise Refusal(self.status, PRIMARY.format(key))
        points = self.points[key, resource(name)]
        while points and points[0][0] <= now - MINUTE:
            points.popleft()
        cost = READ_POINTS if name.startswith("GET ") else WRITE_POINTS
        if sum(it for _, it in points) + cost > self.points_a_minute[resource(name)]:
            raise self._secondary(SECONDARY)
        points.append((now, cost))
        if not name.startswith(("GET ", "DELETE ")) and name not in NO_CONTENT:
            self._admit_content(key, now)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count a call among those at once for as long as the block lasts."""
        with self.counting:
            self.running += 1
            self.most_concurrent = max(self.most_concurrent, self.running)
        try:
            yield
        finally:
            with self.counting:
                self.running -= 1

    def charge(self, key: str, name: str, cost: int = 1) -> None:
        """Count a call that was answered with something else than 304."""
        if name != FREE:
            self._window(key, name).used += cost

    def headers(self, key: str, name: str) -> dict[str, str]:
        """Return the headers of every answer."""
        window, limit = self._window(key, name), self._limit(name)
        return {
            "X-RateLimit-Limit": str(limit),
            "X-RateLimit-Remaining": str(max(0, limit - window.used)),
            "X-RateLimit-Used": str(window.used),
            "X-RateLimit-Reset": str(int(window.ends.timestamp())),
            "X-RateLimit-Resource": resource(name),
        }

    def overview(self, key: str) -> dict[str, Any]:
        """Return the `resources` of `GET /rate_limit`."""
        resources = {}
        for name, limit in self.hourly.items():
            window = self._window(key, RESOURCE_CALLS.get(name, FREE))
            resources[name] = {
                "limit": limit,
                "used": window.used,
                "remaining": max(0, limit - window.used),
                "reset": int(window.ends.timestamp()),
            }
        return resources

    def _admit_content(self, key: str, now: datetime) -> None:
        content = self.content[key]
        while content and content[0] <= now - HOUR:
            content.popleft()
        lately = sum(it > now - MINUTE for it in content)
        if lately >= self.content_a_minute or len(content) >= self.content_an_hour:
            raise self._secondary(CONTENT)
        content.append(now)

    def _secondary(self, message: str) -> Refusal:
        wait = self.retry_after
        headers = {} if wait is None else {"Retry-After": str(wait)}
        return Refusal(self.status, message, headers=headers)

    def _limit(self, name: str) -> int:
        return self.hourly[resource(name)]

    def _window(self, key: str, name: str) -> Window:
        now, place = self.clock(), (key, resource(name))
        if place not in self.windows or self.windows[place].ends <= now:
            self.windows[place] = Window(now + HOUR)
        return self.windows[place]


def resource(name: str) -> str:
    """Return the resource that a call is counted under."""
    if name.endswith(" /graphql"):
        return "graphql"
    return "search" if name.startswith("GET /search/") else "core"
