"""Isolation of policies that an error stops, so that all other policies proceed.

The change of a repository combines the plans of all policies. A plan that cannot be
turned into changes, or whose releases cannot be recorded, is left out as a whole: its
policy is stopped, nothing of it is pushed. Its drafts and publications stay, and stay
visible in reports.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

from fanout.api.gate_vocabulary import StageState, VariantState, Verdict
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.errors import FanoutError
from fanout.gates.gate_facts import PolicyEvaluation
from fanout.gates.removal_gate import RemovalEvaluation
from fanout.plan.changes.policy_plan import PolicyPlan, join_plans
from fanout.plan.changes.publication_messages import CommitSettings
from fanout.plan.changes.repository_changes import build_changes
from fanout.plan.observation.repository_state import RepositoryChange
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.telemetry.error_isolation import run_without_faulty
from fanout.values import replace


def stop_policy(result: PolicyResult, error: FanoutError) -> PolicyResult:
    """Return the result with the error, the verdicts on record, and all variants held for it."""
    hold, history = Hold(str(error.reason), str(error)), result.status.history
    variants = {
        variant.spec.name: VariantResult(
            name=variant.spec.name, stage=variant.spec.stage, state=VariantState.HELD, holds=(hold,)
        )
        for variant in result.variants
    }
    members = Counter(variant.stage for variant in variants.values())
    stages = {
        rule.name: StageResult(
            name=rule.name,
            candidate="",
            state=StageState.PENDING,
            verdict=Verdict.PENDING,
            verdicts={
                revision: Verdict.PASSED
                for (stage, revision), stage_history in sorted(history.items())
                if stage == rule.name and stage_history.passed is not None
            },
            gate=Verdict.PENDING,
            holds=(hold,),
            counts={VariantState.HELD.value: members[rule.name]} if members[rule.name] else {},
        )
        for rule in result.rules
    }
    decision = PolicyEvaluation(stages, variants, history, holds=(hold,))
    return replace(result, error=error, decision=decision)


PolicyErrors = Mapping[tuple[str, str], FanoutError]
"""By namespace and name of the policy, or of the variant written by hand."""


def compute_changes(
    plans: Sequence[PolicyPlan], writing: CommitSettings
) -> tuple[tuple[RepositoryChange, ...], PolicyErrors]:
    """Return the change of each repository, and the errors of policies left out."""
    # All plans are tried together first, because one push of a repository carries them all.
    build = partial(build_changes, settings=writing)
    repository_changes, errors_by_index = run_without_faulty(build, plans)
    failed = ((plans[n], error) for n, error in errors_by_index.items())
    return repository_changes, {(it.namespace, it.name): error for it, error in failed}


def without_failed_policies(pass_plan: PassPlan, policy_errors: PolicyErrors) -> PassPlan:
    """Return the pass without work for these policies. Raises Bug if it cannot be computed."""
    if not policy_errors:
        return pass_plan
    plans = tuple(it for it in pass_plan.plans if (it.namespace, it.name) not in policy_errors)
    assert pass_plan.writing is not None, "a pass that has plans is worded"
    repository_changes, further_errors = compute_changes(plans, pass_plan.writing)
    results = [
        it
        if (error := policy_errors.get(it.resolved_policy.subject)) is None
        else replace(
            stop_policy(it, error),
            publishing=frozenset(),
            remaining_leftovers={},
            removals=RemovalEvaluation(),
        )
        for it in pass_plan.policies
    ]
    other_actions = (action for it in pass_plan.other_statuses for action in it.actions)
    remaining_plan = replace(
        pass_plan,
        policies=tuple(results),
        plans=plans,
        plan=join_plans(plans, other_actions),
        changes=repository_changes,
        snapshot=None,
    )
    # Changes without the failed plans are new changes and may fail for another policy; each
    # round removes at least one, so this ends.
    return without_failed_policies(remaining_plan, further_errors)


def with_policy_errors(pass_plan: PassPlan, policy_errors: PolicyErrors) -> PassPlan:
    """Return the pass with errors of policies that failed during execution."""
    policies = (
        replace(it, error=policy_errors.get(it.resolved_policy.subject, it.error))
        for it in pass_plan.policies
    )
    return replace(pass_plan, policies=tuple(policies), snapshot=None)
