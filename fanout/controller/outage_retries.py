"""Retries of policies that something outside of fanout stopped: a host, a network, a permission.

What is declared does not change when a server comes back, so nothing else would evaluate these
policies before the next check of all repositories.
"""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from math import ceil

from fanout.api.reasons import Reason
from fanout.errors import Denied, FanoutError, RateLimited, Unavailable
from fanout.plan.observation.repository_state import RepositoryState
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassSubject, subject_of
from fanout.retries import choose_pause
from fanout.values import Value


class _Outage(Value):
    """Failures in a row of one policy, and when it is evaluated again."""

    attempts: int
    retry_at: datetime


class OutageRetries:
    """Instants of the retries, in the memory of this process."""

    def __init__(self, compute_pause: Callable[[int], float]) -> None:
        """Plan nothing yet; `compute_pause` returns the seconds after that many retries."""
        self._compute_pause = compute_pause
        self._outages: dict[PassSubject, _Outage] = {}

    def plan(self, report: PassReport, now: datetime) -> Mapping[PassSubject, datetime]:
        """Return when to evaluate again the policies of a pass that something outside stopped.

        A policy that a pass evaluates before its retry is due keeps the instant: changes of
        other objects must not make it rarer.
        """
        evaluated = {_subject_of(it) for it in report.pass_plan.policies}
        stopped = frozenset(_find_stopped(report))
        # One for all: policies that wait for the same repository are evaluated together.
        jitter = choose_pause(0.5, 1)
        for subject in evaluated - stopped:
            self._outages.pop(subject, None)
        for subject in stopped:
            outage = self._outages.get(subject, _Outage(0, now))
            if outage.retry_at <= now:
                # Whole seconds, as the clock: it would not reach an instant within one for a while.
                pause = ceil(self._compute_pause(outage.attempts) * jitter)
                retry_at = now + timedelta(seconds=pause)
                self._outages[subject] = _Outage(outage.attempts + 1, retry_at)
        return {it: self._outages[it].retry_at for it in stopped}


def _find_stopped(report: PassReport) -> Iterator[PassSubject]:
    """Yield the policies and hand-written variants that something outside stopped."""
    for item in report.pass_plan.policies:
        if report.pass_plan.has_outdated_records or any(map(_is_outage, _list_failures(item))):
            yield _subject_of(item)
    for outcome in report.failed_outcomes:
        # A lost race is repeated at once.
        if outcome.reason != Reason.REMOTE_MOVED:
            yield subject_of(outcome.action)


def _list_failures(item: PolicyResult) -> Iterator[FanoutError]:
    """Yield the errors that a policy met; not those of its own fields."""
    if isinstance(item.error, (Unavailable, Denied)):
        yield item.error
    if item.upstream_failure is not None:
        yield item.upstream_failure
    for state in _list_states(item):
        if state.failure is not None:
            yield state.failure
        elif state.forge is not None and state.forge.failure is not None:
            yield state.forge.failure


def _list_states(item: PolicyResult) -> Iterator[RepositoryState]:
    yield from item.repository_states
    for variant in item.variants:
        yield variant.observed.repository_state


def _is_outage(error: FanoutError) -> bool:
    # A host that takes no more calls says when it does again.
    return not isinstance(error, RateLimited)


def _subject_of(item: PolicyResult) -> PassSubject:
    return PassSubject(item.resolved_policy.namespace, item.resolved_policy.name)
