"""Limits of the calls of one account of a host, and how long calls take under them."""

from collections.abc import Collection
from enum import StrEnum

from fanout.api.fanout_configuration import ForgeHost, ForgeProgram
from fanout.values import Value, replace

MINUTE, HOUR = 60.0, 3600.0  # seconds


class CallKind(StrEnum):
    """Kind of a call, by the limits that hosts have for it."""

    READ = "read"
    WRITE = "write"  # that makes no content: a deletion, a token
    CONTENT = "content"  # a status, a label, a changed text, a merge
    CREATION = "creation"  # content that people are notified of: a pull request

    @property
    def is_content(self) -> bool:
        """Return whether it counts among the calls that make content."""
        return self in (CallKind.CONTENT, CallKind.CREATION)

    @property
    def points(self) -> int:
        """Return what it costs where calls have different costs, as GitHub counts them."""
        return 1 if self is CallKind.READ else 5


class CallLimits(Value):
    """Limits of one account of a host; None: the host has no such limit."""

    calls_per_minute: int = 600
    creations_per_hour: int = 500
    write_spacing: float = 0.0  # seconds between the starts of two writes
    in_flight: int = 4
    patience: float = MINUTE  # seconds that a call waits for a limit; beyond it is deferred
    points_per_minute: int | None = None
    content_per_minute: int | None = None  # creations count in it
    content_per_hour: int | None = None
    # For estimates; how many calls of an hour are left, the answers of a host say.
    calls_per_hour: int | None = None


class HostLimits(Value):
    """Limits of a host, and its name as Repositories have it."""

    host: str  # "git.example.com"
    limits: CallLimits


_LIMITS_BY_PROGRAM = {
    # Gitea has no limits by default; these leave capacity for the people who use it.
    ForgeProgram.GITEA: CallLimits(calls_per_minute=1200, creations_per_hour=1200),
    # Of an installation or a token. The documented limits, with the advised pause between writes.
    ForgeProgram.GITHUB: CallLimits(
        calls_per_minute=900,
        write_spacing=1.0,
        points_per_minute=900,
        content_per_minute=80,
        content_per_hour=500,
        calls_per_hour=5000,
    ),
    # Those that gitlab.com has announced for its free plan, which are the lowest.
    ForgeProgram.GITLAB: CallLimits(calls_per_minute=100, calls_per_hour=5000),
}


def limits_of_host(host: ForgeHost) -> CallLimits:
    """Return the limits of a host: those of its program, unless they are configured."""
    limits = _LIMITS_BY_PROGRAM.get(host.type, CallLimits())
    if host.calls_per_minute is not None:
        limits = replace(limits, calls_per_minute=host.calls_per_minute)
    if host.creations_per_hour is not None:
        limits = replace(limits, creations_per_hour=host.creations_per_hour)
    return limits


def least_seconds(limits: CallLimits, kinds: Collection[CallKind]) -> float:
    """Return how long calls of these kinds take at least, for a host that has seen none.

    The duration of the calls themselves is not counted.
    """
    writes = sum(kind is not CallKind.READ for kind in kinds)
    content = sum(kind.is_content for kind in kinds)
    creations = sum(kind is CallKind.CREATION for kind in kinds)
    points = sum(kind.points for kind in kinds)
    windows = (
        (len(kinds), limits.calls_per_minute, MINUTE),
        (len(kinds), limits.calls_per_hour, HOUR),
        (points, limits.points_per_minute, MINUTE),
        (content, limits.content_per_minute, MINUTE),
        (content, limits.content_per_hour, HOUR),
        (creations, limits.creations_per_hour, HOUR),
    )
    return max(
        max(writes - 1, 0) * limits.write_spacing,
        *(
            max(used - 1, 0) // limit * period
            for used, limit, period in windows
            if limit is not None
        ),
    )
