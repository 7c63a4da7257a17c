"""Conditions of policies: readiness, enforcement, templates, and errors that stop them."""

from collections.abc import Iterable, Mapping, Sequence

from fanout.api.reasons import Reason
from fanout.api.results import Condition, Hold, build_ready, build_true
from fanout.api.view_base import ConditionStatus
from fanout.errors import Conflict, Denied, FanoutError, Unavailable, Waiting
from fanout.gates.evaluation_results import VariantEvaluation, VariantState
from fanout.gates.gate_wording import describe_hold
from fanout.plan.push_refusals import describe_refusal
from fanout.plan.rendered_variant import RenderedVariant
from fanout.plan.variant_observation import unreadable_repository_hold
from fanout.present.enforcement_conditions import report_enforcement
from fanout.present.variant_conditions import find_undrafted_hold, is_carried_out
from fanout.reconcile import reconcile_wording as wording
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.removal.orphaned_variants import summarize_orphans


def build_policy_conditions(policy_result: PolicyResult, holds: Sequence[Hold]) -> list[Condition]:
    """Build the conditions of a policy; `holds` are those of the policy itself."""
    if policy_result.error is not None:
        return build_error_conditions(policy_result.error)
    # A condition type occurs once: the least enforced repositories stand for all.
    enforcement = [it.as_condition() for it in report_enforcement(policy_result.variants)[:1]]
    return [
        _build_readiness(policy_result, holds),
        *enforcement,
        *_build_template_conditions(policy_result),
    ]


def build_error_conditions(error: FanoutError) -> list[Condition]:
    """Build the conditions of what an error stops."""
    kind = "Stalled" if needs_person(error) else "Reconciling"
    return [
        build_ready(error.reason, str(error)),
        Condition(kind, ConditionStatus.TRUE, error.reason, str(error)),
    ]


def needs_person(error: FanoutError) -> bool:
    """Return whether the error lasts until somebody corrects something.

    An error of the outside world may be gone at the next attempt, without a correction. A
    repository that does not exist is no such error: mostly its URL is wrong.
    """
    ends_by_itself = isinstance(error, Unavailable | Waiting | Conflict)
    return not ends_by_itself or error.reason == Reason.REMOTE_NOT_FOUND


def find_refusals(policy_result: PolicyResult) -> Mapping[str, Denied]:
    """Return the errors of repositories whose servers refuse pushes of a policy, by identity."""
    reason = str(Reason.PUSH_REFUSED)
    lines = policy_result.refused_pushes.values()
    return {it.repository: Denied(describe_refusal(it), reason=reason) for it in lines}


def has_unusable_repository(variants: Iterable[RenderedVariant]) -> bool:
    """Return whether a person must correct the repository of one of the variants."""
    return any(needs_person(error) for _, error in _find_unreadable(variants))


def _find_unreadable(
    variants: Iterable[RenderedVariant],
) -> list[tuple[RenderedVariant, FanoutError]]:
    """Return the variants whose repository cannot be read, with the error.

    First those whose repository a person must correct.
    """
    unreadable = [
        (variant, failure)
        for variant in variants
        if (failure := variant.observed.package_location.repository_state.failure) is not None
    ]
    return sorted(unreadable, key=lambda it: not needs_person(it[1]))


def _build_template_conditions(policy_result: PolicyResult) -> list[Condition]:
    """Build the condition about templates of pull requests that yield nothing."""
    return [
        build_true(Reason.EXPRESSION_ERROR, warning)
        for warning in policy_result.template_warnings[:1]
    ]


def _build_readiness(policy_result: PolicyResult, holds: Sequence[Hold]) -> Condition:
    """Return the condition Ready: what a person must fix outranks what only waits."""
    decisions = policy_result.decision.variants.values() if policy_result.decision else ()
    ready_count = sum(map(is_carried_out, decisions))
    ready_sentence = wording.describe_readiness(ready_count, len(decisions))
    if failed_targets := policy_result.resolved_policy.failures:
        first = failed_targets[0]
        failed = wording.describe_failed_targets(len(failed_targets), first.target, first.problem)
        return build_ready(Reason.TARGETS_FAILED, f"{failed}; {ready_sentence}")
    if failures := find_failed_variants(policy_result):
        hold = failures[0].holds[0] if failures[0].holds else None
        detail = f": {describe_hold(hold)}" if hold else ""
        reason = hold.reason if hold else Reason.VERIFICATION_FAILED
        summary_text = wording.describe_failed_variants(len(failures), failures[0].name)
        return build_ready(reason, f"{summary_text}{detail}; {ready_sentence}")
    if undrafted := [it for it in decisions if find_undrafted_hold(it) is not None]:
        hold = find_undrafted_hold(undrafted[0])
        assert hold is not None, "those were chosen"
        summary_text = wording.describe_undrafted_variants(len(undrafted), undrafted[0].name)
        return build_ready(hold.reason, f"{summary_text}: {describe_hold(hold)}; {ready_sentence}")
    if unreadable := _find_unreadable(policy_result.variants):
        variant, failure = unreadable[0]
        hold = unreadable_repository_hold(failure, "")
        summary_text = wording.describe_unreadable_repositories(len(unreadable), variant.spec.name)
        return build_ready(hold.reason, f"{summary_text}: {hold.message}; {ready_sentence}")
    is_refused = any(it.reason == Reason.PUSH_REFUSED for it in holds[:1])
    if policy_result.orphans and not is_refused:
        reason, orphan_summary, remedy = summarize_orphans(
            policy_result.resolved_policy.name, policy_result.orphans, policy_result.removals
        )
        # A policy that was deleted has no targets, of which any could be ready.
        parts = (orphan_summary, ready_sentence if decisions else "", remedy)
        return build_ready(reason, "; ".join(filter(None, parts)))
    if decisions and ready_count == len(decisions) and not is_refused:
        return build_ready(Reason.READY, ready_sentence, is_ready=True)
    if holds:
        return build_ready(holds[0].reason, f"{describe_hold(holds[0])}; {ready_sentence}")
    if not decisions:
        # All that is declared is carried out. Tools that wait for the policy would wait for ever.
        return build_ready(Reason.NO_TARGETS, wording.NO_TARGETS, is_ready=True)
    return build_ready(Reason.PROGRESSING, ready_sentence)


def find_failed_variants(policy_result: PolicyResult) -> list[VariantEvaluation]:
    """Return decisions of variants that failed, or that name a missing stage."""
    decisions = policy_result.decision.variants.values() if policy_result.decision else ()
    return [it for it in decisions if it.state is VariantState.FAILED or _is_misplaced(it)]


def _is_misplaced(decision: VariantEvaluation) -> bool:
    """Return True if the variant names a missing stage, a failure in sweeps too."""
    return bool(decision.stage) and any(it.reason == Reason.NOT_IN_STAGE for it in decision.holds)
