"""Fairness among policies in a loop: thousands of drafts of one do not keep others waiting.

A policy writes a share of its drafts in a round and goes on in the next one. What concerns others
passes it for one round.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from math import ceil

from fanout.api.reasons import Reason
from fanout.controller.work_queue import Trigger, TriggerKey
from fanout.plan.actions import ActionKind
from fanout.plan.changes.next_drafts import DraftLimit
from fanout.reconcile.pass_results import PassReport
from fanout.reconcile.pass_scope import PassSubject, subject_of
from fanout.values import replace


class RoundFairness:
    """Choice of what a round serves, from the shares that policies wrote in earlier ones."""

    def __init__(self, share: int | None) -> None:
        """Start without any; `share`: number of drafts in a round; None: no limit."""
        # Of the next pass; None: none.
        self.limit = DraftLimit(share) if share is not None else None
        self._unfinished: frozenset[PassSubject] = frozenset()
        # Those of which the last round served keys, if it left others to the next one.
        self._ahead: frozenset[PassSubject] = frozenset()

    def choose_keys(self, pending: Collection[TriggerKey]) -> Sequence[TriggerKey]:
        """Return the pending keys that the next round serves.

        Follow-ups, and all keys of policies that have written a full share, let the others pass
        for one round. In the round after it, those that passed leave their own follow-ups to the
        next one.
        """
        ahead, self._ahead = self._ahead, frozenset()
        if any(key.concerns_all for key in pending):
            return list(pending)
        changed = {_subject(key) for key in pending if key.trigger is not Trigger.FOLLOW_UP}
        if ahead:
            return [key for key in pending if _subject(key) not in ahead - changed] or list(pending)
        urgent = frozenset(changed - self._unfinished)
        keys = [key for key in pending if _subject(key) in urgent]
        if not keys or len(keys) == len(pending):
            return list(pending)
        self._ahead = urgent
        return keys

    def update(self, report: PassReport) -> None:
        """Take in the results of a pass."""
        if self.limit is None:
            return
        shares = Counter(
            subject_of(it.action)
            for it in report.outcomes
            if it.action.kind is ActionKind.WRITE_DRAFT
        )
        evaluated = {
            PassSubject(it.resolved_policy.namespace, it.resolved_policy.name)
            for it in report.pass_plan.policies
        }
        full = {it for it, number in shares.items() if number >= self.limit.number}
        self._unfinished = self._unfinished - evaluated | full
        failed = {
            (it.action.namespace, it.action.repository)
            for it in report.failed_outcomes
            if it.action.kind is ActionKind.WRITE_DRAFT and it.reason != Reason.REMOTE_MOVED
        }
        done = {
            (it.action.namespace, it.action.repository)
            for it in report.outcomes
            if it.is_done and it.action.kind is ActionKind.WRITE_DRAFT
        }
        self.limit = replace(self.limit, failing=self.limit.failing - done | failed)

    def count_rounds(self, report: PassReport) -> int:
        """Return the number of rounds in which the policies of a pass could write all drafts."""
        if self.limit is None:
            return 0
        most = max((len(it.variants) for it in report.pass_plan.policies), default=0)
        return ceil(most / self.limit.number)


def _subject(key: TriggerKey) -> PassSubject:
    return PassSubject(key.namespace, key.name)
