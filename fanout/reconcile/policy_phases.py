"""Phases of the evaluation of one policy, each holding the one before."""

from collections.abc import Mapping

from fanout.errors import FanoutError
from fanout.gates.evaluation_results import PolicyEvaluation
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.rollback_pins import Pin
from fanout.plan.gates.variant_facts import GateInputs, ObservedEvidence
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.records.policy_status import RecordedStatus
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.selected_variant import SelectedVariant
from fanout.reconcile.memo.policy_memo import VariantMemo
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import Value, field, replace


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
    variant_memo: VariantMemo
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
