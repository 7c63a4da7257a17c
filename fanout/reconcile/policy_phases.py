"""Phases of the evaluation of one policy, each holding the one before; the first are its inputs.

The inputs are what records, repositories and declarations show of the policy. They alone determine
what the gates read of rules, records and history.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import ClassVar

from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.record_objects import DecisionSpec
from fanout.api.results import Hold
from fanout.api.upstream_policy import InFlight
from fanout.errors import FanoutError
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.gate_rules import HAND_WRITTEN, PropagationCondition, StageRule
from fanout.gates.record_facts import RecordFacts, is_from_the_future
from fanout.gates.revision_history import RevisionHistory
from fanout.gates.rollback_pins import Pin
from fanout.plan.edits.merge_disputes import read_resolutions
from fanout.plan.evaluation_budget import EvaluationBudget
from fanout.plan.gates.stage_rules import (
    build_calendars,
    build_hand_written_rule,
    build_stage_rules,
)
from fanout.plan.gates.variant_facts import GateInputs, ObservedEvidence, VariantAttributes
from fanout.plan.observation.repository_state import RefListing
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_records import PolicyRecords, RecordEntry, active_records
from fanout.plan.records.policy_status import RecordedStatus
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.observation.repository_access import build_remote
from fanout.reconcile.ownership.path_ownership import PathOwnership
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import KeyedValue, Value, field, replace


class PolicyInputs(KeyedValue, kw_only=True):
    """Inputs of the evaluation of one policy."""

    UNCOMPARED: ClassVar = ("budget",)

    resolved_policy: ResolvedPolicy
    policy_state: PolicyRecords
    path_ownership: PathOwnership
    listings: Mapping[str, RefListing | FanoutError]
    promotions: Sequence[PromotionPolicy]
    is_sweep: bool
    budget: EvaluationBudget | None = None  # of its texts
    # Of dependencies of a hand-written variant that are not ready.
    dependency_holds: tuple[Hold, ...] = ()
    all_promotions_read: bool = True  # False: a PromotionPolicy of the namespace may be missing
    removal_doubt: Hold | None = None  # why a missing target may still exist

    @property
    def upstream_listing(self) -> RefListing | FanoutError | None:
        """Return the listing of its upstream repository, or the error; None without upstream."""
        upstream = self.resolved_policy.upstream
        return self.listings.get(build_remote(upstream).key) if upstream is not None else None

    @property
    def own_records(self) -> Sequence[RecordEntry]:
        """Return the active records of the policy."""
        return self.resolved_policy.select_records(active_records(self.policy_state.records))

    def read_resolutions(self, now: datetime) -> tuple[DecisionSpec, ...]:
        """Return the resolutions of merge conflicts on record that are not dated in the future."""
        return read_resolutions(
            [it for it in self.own_records if not is_from_the_future(it.at, now)]
        )

    def build_rules(
        self, get_condition: Callable[[str], PropagationCondition]
    ) -> tuple[StageRule, ...]:
        """Build the rule of each stage; `get_condition` gives the condition of an expression."""
        policy, promotions = self.resolved_policy.upstream_policy, self.promotions
        if policy is not None:
            rules = build_stage_rules(policy, promotions, get_condition)
        else:
            rules = (build_hand_written_rule(self.resolved_policy.name, promotions),)
        # Fail closed: an unreadable object may restrict this policy.
        all_read = self.all_promotions_read
        return tuple(replace(it, automatic=it.automatic and all_read) for it in rules)

    def build_gate_inputs(
        self,
        status: RecordedStatus,
        revisions: Mapping[str, str],
        gate_records: RecordFacts,
        rules: tuple[StageRule, ...],
        now: datetime,
    ) -> GateInputs:
        """Build the gate inputs that no repository state contributes to.

        `revisions`: the commit of each revision that the policy allows.
        """
        resolved_policy, policy = self.resolved_policy, self.resolved_policy.upstream_policy
        if policy is not None:
            history = status.history
            groups, variables = resolved_policy.rollout_groups, resolved_policy.expression_variables
            attributes = {
                name: VariantAttributes(groups.get(name, 0), variables.get(name, {}))
                for name in groups.keys() | variables.keys()
            }
        else:
            # Hand-written variants share their records, each under its own name.
            history = {
                (HAND_WRITTEN, revision): it
                for (stage, revision), it in status.history.items()
                if stage == resolved_policy.name
            }
            own_attributes = VariantAttributes(dependency_holds=self.dependency_holds)
            attributes = {it.name: own_attributes for it in resolved_policy.variants}
        facts = PolicyFacts(
            name=resolved_policy.name,
            stages=rules,
            variants=(),
            revisions=tuple(revisions),
            records=gate_records,
            history=history,
            now=now,
            suspended=policy is not None and policy.spec.suspend,
            sweep=self.is_sweep,
            serialize=policy is not None and policy.spec.in_flight is InFlight.SERIALIZE,
            calendars=build_calendars(self.promotions),
            has_unreadable_calendar=not self.all_promotions_read,
        )
        return GateInputs(
            facts=facts,
            resolutions=self.read_resolutions(now),
            last_evidence=gate_records.position(now).last_evidence,
            draft_lines=status.drafts,
            attributes=attributes,
        )

    def merge_history(
        self, status: RecordedStatus, decision: PolicyEvaluation
    ) -> Mapping[tuple[str, str], RevisionHistory]:
        """Return the stage histories to record, keyed by (stage, revision).

        Hand-written variants share their records; each keeps its history under its own name.
        """
        if self.resolved_policy.upstream_policy is not None:
            return decision.history
        name = self.resolved_policy.name
        others = {key: it for key, it in status.history.items() if key[0] != name}
        return others | {(name, revision): it for (_, revision), it in decision.history.items()}


class ObservedPolicy(Value, kw_only=True):
    """Policy with its variants and their evidence, as repositories and records show them."""

    inputs: PolicyInputs
    status: RecordedStatus
    revisions: Mapping[str, str]  # commit by allowed revision
    # those among them whose tag cannot be used, with the reason
    unusable: Mapping[str, FanoutError] = field(default_factory=dict)
    variants: tuple[ObservedVariant, ...]
    evidence: Mapping[str, ObservedEvidence]  # by variant
    gate_inputs: GateInputs
    bootstrap_repositories: frozenset[str]  # with earlier activity that is to be recorded
    emptied_repositories: frozenset[str]  # on record, without anything of the policy

    @property
    def resolved_policy(self) -> ResolvedPolicy:
        """Return the policy with its variants resolved from its targets."""
        return self.inputs.resolved_policy

    @property
    def usable_revisions(self) -> Mapping[str, str]:
        """Return the revisions without those that are left out."""
        return {name: it for name, it in self.revisions.items() if name not in self.unusable}

    def leave_out(self, unusable: Mapping[str, FanoutError]) -> "ObservedPolicy":
        """Return the policy with these revisions left out, each with the reason."""
        policy = replace(self, unusable={**self.unusable, **unusable})
        gate_facts = replace(self.gate_inputs.facts, revisions=tuple(policy.usable_revisions))
        return replace(policy, gate_inputs=replace(self.gate_inputs, facts=gate_facts))


class SelectedPolicy(Value):
    """Observed policy with the candidate of each variant."""

    observed: ObservedPolicy
    variants: tuple[SelectedVariant, ...]
    pins: Mapping[str, Pin]  # by variant that is rolled back
    suspended: frozenset[str]  # names of variants that get no draft


class RenderedPolicy(Value):
    """Selected policy with the drafts that are due."""

    selected: SelectedPolicy
    variants: tuple[RenderedVariant, ...]


class DecidedPolicy(Value):
    """Rendered policy with the decision of the gates, and the facts that led to it.

    `drafted` are its variants, with drafts of candidates that become due once the decision
    is carried out.
    """

    rendered: RenderedPolicy
    facts: PolicyFacts
    decision: PolicyEvaluation
    drafted: tuple[RenderedVariant, ...]

    @property
    def observed(self) -> ObservedPolicy:
        """Return the policy as it was observed."""
        return self.rendered.selected.observed
