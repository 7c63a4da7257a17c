"""Effects of records: whether each counts now, and if not, why.

The gates ask which records count for a draft or a publication; whoever recorded something asks
the reverse. A record counts if it does so for any variant.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fanout.api.gate_vocabulary import Action, CheckMethod
from fanout.api.reasons import Reason
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.gates.active_decisions import ActiveDecisions, DecisionStatus
from fanout.gates.approval_index import ApprovalEffect, ApprovalIndex, find_revoked
from fanout.gates.candidate_choice import RevisionAges
from fanout.gates.check_evaluation import build_reported_draft
from fanout.gates.evidence_index import EvidenceEffect, EvidenceIndex
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, CheckRule, StageRule
from fanout.gates.gate_wording import format_names, label_stage
from fanout.gates.record_facts import (
    ApprovalFacts,
    DecisionFacts,
    EvidenceFacts,
    is_from_the_future,
)
from fanout.groups import group_pairs
from fanout.values import Value


class RecordEffect(Value):
    """Effect of a record now; `reason` is EFFECTIVE if it counts."""

    reason: Reason
    message: str

    @property
    def is_effective(self) -> bool:
        """True if the record counts."""
        return self.reason is Reason.EFFECTIVE


WITHDRAWN = RecordEffect(Reason.WITHDRAWN, "a later record withdrew it")
WITHDRAWS = RecordEffect(Reason.APPLIED, "it withdrew an earlier record")
_EXPIRED = RecordEffect(Reason.EXPIRED, "it has expired")
_AHEAD = RecordEffect(
    Reason.FROM_THE_FUTURE,
    "it is dated more than five minutes in the future, and does not count yet",
)
# As far as the status of a decision tells.
EFFECT_BY_STATUS: Mapping[DecisionStatus, RecordEffect] = {
    DecisionStatus.AHEAD: _AHEAD,
    DecisionStatus.ACTIVE: RecordEffect(Reason.EFFECTIVE, "the record is active"),
    DecisionStatus.APPLIED: RecordEffect(
        Reason.APPLIED, "the decision was carried out, or a later one took its place"
    ),
    DecisionStatus.WITHDRAWN: WITHDRAWN,
    DecisionStatus.EXPIRED: _EXPIRED,
}
_OF_APPROVALS: Mapping[ApprovalEffect, RecordEffect] = {
    ApprovalEffect.EXPIRED: _EXPIRED,
    ApprovalEffect.UNKNOWN_AUTHOR: RecordEffect(
        Reason.OWN_CHANGE,
        "the approver may have changed the draft: the addresses of its commits are not in"
        " PromotionPolicy.approvers",
    ),
    ApprovalEffect.OWN_CHANGE: RecordEffect(
        Reason.OWN_CHANGE,
        "the approver changed the draft, and own changes cannot be approved"
        " (PromotionPolicy.requiresSeparation)",
    ),
    ApprovalEffect.AHEAD: _AHEAD,
    ApprovalEffect.COUNTS: RecordEffect(Reason.EFFECTIVE, "the approval counts for an open draft"),
}
_REMOVAL_COUNTS = RecordEffect(
    Reason.EFFECTIVE, "the approval counts for a branch that removes packages"
)
_OF_EVIDENCE: Mapping[EvidenceEffect, RecordEffect] = {
    EvidenceEffect.EARLY: RecordEffect(
        Reason.RECORDED_EARLY,
        "it was recorded before its subject was drafted or published; report the check again",
    ),
    EvidenceEffect.SUPERSEDED: RecordEffect(
        Reason.SUPERSEDED, "a later report of the same reporter, or a retry, took its place"
    ),
    EvidenceEffect.AHEAD: _AHEAD,
    EvidenceEffect.COUNTS: RecordEffect(Reason.EFFECTIVE, "the evidence counts for its check"),
}


class RecordEvaluator:
    """Evaluator of the records of one policy, as of one evaluation of it."""

    def __init__(
        self,
        facts: PolicyFacts,
        evaluation: PolicyEvaluation,
        removals: Sequence[VariantFacts] = (),
    ) -> None:
        """Evaluate by facts and result; `removals` have the branch that removes them as draft."""
        self._facts = facts
        self._removals = removals
        self._evaluation = evaluation
        self._stages = {rule.name: rule for rule in facts.stages}
        self._ages = RevisionAges(facts.revisions)
        self._decisions = ActiveDecisions(facts.records.decisions, facts.now, facts.variants)
        self._variants = group_pairs((it.stage, it) for it in facts.variants)

    # ---- decisions -----------------------------------------------------------------------------

    def evaluate_decision(self, decision: DecisionFacts, status: DecisionStatus) -> RecordEffect:
        """Return the effect of a decision that a gate reads, which has this status."""
        if status is DecisionStatus.STALE:
            sentence = (
                f"the drafts of {decision.revision} that it covers were rewritten; decide again"
            )
            return RecordEffect(Reason.STALE, sentence)
        if status is DecisionStatus.ACTIVE:
            problem = self._find_unknown(decision.spec.stage, decision.spec.variants)
            if problem is not None:
                return problem
            if decision.spec.action is Action.PUBLISH:
                subjects = self._list_subjects(decision.spec)
                evaluations = self._evaluation.variants
                # What the variants are to have, and what they have.
                revisions = {
                    evaluations[it.name].candidate for it in subjects if it.name in evaluations
                }
                revisions |= {it.published.revision for it in subjects if it.published is not None}
                if subjects and decision.revision not in revisions:
                    return self._describe_candidate(decision.spec.stage, decision.revision)
        return EFFECT_BY_STATUS[status]

    def _list_subjects(self, spec: ApprovalSpec | DecisionSpec) -> list[VariantFacts]:
        """List the variants that a record about a stage, or some of its variants, is about."""
        return [
            it
            for it in self._variants.get(spec.stage, ())
            if not spec.variants or it.name in spec.variants
        ]

    def _describe_candidate(self, stage: str, revision: str) -> RecordEffect:
        evaluation = self._evaluation.stages.get(stage)
        candidate = evaluation.candidate if evaluation is not None else ""
        other = f"its candidate is {candidate}" if candidate else "it has no candidate"
        sentence = f"{label_stage(stage)} has no draft of {revision}: {other}"
        return RecordEffect(Reason.DECISION_WAITS, sentence)

    def _find_unknown(self, stage: str, variants: Iterable[str]) -> RecordEffect | None:
        """Return the effect of a record about a stage or variants that do not exist."""
        if stage not in self._stages and stage:
            return RecordEffect(Reason.NOT_FOUND, f"the policy has no stage {stage}")
        present = self._variants.get(stage, ()) if stage in self._stages else self._facts.variants
        if (names := set(variants)) and names.isdisjoint(it.name for it in present):
            sentence = f"none of its variants is in {label_stage(stage)}"
            return RecordEffect(Reason.NOT_FOUND, sentence)
        return None

    # ---- approvals -----------------------------------------------------------------------------

    def evaluate_approvals(self) -> Mapping[str, RecordEffect]:
        """Return the effect of each approval on record, by its name."""
        facts = self._facts
        approvals = facts.records.approvals
        revoked = find_revoked(approvals, facts.stages)
        # The best effect of each approval on any draft or removal.
        effects: dict[str, ApprovalEffect] = {}
        index = ApprovalIndex(approvals, facts.stages, facts.now, self._decisions)
        for stage_rule in facts.stages:
            for approval_rule in stage_rule.approvals:
                removals = (it for it in self._removals if it.stage == stage_rule.name)
                for variant in (*self._variants.get(stage_rule.name, ()), *removals):
                    if variant.draft is None:
                        continue
                    for _, it, effect in index.find_effects(approval_rule, variant, variant.draft):
                        effects[it.name] = max(effect, effects.get(it.name, effect))
        result: dict[str, RecordEffect] = {}
        earlier: set[str] = set()
        for approval in approvals:
            earlier.add(approval.name)
            if (revokes := approval.spec.revokes) and revokes not in earlier:
                result[approval.name] = effect_of_unknown_record(revokes)
            elif revokes in revoked:
                result[approval.name] = RecordEffect(Reason.APPLIED, "it revoked an approval")
            elif revokes:
                sentence = (
                    f"{approval.by} is neither the author of {revokes} nor an approver of its check"
                )
                result[approval.name] = RecordEffect(Reason.NOT_ENTITLED, sentence)
            elif approval.name in revoked:
                result[approval.name] = WITHDRAWN
            elif approval.name in effects:
                effect = effects[approval.name]
                is_counted = effect is ApprovalEffect.COUNTS and not approval.spec.revision
                result[approval.name] = _REMOVAL_COUNTS if is_counted else _OF_APPROVALS[effect]
            else:
                result[approval.name] = self._explain_approval(approval)
        return result

    def _explain_approval(self, approval: ApprovalFacts) -> RecordEffect:
        """Return why an approval is about no draft, or its author must not approve it."""
        spec = approval.spec
        if (problem := self._find_unknown(spec.stage, spec.variants)) is not None:
            return problem
        rules = self._stages[spec.stage].approvals if spec.stage in self._stages else ()
        if (rule := next((it for it in rules if it.name == spec.check), None)) is None:
            return _effect_of_unknown_check(spec, "approval")
        if rule.find_approver(approval.by, approval.groups) is None:
            subject = format_names(rule.groups) or "any group"
            sentence = f"{approval.by} is not in {subject} (PromotionPolicy.approvers)"
            return RecordEffect(Reason.NOT_ENTITLED, sentence)
        if is_from_the_future(approval.at, self._facts.now):
            return _OF_APPROVALS[ApprovalEffect.AHEAD]
        if spec.revision:
            return self._explain_drafts(approval, spec.revision)
        if any(it.stage == spec.stage for it in self._removals):
            sentence = (
                f"the branch that removes packages of {label_stage(spec.stage)} has another tree"
                " than the approval names; approve it again"
            )
            return RecordEffect(Reason.STALE, sentence)
        sentence = f"no branch removes packages of {label_stage(spec.stage)} any more"
        return RecordEffect(Reason.APPLIED, sentence)

    def _explain_drafts(self, approval: ApprovalFacts, revision: str) -> RecordEffect:
        stage, subjects = approval.spec.stage, self._list_subjects(approval.spec)
        published_since = {
            it.published.revision
            for it in subjects
            if it.published is not None and it.published.at >= approval.at
        }
        if revision in published_since:
            return RecordEffect(Reason.APPLIED, "the drafts that it approved are published")
        if any(it.draft is not None and it.draft.revision == revision for it in subjects):
            sentence = (
                f"{label_stage(stage)} has other drafts of {revision} than those that it"
                " approves; approve them again"
            )
            return RecordEffect(Reason.STALE, sentence)
        if any(self._ages.is_older(revision, it) for it in published_since):
            sentence = "the drafts that it approved were published, or a later revision was instead"
            return RecordEffect(Reason.APPLIED, sentence)
        return self._describe_candidate(stage, revision)

    # ---- evidence ------------------------------------------------------------------------------

    def evaluate_evidence(self) -> Mapping[str, RecordEffect]:
        """Return the effect of each piece of evidence on record, by its name."""
        facts = self._facts
        # The best effect of evidence on any publication or draft.
        best: dict[str, EvidenceEffect] = {}
        index = EvidenceIndex(facts.records.evidence, facts.now)
        outdated: dict[str, bool] = {}
        shared: set[tuple[object, ...]] = set()
        for check in _list_report_checks(facts.stages):
            stage, rule, fresh_for = check.stage, check.rule, check.rule.spec.fresh_for
            for variant in self._variants.get(stage, ()):
                subject, draft = variant.published, variant.draft
                if check.is_of_draft:
                    subject = build_reported_draft(variant, draft, facts.now) if draft else None
                if subject is None:
                    continue
                retried = self._decisions.retried_at(stage, variant.name, subject.revision)
                key = (check, subject.revision, subject.at, subject.last_evidence, retried)
                if index.is_shared(stage, rule.name, variant.name):
                    if key in shared:
                        continue
                    shared.add(key)
                for evidence, effect in index.find_effects(
                    stage, rule.name, variant.name, subject, retried, drafted=check.is_of_draft
                ):
                    best[evidence.name] = max(effect, best.get(evidence.name, effect))
                    # Too old (`freshFor`), and has not counted before.
                    is_outdated = (
                        fresh_for is not None
                        and evidence.at + fresh_for <= facts.now
                        and (
                            check.is_of_draft
                            or (rule.name, subject.digest)
                            not in {(it.check, it.digest) for it in variant.answers}
                        )
                    )
                    outdated[evidence.name] = is_outdated and outdated.get(evidence.name, True)
        effects = {
            name: _EXPIRED
            if effect is EvidenceEffect.COUNTS and outdated[name]
            else _OF_EVIDENCE[effect]
            for name, effect in best.items()
        }
        return {
            it.name: WITHDRAWN
            if it.withdrawn
            else effects.get(it.name) or self._explain_evidence(it)
            for it in facts.records.evidence
        }

    def _explain_evidence(self, evidence: EvidenceFacts) -> RecordEffect:
        """Return why evidence is about nothing that a check asks for."""
        spec = evidence.spec
        if (problem := self._find_unknown(spec.stage, spec.variants)) is not None:
            return problem
        checks = [
            it
            for it in _list_report_checks(self._facts.stages)
            if (it.stage, it.rule.name) == (spec.stage, spec.check)
        ]
        if not checks:
            return _effect_of_unknown_check(spec, "report")
        if is_from_the_future(evidence.at, self._facts.now):
            return _OF_EVIDENCE[EvidenceEffect.AHEAD]
        if any(it.is_of_draft for it in checks) and any(
            it.published is not None
            and it.published.revision == spec.revision
            and it.published.at >= evidence.at
            for it in self._variants.get(spec.stage, ())
        ):
            return RecordEffect(Reason.APPLIED, "the draft that it was about is published")
        subject = spec.revision or f"a package as in commit {(spec.commit or '')[:12]}"
        sentence = f"no variant of {label_stage(spec.stage)} has {subject} now"
        return RecordEffect(Reason.WRONG_REVISION, sentence)


def effect_of_unknown_record(name: str) -> RecordEffect:
    """Return the effect of a withdrawal or revocation of what is not on record before it."""
    sentence = f"no record {name} that it could withdraw or revoke is on record before it"
    return RecordEffect(Reason.NOT_FOUND, sentence)


def _effect_of_unknown_check(spec: ApprovalSpec | EvidenceSpec, method: str) -> RecordEffect:
    sentence = f"{label_stage(spec.stage)} has no check {spec.check} by {method}"
    return RecordEffect(Reason.NOT_FOUND, sentence)


class _ReportCheck(Value):
    stage: str
    rule: CheckRule
    is_of_draft: bool  # required before publication


def _list_report_checks(stage_rules: Iterable[StageRule]) -> Iterator[_ReportCheck]:
    for stage_rule in stage_rules:
        for is_of_draft, rules in ((False, stage_rule.verification), (True, stage_rule.requires)):
            for rule in rules:
                if not isinstance(rule, ApprovalRule) and rule.method is CheckMethod.REPORT:
                    yield _ReportCheck(stage_rule.name, rule, is_of_draft)
