"""Eligibility of approvals: approvers, approvable drafts, and what does not count."""

from collections.abc import Collection, Sequence

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.promotion_policy import normalize_person
from fanout.cli.recording.decision_effect import is_published_at
from fanout.errors import InvalidInput
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex, find_revoked, is_own_approval
from fanout.gates.gate_evaluation import start_evaluation
from fanout.gates.gate_facts import VariantFacts
from fanout.gates.gate_rules import ApprovalRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.plan.observation.repository_state import CommitIdentity
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import replace


def is_approver(rule: ApprovalRule, author: CommitIdentity, groups: Collection[str] = ()) -> bool:
    """Return whether this person's approval, given for groups of a cluster, counts for the rule."""
    return rule.find_approver(_normalize_person(author), groups) is not None


def format_not_entitled(rule: ApprovalRule, author: CommitIdentity) -> str:
    """Return why this person is not entitled to approve."""
    groups = " or ".join(rule.groups) or "any group"
    return f"{_normalize_person(author)} is not in {groups} (PromotionPolicy.approvers)"


def build_no_draft(
    item: PolicyResult, stage: str, revision: str, variants: Sequence[RenderedVariant]
) -> InvalidInput:
    """Build the error for a revision without a draft, with the time of its next one.

    A stage has drafts of its candidate only: the revision that passes its `after`, or the
    one that it is still working on.
    """
    problem = f"stage {stage} of {item.title} has no draft of {revision}"
    decisions = item.decision.variants if item.decision else {}
    candidates = {decisions[variant.spec.name].candidate for variant in variants}
    if revision not in item.revisions:
        choice = f"choose an allowed revision: {', '.join(item.revisions)}"
        remedy = choice if item.revisions else "spec.upstream allows no revision"
    elif not variants:
        problem, remedy = f"{problem}: the stage has no variants", "run `fanout get variants`"
    elif revision not in candidates:
        problem = f"{problem}: its candidate is {format_names(candidates)}"
        remedy = _format_draft_time(item, stage, revision)
    elif all(is_published_at(variant, revision) for variant in variants):
        problem = f"{problem}: it is already published there"
        remedy = "there is nothing to approve"
    elif any(variant.observed.shares_draft for variant in variants):
        problem = f"{problem} that is current"
        remedy = (
            "variants join the draft of the stage when they are released;"
            f" `fanout explain {item.resolved_policy.name}/{stage}` shows what they wait for"
        )
    else:
        problem = f"{problem} that is current"
        remedy = "run `fanout get drafts`; `fanout sweep --drafts-only` updates drafts"
    return InvalidInput(problem, reason="NoDraft", remedy=remedy)


def _format_draft_time(item: PolicyResult, stage: str, revision: str) -> str:
    """Return when drafts are written for a revision that is not the stage's candidate."""
    assert item.facts is not None, "a policy that is judged has its facts"
    evaluation = start_evaluation(item.facts)
    evaluation.apply_candidates()
    rule = next(rule for rule in item.facts.stages if rule.name == stage)
    pin, candidate = evaluation.pin(rule), evaluation.candidate(stage)
    if pin is not None and pin.revision == candidate:
        return f"{label_stage(stage)} is rolled back to {candidate} and stays there"
    if evaluation.ages.is_older(revision, candidate):
        return "the candidate is newer, and a stage never goes back automatically"
    gate = evaluation.stage_gate(rule, revision)
    if gate.verdict is Verdict.PASSED:
        return f"drafts of {revision} are written when the stage is done with {candidate}"
    reasons = "; ".join(dict.fromkeys(hold.message for hold in gate.holds))
    condition = f"drafts of {revision} are written when its gate opens"
    if gate.next is not None:
        return f"{condition} (at {format_instant(gate.next)}, if nothing else changes): {reasons}"
    forecast_command = f"`fanout forecast {item.resolved_policy.name} --revision {revision}`"
    return f"{condition}: {reasons}; {forecast_command} shows the earliest time"


def format_not_counted(
    rule: ApprovalRule,
    author: CommitIdentity,
    drafted: Sequence[VariantFacts],
    groups: Collection[str] = (),
) -> str:
    """Return why an approval of these drafts does not count, or only for some.

    Empty if it counts.
    """
    if not is_approver(rule, author, groups):
        return f"recorded, but it does not count: {format_not_entitled(rule, author)}"
    edited = find_own_edits(rule, author, drafted)
    if not edited:
        return ""
    is_all = len(edited) == len(drafted)
    subset = "" if is_all else f" for {len(edited)} of them ({format_names(edited)})"
    return (
        f"it does not count{subset}: {_normalize_person(author)} changed"
        f" {'it' if len(edited) == 1 else 'them'}, and own changes cannot be approved"
        " (PromotionPolicy.requiresSeparation)"
    )


def find_own_edits(
    rule: ApprovalRule, author: CommitIdentity, drafted: Sequence[VariantFacts]
) -> list[str]:
    """Return the variants that this person edited, if the rule requires separation."""
    name = _normalize_person(author)
    person = rule.find_subject(name) or name
    return [
        it.name
        for it in drafted
        if it.draft is not None and is_own_approval(rule, person, it.draft)
    ]


def find_approved(
    item: PolicyResult, rule: ApprovalRule, author: CommitIdentity, drafted: Sequence[VariantFacts]
) -> list[str]:
    """Return the variants whose drafts this person has approved without a revocation."""
    facts = item.facts
    if facts is None:
        return []
    approvals = facts.records.approvals
    revoked = find_revoked(approvals, facts.stages)
    name = _normalize_person(author)
    own_names = rule.names_of(rule.find_subject(name) or name)
    own_approvals = [it for it in approvals if it.by in own_names and it.name not in revoked]
    decisions = ActiveDecisions(facts.records.decisions, facts.now, facts.variants)
    index = ApprovalIndex(own_approvals, facts.stages, facts.now, decisions)
    # Stages that require this rule alone: the index then answers for one check of one person.
    rules = {it.name: replace(it, requires=(rule,)) for it in facts.stages}
    return [
        it.name for it in drafted if it.draft and index.has_approval(rules[it.stage], it, it.draft)
    ]


def _normalize_person(author: CommitIdentity) -> str:
    return normalize_person(f"{author.name} <{author.email}>")
