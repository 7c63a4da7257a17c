"""Eligibility for approvals and promotions: approvers, drafts, and what is left out or excluded."""

from collections.abc import Sequence

from fanout.api.approver_names import format_group
from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.text_fields import pluralize
from fanout.cli.recording.decision_effect import is_published_at
from fanout.cli.recording.record_session import RecordSession
from fanout.errors import InvalidInput, Stopped
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex, find_revoked, is_own_approval
from fanout.gates.gate_evaluation import start_evaluation
from fanout.gates.gate_facts import VariantFacts
from fanout.gates.gate_rules import ApprovalRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.plan.rendered_variant import RenderedVariant
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import Value, replace


class ApprovalAuthor(Value):
    """Person who approves by a rule, or revokes, with the groups of a cluster they speak for."""

    rule: ApprovalRule
    person: str
    groups: frozenset[str]

    @property
    def is_approver(self) -> bool:
        """Return whether the person's approval counts for the rule."""
        return self.rule.find_approver(self.person, self.groups) is not None

    def format_not_entitled(self) -> str:
        """Return why the person is not entitled to approve."""
        groups = " or ".join(self.rule.groups) or "any group"
        return f"{self.person} is not in {groups} (PromotionPolicy.approvers)"

    def format_not_counted(self, drafted: Sequence[VariantFacts]) -> str:
        """Return why an approval of these drafts does not count, or only for some; else ""."""
        if not self.is_approver:
            return f"recorded, but it does not count: {self.format_not_entitled()}"
        if not (edited := self.find_own_edits(drafted)):
            return ""
        is_all = len(edited) == len(drafted)
        subset = "" if is_all else f" for {len(edited)} of them ({format_names(edited)})"
        return (
            f"it does not count{subset}: {self.person} changed"
            f" {'it' if len(edited) == 1 else 'them'}, and own changes cannot be approved"
            " (PromotionPolicy.requiresSeparation)"
        )

    def find_own_edits(self, drafted: Sequence[VariantFacts]) -> list[str]:
        """Return the variants that the person edited, if the rule requires separation."""
        subject = self.rule.find_subject(self.person) or self.person
        return [
            it.name
            for it in drafted
            if it.draft is not None and is_own_approval(self.rule, subject, it.draft)
        ]

    def find_approved(self, item: PolicyResult, drafted: Sequence[VariantFacts]) -> list[str]:
        """Return the variants whose drafts the person has approved without a revocation."""
        facts, rule = item.facts, self.rule
        if facts is None:
            return []
        approvals = facts.records.approvals
        revoked = find_revoked(approvals, facts.stages)
        own_names = rule.names_of(rule.find_subject(self.person) or self.person)
        own_approvals = [it for it in approvals if it.by in own_names and it.name not in revoked]
        decisions = ActiveDecisions(facts.records.decisions, facts.now, facts.variants)
        index = ApprovalIndex(own_approvals, facts.stages, facts.now, decisions)
        # Stages that require this rule alone: the index then answers for one check of one person.
        rules = {it.name: replace(it, requires=(rule,)) for it in facts.stages}
        return [
            it.name
            for it in drafted
            if it.draft and index.has_approval(rules[it.stage], it, it.draft)
        ]


def find_author(session: RecordSession, rule: ApprovalRule) -> ApprovalAuthor:
    """Return the author of the session, with their groups of a cluster that the rule names."""
    creator = session.program.record_creator
    groups = map(format_group, creator.user.groups) if creator is not None else ()
    return ApprovalAuthor(rule, session.person, rule.subjects.intersection(groups))


def build_no_draft(
    item: PolicyResult, stage: str, revision: str, variants: Sequence[RenderedVariant]
) -> InvalidInput:
    """Build the error for a revision without a draft, with the time of its next one.

    A stage has drafts of its candidate only, which passes its `after` or is still in progress.
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


class VariantSelection(Value):
    """Variants that a promotion or an approval covers, of those that were requested."""

    variants: tuple[RenderedVariant, ...]
    has_conflicts: bool = False  # drafts with undecided merge conflicts are among them
    note: str = ""  # the variants left out, the reason, and the remedy


def select_decided(
    item: PolicyResult, variants: Sequence[RenderedVariant], verb: str, *, accept: bool
) -> VariantSelection:
    """Select the variants whose drafts have no undecided merge conflicts.

    With `accept` all variants are selected. `verb` is the action that the others miss:
    "approved" or "published". Raises Stopped if no variant remains.
    """
    undecided = item.undecided_conflicts
    with_conflicts = [variant for variant in variants if undecided.get(variant.spec.name, 0)]
    if accept or not with_conflicts:
        return VariantSelection(tuple(variants), bool(with_conflicts))
    names = [variant.spec.name for variant in with_conflicts]
    have, are = ("has", "is") if len(with_conflicts) == 1 else ("have", "are")
    # An error and not a note: with all variants left out, nothing that was asked for happens.
    if len(with_conflicts) == len(variants):
        raise Stopped(
            f"not {verb}: {pluralize(len(with_conflicts), 'variant')} {have} undecided"
            f" merge conflicts: {format_names(names)}",
            reason=Reason.MERGE_CONFLICT,
            remedy=_format_remedy(item, names[0]),
        )
    note = (
        f"{len(with_conflicts)} of {pluralize(len(variants), 'variant')} {have} undecided merge"
        f" conflicts and {are} not {verb}: {format_names(names)}. {_format_remedy(item, names[0])}"
    )
    without_conflicts = tuple(variant for variant in variants if variant.spec.name not in names)
    return VariantSelection(without_conflicts, note=note)


def _format_remedy(item: PolicyResult, name: str) -> str:
    option = f" --variant {name}" if item.resolved_policy.upstream_policy is not None else ""
    return (
        f"Run `fanout diff {name}`; then commit to the draft, run `fanout resolve"
        f" {item.resolved_policy.name}{option} --reason WHY`, or add{option} --accept-conflicts to"
        " a promotion"
    )
