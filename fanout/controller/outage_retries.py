"""Retries of policies that something outside of fanout stopped: a host, a network, a permission.

What is declared does not change when a server comes back, so nothing else would evaluate these
policies before the next check of all repositories.
"""

from collections import Counter
from collections.abc import Callable, Iterator

from fanout.api.reasons import Reason
from fanout.controller.work_queue import Trigger, TriggerKey, WorkQueue
from fanout.errors import Denied, RateLimited, Unavailable
from fanout.reconcile.pass_results import PassReport, PolicyResult
from fanout.reconcile.pass_scope import PassSubject, subject_of
from fanout.retries import choose_pause


class OutageRetries:
    """Retries in a row of each policy that is stopped, in the memory of this process."""

    def __init__(self, queue: WorkQueue[TriggerKey], compute_pause: Callable[[int], float]) -> None:
        """Queue nothing yet; `compute_pause` returns the seconds after that many retries."""
        self._queue = queue
        self._compute_pause = compute_pause
        self._attempts: Counter[PassSubject] = Counter()

    def update(self, report: PassReport) -> None:
        """Queue a retry of the policies of a pass that something outside stopped; end the others.

        A policy that a pass evaluates before its retry is due keeps the time: changes of
        other objects must not make it rarer.
        """
        stopped = frozenset(find_stopped(report))
        # One for all: policies that wait for the same repository are evaluated together.
        jitter = choose_pause(0.5, 1)
        for item in report.pass_plan.policies:
            subject = _subject_of(item)
            if subject not in stopped and self._attempts.pop(subject, 0):
                self._queue.discard(TriggerKey(Trigger.RETRY, *subject))
        for subject in stopped:
            key = TriggerKey(Trigger.RETRY, *subject)
            if key not in self._queue:
                self._queue.add_after(key, self._compute_pause(self._attempts[subject]) * jitter)
                self._attempts[subject] += 1


def find_stopped(report: PassReport) -> Iterator[PassSubject]:
    """Yield the policies and hand-written variants that something outside stopped."""
    for item in report.pass_plan.policies:
        variant_states = (it.observed.repository_state for it in item.variants)
        # What the policy met; an error of its own fields is none from outside.
        failures = [
            item.error if isinstance(item.error, (Unavailable, Denied)) else None,
            item.upstream_failure,
            *(
                it.failure or (it.forge.failure if it.forge is not None else None)
                for it in (*item.repository_states, *variant_states)
            ),
        ]
        # A host that takes no more calls says when it does again.
        is_stopped = any(it is not None and not isinstance(it, RateLimited) for it in failures)
        if report.pass_plan.has_outdated_records or is_stopped:
            yield _subject_of(item)
    for outcome in report.failed_outcomes:
        # A lost race is repeated at once.
        if outcome.reason != Reason.REMOTE_MOVED:
            yield subject_of(outcome.action)


def _subject_of(item: PolicyResult) -> PassSubject:
    return PassSubject(item.resolved_policy.namespace, item.resolved_policy.name)
