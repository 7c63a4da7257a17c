"""Limits of the calls to one host with one credential, and how long calls take under them."""

from collections.abc import Collection
from enum import StrEnum

from fanout.api.fanout_configuration import ForgeHost, ForgeProgram
from fanout.values import Value, replace

MINUTE, HOUR = 60.0, 3600.0  # seconds


class CallKind(StrEnum):
    """Kind of a call, by the limits that hosts have for it."""

    READ = "read"
    WRITE = "write"
    CREATION = "creation"  # a write that makes something people are notified of


class CallLimits(Value):
    """Limits of one host for one credential."""

    calls_per_minute: int = 600
    creations_per_hour: int = 500
    write_spacing: float = 0.0  # seconds between the starts of two writes
    in_flight: int = 4
    patience: float = MINUTE  # seconds that a call waits for a limit; beyond it is deferred


class HostLimits(Value):
    """Limits of a host, and its name as Repositories have it."""

    host: str  # "git.example.com"
    limits: CallLimits


# Gitea has no limits by default; these leave capacity for the people who use it.
_LIMITS_BY_PROGRAM = {
    ForgeProgram.GITEA: CallLimits(calls_per_minute=1200, creations_per_hour=1200)
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
    creations = sum(kind is CallKind.CREATION for kind in kinds)
    return max(
        _seconds_in_windows(len(kinds), limits.calls_per_minute, MINUTE),
        _seconds_in_windows(creations, limits.creations_per_hour, HOUR),
        max(writes - 1, 0) * limits.write_spacing,
    )


def _seconds_in_windows(calls: int, limit: int, period: float) -> float:
    return max(calls - 1, 0) // limit * period
