"""Memo of policies without work, valid while nothing they depend on has changed.

A pass reads the world, never the event. Unchanged inputs give the same result until its
own next check time, so a policy that had nothing to do is not evaluated again. A new
record about one policy costs the others their listings and nothing more.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.reasons import Reason
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.gates.gate_facts import DependencyFacts
from fanout.gates.gate_rules import CheckRule
from fanout.plan.observation.forge_state import ForgeState
from fanout.plan.observation.repository_state import RefListing
from fanout.plan.policy_plan import PolicyPlan
from fanout.plan.records.policy_records import PolicyRecords, RecordsKey
from fanout.reconcile.memo.variant_memo import VariantMemo
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.reconcile.selection.policy_resolution import PolicyKey
from fanout.values import frozen


@dataclass(frozen=True, slots=True, eq=False)
class PassInputs:
    """Values a pass has read that any policy may depend on."""

    declared: DeclaredObjects
    publish: bool
    listings: Mapping[str, RefListing | FanoutError]
    policy_states: Mapping[RecordsKey, PolicyRecords]
    forge_states: Mapping[str, ForgeState] = field(default_factory=dict)  # by Repository identity

    def is_unchanged(self, other: "PassInputs") -> bool:
        """Return True if all inputs are as in the other pass.

        Failed listings, and forges that were not read, never count as unchanged.
        """
        return (
            # By identity: the loader returns the same object for unchanged files, and comparing
            # thousands of objects would cost as much as resolving them again.
            self.declared is other.declared
            and self.publish == other.publish
            and self.listings.keys() == other.listings.keys()
            and all(_has_same_refs(it, other.listings[url]) for url, it in self.listings.items())
            and self.policy_states.keys() == other.policy_states.keys()
            and all(
                _has_same_status(policy_state, other.policy_states[key])
                for key, policy_state in self.policy_states.items()
            )
            and self.forge_states == other.forge_states
            and all(it.failure is None for it in other.forge_states.values())
        )


@frozen
class _MemoEntry:
    """Memoized result of one policy, and the inputs it depends on."""

    _: KW_ONLY
    pass_inputs: PassInputs
    head: str  # commit of its records branch
    is_sweep: bool
    depends_on: tuple[DependencyFacts, ...]
    evaluated_at: datetime
    result: PolicyResult

    def is_valid(self, inputs: PolicyInputs, now: datetime) -> bool:
        """Return True if the result is still valid, given unchanged pass inputs."""
        next_check = self.result.decision.next if self.result.decision else None
        return (
            self.head == inputs.policy_state.head
            and self.is_sweep == inputs.is_sweep
            and self.depends_on == inputs.depends_on
            # A clock that was set back invalidates the memo: instants in the result would lie
            # ahead.
            and self.evaluated_at <= now
            and (next_check is None or now < next_check)
        )


@dataclass(slots=True)
class PolicyMemo:
    """Memo of policies that had nothing to do, and of the variants of all; one per process."""

    keeps_variants: bool = False  # False in a process of one pass, which cannot reuse them
    _present_keys: frozenset[PolicyKey] = frozenset()  # policies of this pass
    _entries: dict[PolicyKey, _MemoEntry] = field(default_factory=dict)
    _variant_memos: dict[PolicyKey, VariantMemo] = field(default_factory=dict)
    # comparison with earlier inputs, by their id
    _unchanged_by_id: dict[int, bool] = field(default_factory=dict)

    def begin_pass(self, keys: Iterable[PolicyKey]) -> None:
        """Begin a pass with the keys of all its policies; entries of others are dropped."""
        self._unchanged_by_id.clear()
        self._present_keys = frozenset(keys)
        for memo in (self._entries, self._variant_memos):
            for key in memo.keys() - self._present_keys:
                del memo[key]

    def variant_memo(self, key: PolicyKey) -> VariantMemo:
        """Return the memo of the policy's variants; an empty one if the policy is new."""
        return self._variant_memos.setdefault(key, VariantMemo(keeps_variants=self.keeps_variants))

    def find_result(
        self, inputs: PolicyInputs, pass_inputs: PassInputs, now: datetime
    ) -> PolicyResult | None:
        """Return the memoized result of the policy, or None if it must be evaluated."""
        entry = self._entries.get(inputs.resolved_policy.key)
        if entry is None or not entry.is_valid(inputs, now):
            return None
        inputs_id = id(entry.pass_inputs)
        # Most entries come from one earlier pass, so the comparison is made once and not per
        # policy.
        if inputs_id not in self._unchanged_by_id:
            self._unchanged_by_id[inputs_id] = entry.pass_inputs.is_unchanged(pass_inputs)
        return entry.result if self._unchanged_by_id[inputs_id] else None

    def is_complete(self) -> bool:
        """Return True if every policy of this pass has a memoized result."""
        return self._present_keys == self._entries.keys()

    def store(
        self,
        inputs: PolicyInputs,
        pass_inputs: PassInputs,
        result: PolicyResult,
        plan: PolicyPlan | None,
    ) -> None:
        """Store the result if a later pass may reuse it: no work was planned, nothing failed."""
        key = inputs.resolved_policy.key
        self._entries.pop(key, None)
        # A plan that only changes the status counts as work: the next pass starts from other lines.
        if (
            plan is None
            or plan.actions
            or plan.planned != plan.recorded
            or not _is_reusable(result)
        ):
            return
        assert result.facts is not None, "a policy with a plan was judged"
        now = result.facts.now
        self._entries[key] = _MemoEntry(
            pass_inputs=pass_inputs,
            head=inputs.policy_state.head,
            is_sweep=inputs.is_sweep,
            depends_on=inputs.depends_on,
            evaluated_at=now,
            result=result,
        )


def _is_reusable(result: PolicyResult) -> bool:
    """Return True if the result depends on neither probes nor failures.

    A failure may be due to lack of time or memory and is retried.
    """
    checks = (check for rule in result.rules for check in (*rule.verification, *rule.requires))
    has_probes = any(
        isinstance(it, CheckRule) and it.method is not CheckMethod.REPORT for it in checks
    )
    has_failures = result.error is not None or any(
        it.render_failure is not None for it in result.variants
    )
    decisions = result.decision.variants.values() if result.decision is not None else ()
    has_exceeded_limit = any(
        hold.reason == Reason.LIMIT_EXCEEDED for variant in decisions for hold in variant.holds
    )
    return not (has_probes or has_failures or has_exceeded_limit)


def _has_same_refs(previous: RefListing | FanoutError, present: RefListing | FanoutError) -> bool:
    return (
        isinstance(previous, RefListing)
        and isinstance(present, RefListing)
        and previous.refs == present.refs
    )


def _has_same_status(previous: PolicyRecords, present: PolicyRecords) -> bool:
    """Return True if the status, which decides path ownership, is unchanged."""
    return previous.head == present.head or (
        previous.status == present.status and previous.unreadable == present.unreadable
    )
