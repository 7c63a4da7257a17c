"""Estimate of what a pass asks of the hosts.

A pass pushes refs and makes calls. Their time is what the limits take at least, for hosts that have
seen no calls in the last hour. Pushes and the duration of the calls themselves are not in it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil

from fanout.api.text_fields import pluralize
from fanout.plan.actions import RequestChange
from fanout.plan.pull_requests.call_limits import HOUR, MINUTE, CallKind, HostLimits, least_seconds
from fanout.values import Value, as_data

_MINUTES_IN_WORDS = 100  # beyond it, time is in hours
# The label by which people hold requests, in each repository in which one is opened: its labels are
# listed, and it is created. A repository that has it takes one call less; only the host knows.
_HOLD_LABEL_CALLS = (CallKind.READ, CallKind.CONTENT)


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
        kinds[limits.host] += [CallKind.CONTENT] * sum(writes)
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
