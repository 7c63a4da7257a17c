"""The error families; every other room raises these and nothing else.

    FanoutError
    ├── InvalidInput    the user's object is wrong; nothing changes until the object does
    ├── Waiting         the world is not ready; nothing is wrong
    ├── Unavailable     network, server, disk: trying again later may help
    ├── Denied          credentials or permissions
    ├── Conflict        a race was lost: observe again, then decide again
    ├── Stopped         one policy as a whole; the others go on
    ├── LimitExceeded   the sandbox ended an expression or a template
    └── Bug             a rule of ours is broken

Foreign exceptions are translated at the border of the room that owns the library. The reason is
CamelCase, from `fanout.api.reasons`, and becomes a condition's reason; the sentence is for people.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Where:
    """The object and field that an error is about, and its place when it came from a file."""

    object: str = ""  # "UpstreamPolicy/monitoring"
    field: str = ""  # "spec.stages[3].after"
    file: str = ""
    line: int = 0  # 1-based; 0: unknown

    def __str__(self) -> str:
        """`file:line: kind/name: field`, leaving out what is not known."""
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        return ": ".join(part for part in (place, self.object, self.field) if part)


class FanoutError(Exception):
    """Where it happened, what happened, what to do about it."""

    def __init__(
        self, problem: str, *, reason: str = "Error", remedy: str = "", where: Where | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.reason = reason
        self.remedy = remedy
        self.where = where or Where()

    def __str__(self) -> str:
        """One line: `where: problem; remedy`."""
        place = str(self.where)
        sentence = f"{place}: {self.problem}" if place else self.problem
        return f"{sentence}; {self.remedy}" if self.remedy else sentence


class InvalidInput(FanoutError):
    """The user's object is wrong; it is not tried again until the object changes."""


class Waiting(FanoutError):
    """The world is not ready yet."""


class Unavailable(FanoutError):
    """A server, network or disk did not do its part; trying again may help."""


class Denied(FanoutError):
    """Credentials or permissions are missing."""


class Conflict(FanoutError):
    """Somebody else was faster: observe again."""


class Stopped(FanoutError):
    """What keeps one policy as a whole from going on; a sweep serves the others."""


class LimitExceeded(FanoutError):
    """An expression or template took more time or memory than it may."""


class Bug(FanoutError):
    """An invariant of fanout does not hold."""
