"""Limits of the calls to a host, and an estimate of what a pass asks of the hosts.

A pass pushes refs and makes calls. Their time is what the limits take at least, for hosts that have
seen no calls in the last hour. Pushes and the duration of the calls themselves are not in it.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from math import ceil

from fanout.api.fanout_configuration import ForgeHost, ForgeProgram
from fanout.api.text_fields import pluralize
from fanout.plan.actions import RequestChange
from fanout.values import Value, as_data, replace

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


_MINUTES_IN_WORDS = 100  # beyond it, time is in hours
# The label by which people hold requests, in each repository in which one is opened: its labels are
# listed, and it is created. A repository that has it takes one call less; only the host knows.
_HOLD_LABEL_CALLS = (CallKind.READ, CallKind.WRITE)


class HostEstimate(Value):
    """Estimate of the calls of a pass to one host, and of the refs pushed to it."""

    host: str
    requests: int  # that are opened or changed
    calls: int
    refs: int  # of the repositories on this host
    seconds: int  # that the limits make the calls take at least

    def sentence(self) -> str:
        """Return the estimate for people, with the host's name."""
        # Rounded up: `about 12 minutes`, `about 2 hours`.
        minutes = ceil(self.seconds / MINUTE)
        duration = pluralize(minutes, "minute")
        if minutes >= _MINUTES_IN_WORDS:
            duration = pluralize(ceil(self.seconds / HOUR), "hour")
        time = f"about {duration} at" if self.seconds else "within"
        return (
            f"{self.host}: {pluralize(self.requests, 'request')}, {pluralize(self.calls, 'call')},"
            f" {pluralize(self.refs, 'ref')}: {time} the host's limits"
        )


class CallEstimate(Value):
    """Estimate of a pass: the refs of every push, and of each host with requests its calls."""

    refs: int
    hosts: tuple[HostEstimate, ...] = ()

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each host with requests, and one for all other refs."""
        yield from (it.sentence() for it in self.hosts)
        other_refs = self.refs - sum(it.refs for it in self.hosts)
        if other_refs:
            yield f"{pluralize(other_refs, 'ref')} to push{' elsewhere' if self.hosts else ''}"

    def as_json(self) -> Mapping[str, object]:
        """Return the estimate as JSON data."""
        return as_data(self)


def estimate_calls(
    refs_by_url: Mapping[str, int],
    request_changes: Sequence[RequestChange],
    limits_of: Callable[[str], HostLimits | None],
) -> CallEstimate:
    """Estimate what the changes of a pass ask of the hosts.

    `refs_by_url` has how many refs are pushed to each repository, by its URL; `limits_of` returns
    the limits of a repository's host by this URL, or None for a host without pull requests.
    """
    if not request_changes:
        return CallEstimate(sum(refs_by_url.values()))  # no host is asked for its limits
    limits_by_host: dict[str, HostLimits] = {}
    kinds: defaultdict[str, list[CallKind]] = defaultdict(list)
    requests: defaultdict[str, int] = defaultdict(int)
    for request in request_changes:
        limits = limits_of(request.remote.url)
        if limits is None:
            continue
        limits_by_host[limits.host] = limits
        requests[limits.host] += 1
        # Labels that the repository does not have yet take further calls.
        writes = (
            request.edit is not None,
            bool(request.added_labels),
            bool(request.reviewers),
            request.status is not None,
            request.merge is not None,
            request.closes,
        )
        kinds[limits.host] += [CallKind.CREATION] * (request.opening is not None)
        kinds[limits.host] += [CallKind.WRITE] * sum(writes)
    opened_in = {it.remote.url for it in request_changes if it.opening is not None}
    for limits in filter(None, map(limits_of, opened_in)):
        kinds[limits.host] += _HOLD_LABEL_CALLS
    refs: defaultdict[str, int] = defaultdict(int)
    for url, count in refs_by_url.items():
        limits = limits_of(url)
        refs[limits.host if limits is not None else ""] += count
    return CallEstimate(
        refs=sum(refs_by_url.values()),
        hosts=tuple(
            HostEstimate(
                host=host,
                requests=requests[host],
                calls=len(kinds[host]),
                refs=refs[host],
                seconds=round(least_seconds(limits_by_host[host].limits, kinds[host])),
            )
            for host in sorted(limits_by_host)
        ),
    )
