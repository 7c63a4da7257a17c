"""Variants with their decisions, in the order in which views list them."""

from collections.abc import Iterator

from fanout.gates.evaluation_results import VariantEvaluation, VariantState
from fanout.plan.plan_wording import format_maintainers
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.variant_observation import unreadable_repository_hold
from fanout.present.view_meta import order_by_stage
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value, replace


class DecidedEntry(Value):
    """A variant with its decision, as tables show it."""

    variant: RenderedVariant
    decision: VariantEvaluation
    undecided: int  # number of its undecided merge conflicts
    target_name: str


def list_decisions(policy_result: PolicyResult) -> Iterator[DecidedEntry]:
    """Yield each variant with its decision, in the order of the stages."""
    if policy_result.decision is None:
        return
    conflict_counts = policy_result.undecided_conflicts
    target_names = policy_result.target_names
    for variant in order_by_stage(policy_result):
        spec = variant.spec
        decision = _with_read_failure(variant, policy_result.decision.variants[spec.name])
        undecided = conflict_counts.get(spec.name, 0)
        yield DecidedEntry(variant, decision, undecided, target_names[spec.target])


def _with_read_failure(variant: RenderedVariant, decision: VariantEvaluation) -> VariantEvaluation:
    """Return the decision as shown, with a hold if the repository cannot be read.

    Gates use what is on record; without the repository it cannot be confirmed.
    """
    failure = (
        variant.observed.package_location.repository_state.failure
        or variant.observed.repository_state.failure
    )
    if failure is None:
        return decision
    hold = unreadable_repository_hold(failure, format_maintainers(variant.spec.repository))
    holds = (hold, *(it for it in decision.holds if it != hold))
    state = VariantState.HELD if decision.state is VariantState.READY else decision.state
    return replace(decision, state=state, holds=holds)
