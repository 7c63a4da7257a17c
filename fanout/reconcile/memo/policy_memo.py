"""Memos of policies without work, and of variants, valid while their inputs are unchanged.

A pass reads the world, never the event. Unchanged inputs give the same result until its
own next check time, so a policy that had nothing to do is not evaluated again. A new
record about one policy costs the others their listings and nothing more.

A long-running process makes most passes because something changed for a few variants. Of a policy
that is evaluated again, the observed variants, candidates and gate facts of all others are reused.
Only plain variants are kept: a variant that moves, shares its path or was edited downstream is
inspected in each pass.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.reasons import Reason
from fanout.gates.gate_rules import CheckRule
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.gates.variant_facts import VariantFactsMemo
from fanout.plan.observation.repository_state import RefListing, RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import VariantLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.ownership.path_ownership import PolicyPaths
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.reconcile.selection.policy_resolution import PolicyKey, ResolvedPolicy
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value, replace


@dataclass(slots=True)
class VariantMemo:
    """Memo of the variants of one policy, or of one hand-written variant."""

    _: KW_ONLY
    keeps_variants: bool = False  # False in a process of one pass, which cannot reuse them
    _observed: dict[str, tuple[VariantLine | None, ObservedVariant]] = field(default_factory=dict)
    _selected: dict[str, SelectedVariant] = field(default_factory=dict)
    # of the cluster objects from which the stored candidates have their inputs
    objects_stamp: object = None
    _idle: dict[str, RenderedVariant] = field(default_factory=dict)  # that need no draft
    # Memos of gate facts before and after candidates are chosen; None if variants are not kept.
    preliminary_facts: VariantFactsMemo | None = None
    gate_facts: VariantFactsMemo | None = None

    def __post_init__(self) -> None:
        if self.keeps_variants:
            self.preliminary_facts, self.gate_facts = {}, {}

    def find_observed(
        self, spec: VariantSpec, repository_state: RepositoryState, status_line: VariantLine | None
    ) -> ObservedVariant | None:
        """Return the memoized variant if all its inputs are the same objects, else None."""
        if (memoized := self._observed.get(spec.name)) is None:
            return None
        previous_line, variant = memoized
        # By identity, because comparing values costs as much as observing it again.
        is_same_line = previous_line is status_line
        is_same = variant.spec is spec and variant.repository_state is repository_state
        return variant if is_same and is_same_line else None

    def store_observed(
        self, status_line: VariantLine | None, variant: ObservedVariant
    ) -> ObservedVariant:
        """Return the variant, stored if spec, status line and repository state alone determine it.

        A status line that mentions another path than the wanted one shows what else it depends on.
        """
        place = variant.repository_state.identity, variant.spec.path
        is_plain = self.keeps_variants and not (
            variant.is_unrecorded
            or variant.may_adopt
            or variant.origin
            or variant.published_for_another
            or variant.choices.by_key
            or variant.previous
            or variant.misplaced_drafts
            or variant.abandoned
            or variant.exchange_partners
            or variant.wait_hold
            or variant.reverted_publication
            or variant.published_faults
            or variant.obstacle
            or variant.repository_state.failure
            or variant.rewound_records
            or variant.unfinished_push
        )
        is_at_place = status_line is None or (
            status_line.place == place
            and status_line.granted_place in (None, place)
            and not status_line.left
        )
        if is_plain and is_at_place:
            self._observed[variant.spec.name] = status_line, variant
        else:
            self._observed.pop(variant.spec.name, None)
        return variant

    def find_selected(self, variant: ObservedVariant) -> SelectedVariant | None:
        """Return the variant with its last candidate, or None if it was observed anew."""
        memoized = self._selected.get(variant.spec.name)
        return memoized if memoized is not None and memoized.observed is variant else None

    def store_selected(self, variants: Iterable[SelectedVariant], objects_stamp: object) -> None:
        """Store all variants of the policy that have inputs, in place of those before.

        `objects_stamp`: of the cluster objects of this pass.
        """
        if self.keeps_variants:
            self.objects_stamp = objects_stamp
            # Without the others: their inputs were not compared with the objects of this pass.
            self._selected = {
                it.observed.spec.name: it
                for it in variants
                if it.inputs is not None and not it.is_rollback
            }

    def find_idle(self, variants: Iterable[SelectedVariant]) -> dict[str, RenderedVariant]:
        """Return those of the variants that need no draft, as in an earlier pass, by name."""
        by_name = {it.observed.spec.name: it for it in variants}
        idle = ((name, self._idle.get(name)) for name in by_name)
        return {name: it for name, it in idle if it is not None and it.selected is by_name[name]}

    def store_idle(self, rendered: RenderedVariant) -> None:
        """Store the variant, which needs no draft for its candidate, whoever is suspended."""
        # Others are new objects in each pass, and would never be found again.
        if self._selected.get(rendered.spec.name) is rendered.selected:
            self._idle[rendered.spec.name] = rendered

    def retain(self, names: Iterable[str]) -> None:
        """Drop all variants except the named ones."""
        # Variants come and go: without this the memo of a long-running process would only grow.
        retained = frozenset(names)
        memos: tuple[dict[str, Any], ...] = (
            self._observed,
            self._idle,
            self.preliminary_facts or {},
            self.gate_facts or {},
        )
        for memo in memos:
            for name in memo.keys() - retained:
                del memo[name]


class _MemoEntry(Value, kw_only=True):
    """Memoized result of one policy, and the inputs it depends on.

    What is declared of its own is in the resolved policy. Objects that its variants inject are not
    compared: whoever resolves the policies says which of them a changed object concerns.
    """

    resolved_policy: ResolvedPolicy
    settings: tuple[object, ...]  # what is compared by value
    upstream: RefListing
    states: Mapping[int, RepositoryState]  # of its repositories, by their id
    policy_paths: PolicyPaths  # of all policies
    conflicts: tuple[object, ...]  # with the paths of others
    evaluated_at: datetime
    result: PolicyResult

    def is_valid(self, inputs: PolicyInputs, now: datetime, *, publish: bool) -> bool:
        """Return True if the result is still valid."""
        decision, retry_at = self.result.decision, self.result.retry_at
        next_checks = (decision.next if decision else None, retry_at)
        if (
            self.resolved_policy is not inputs.resolved_policy
            or self.settings != _list_settings(inputs, publish=publish)
            # A clock that was set back invalidates the memo: instants in the result would lie
            # ahead.
            or self.evaluated_at > now
            or any(it is not None and now >= it for it in next_checks)
        ):
            return False
        listing, index = inputs.upstream_listing, inputs.path_ownership.index
        is_listed_alike = listing is self.upstream or (
            isinstance(listing, RefListing) and listing.refs == self.upstream.refs
        )
        # By identity: the observer returns the same state for unchanged refs and requests.
        own_states = inputs.path_ownership.own_states
        if not is_listed_alike or self.states.keys() != {id(it) for it in own_states}:
            return False
        return index.policy_paths is self.policy_paths or (
            # The sentence of an obstacle may name the paths of any other policy.
            not any(it.observed.obstacle or it.observed.wait_hold for it in self.result.variants)
            and index.find_conflicts(inputs.resolved_policy) == self.conflicts
        )


@dataclass(slots=True)
class PolicyMemo:
    """Memo of policies that had nothing to do, and of the variants of all; one per process."""

    keeps_variants: bool = False  # False in a process of one pass, which cannot reuse them
    _present_keys: frozenset[PolicyKey] = frozenset()  # policies of this pass
    _entries: dict[PolicyKey, _MemoEntry] = field(default_factory=dict)
    _variant_memos: dict[PolicyKey, VariantMemo] = field(default_factory=dict)

    def begin_pass(self, keys: Iterable[PolicyKey]) -> None:
        """Begin a pass with the keys of all its policies; entries of others are dropped."""
        self._present_keys = frozenset(keys)
        for memo in (self._entries, self._variant_memos):
            for key in memo.keys() - self._present_keys:
                del memo[key]

    def variant_memo(self, key: PolicyKey) -> VariantMemo:
        """Return the memo of the policy's variants; an empty one if the policy is new."""
        return self._variant_memos.setdefault(key, VariantMemo(keeps_variants=self.keeps_variants))

    def drop(self, keys: Iterable[PolicyKey]) -> None:
        """Drop the results of policies for which a declared object reads otherwise than before."""
        for key in keys:
            self._entries.pop(key, None)

    def find_result(
        self, inputs: PolicyInputs, now: datetime, *, publish: bool
    ) -> PolicyResult | None:
        """Return the memoized result of the policy, or None if it must be evaluated."""
        entry = self._entries.get(inputs.resolved_policy.key)
        if entry is None or not entry.is_valid(inputs, now, publish=publish):
            return None
        policy_paths = inputs.path_ownership.index.policy_paths
        if entry.policy_paths is not policy_paths:  # or the earlier ones would be kept
            self._entries[inputs.resolved_policy.key] = replace(entry, policy_paths=policy_paths)
        return entry.result

    def is_complete(self) -> bool:
        """Return True if every policy of this pass has a memoized result."""
        return self._present_keys == self._entries.keys()

    def store(
        self, inputs: PolicyInputs, result: PolicyResult, plan: PolicyPlan | None, *, publish: bool
    ) -> None:
        """Store the result if a later pass may reuse it: no work was planned, nothing failed."""
        key = inputs.resolved_policy.key
        self._entries.pop(key, None)
        listing, states = inputs.upstream_listing, inputs.path_ownership.own_states
        # A plan that only changes the status counts as work: the next pass starts from other lines.
        if (
            plan is None
            or plan.actions
            or plan.planned != plan.recorded
            or result.traces
            or not isinstance(listing, RefListing)
            or any(it.failure or (it.forge and it.forge.failure) for it in states)
            # A failure may be due to lack of time or memory and is retried.
            or result.error is not None
            or any(it.render_failure is not None for it in result.variants)
        ):
            return
        checks = (check for rule in result.rules for check in (*rule.verification, *rule.requires))
        decisions = result.decision.variants.values() if result.decision is not None else ()
        if any(
            isinstance(it, CheckRule) and it.method is not CheckMethod.REPORT for it in checks
        ) or any(it.reason == Reason.LIMIT_EXCEEDED for each in decisions for it in each.holds):
            return  # it depends on probes, or lacked time or memory
        assert result.facts is not None, "a policy with a plan was judged"
        index = inputs.path_ownership.index
        self._entries[key] = _MemoEntry(
            resolved_policy=inputs.resolved_policy,
            settings=_list_settings(inputs, publish=publish),
            upstream=listing,
            states={id(it): it for it in states},
            policy_paths=index.policy_paths,
            conflicts=index.find_conflicts(inputs.resolved_policy),
            evaluated_at=result.facts.now,
            result=result,
        )


def _list_settings(inputs: PolicyInputs, *, publish: bool) -> tuple[object, ...]:
    """Return what the result depends on and is compared by value."""
    return (
        publish,
        inputs.policy_state.head,
        inputs.is_sweep,
        inputs.dependency_holds,
        inputs.promotions,
        inputs.all_promotions_read,
        inputs.removal_doubt,
    )
