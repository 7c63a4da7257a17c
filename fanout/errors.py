"""Error families; every package of fanout raises these and nothing else.

    FanoutError
    ├── InvalidInput    the user's object is wrong; nothing changes until the object does
    ├── Waiting         the world is not ready; nothing is wrong
    │   └── RateLimited a host takes no more calls now
    ├── Unavailable     network, server, disk: trying again later may help
    ├── Denied          credentials or permissions
    ├── Conflict        a race was lost: observe again, then decide again
    ├── Stopped         one policy is stopped; a sweep serves the others
    ├── LimitExceeded   the sandbox ended an expression or a template
    └── Bug             an invariant of fanout is broken

Exceptions of other libraries are translated at the border of the package that owns the
library. The reason is CamelCase, from `fanout.api.reasons`, and becomes a condition's
reason; the sentence is for people.
"""

from datetime import datetime

from fanout.control_characters import escape_unprintable
from fanout.values import Value


class ErrorLocation(Value, order=True):
    """Object and field that an error is about, with file and line if it came from a file."""

    object: str = ""  # "UpstreamPolicy/monitoring"
    field: str = ""  # "spec.stages[3].after"
    file: str = ""
    line: int = 0  # 1-based; 0: unknown

    def __str__(self) -> str:
        """Return `file:line: kind/name: field` as one line, without the empty parts."""
        file_position = f"{self.file}:{self.line}" if self.file and self.line else self.file
        parts = (file_position, self.object, self.field)
        # A line break in the name of a file would begin another line of a message, or of a patch.
        return ": ".join(escape_unprintable(part) for part in parts if part)


class FanoutError(Exception):
    """Error with a location, a problem, a remedy and a reason (one CamelCase word).

    `refs`: full refs that a server refused in a push, each for a reason of its own; `words`: its
    message about the push, line by line.
    """

    def __init__(
        self,
        problem: str,
        *,
        reason: str = "Error",
        remedy: str = "",
        where: ErrorLocation | None = None,
        refs: tuple[str, ...] = (),
        words: tuple[str, ...] = (),
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.reason = reason
        self.remedy = remedy
        self.where = where or ErrorLocation()
        self.refs = refs
        self.words = words

    def __str__(self) -> str:
        """Return one line: `location: problem; remedy`."""
        location = str(self.where)
        message = f"{location}: {self.problem}" if location else self.problem
        return f"{message}; {self.remedy}" if self.remedy else message


class InvalidInput(FanoutError):
    """The user's object is wrong; it is not tried again until the object changes."""


class Waiting(FanoutError):
    """The world is not ready yet."""


class RateLimited(Waiting):
    """A call was not made because a host takes no more before the instant `until`."""

    def __init__(self, problem: str, *, until: datetime) -> None:
        instant = until.strftime("%Y-%m-%dT%H:%M:%SZ")
        super().__init__(problem, reason="RateLimited", remedy=f"it is possible at {instant}")
        self.until = until


class Unavailable(FanoutError):
    """A server, network or disk did not do its part; trying again may help."""


class Denied(FanoutError):
    """Credentials or permissions are missing."""


class Conflict(FanoutError):
    """A race was lost to another writer; the state must be observed again."""


class Stopped(FanoutError):
    """One policy cannot go on; a sweep still serves the other policies."""


class LimitExceeded(FanoutError):
    """An expression or template exceeded its limit of time or memory."""


class Bug(FanoutError):
    """An invariant of fanout does not hold."""
