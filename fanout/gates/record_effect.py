"""Effects of records: whether each counts now, and if not, why.

The gates ask which records count for a draft or a publication; whoever recorded something asks
the reverse. A record counts if it does so for any variant.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from fanout.api.gate_vocabulary import Action, CheckMethod
from fanout.api.reasons import Reason
from fanout.gates import effect_wording as wording
from fanout.gates.active_decisions import ActiveDecisions, DecisionStatus
from fanout.gates.approval_index import ApprovalEffect, ApprovalIndex, find_revoked
from fanout.gates.evaluation_results import PolicyEvaluation
from fanout.gates.evidence_index import EvidenceEffect, EvidenceIndex
from fanout.gates.gate_facts import PolicyFacts, Publication, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, CheckRule, StageRule
from fanout.gates.promotion_order import RevisionAges
from fanout.gates.record_facts import ApprovalFacts, DecisionFacts, EvidenceFacts
from fanout.gates.required_checks import build_reported_draft
from fanout.gates.timestamps import is_from_the_future
from fanout.values import Value


class RecordEffect(Value):
    """Effect of a record now; `reason` is EFFECTIVE if it counts."""

    reason: Reason
    message: str

    @property
    def is_effective(self) -> bool:
        """True if the record counts."""
        return self.reason is Reason.EFFECTIVE


WITHDRAWN = RecordEffect(Reason.WITHDRAWN, wording.WITHDRAWN)
_BY_STATUS: Mapping[DecisionStatus, RecordEffect] = {
    DecisionStatus.AHEAD: RecordEffect(Reason.FROM_THE_FUTURE, wording.FUTURE),
    DecisionStatus.ACTIVE: RecordEffect(Reason.EFFECTIVE, wording.ACTIVE),
    DecisionStatus.APPLIED: RecordEffect(Reason.APPLIED, wording.APPLIED),
    DecisionStatus.WITHDRAWN: WITHDRAWN,
    DecisionStatus.EXPIRED: RecordEffect(Reason.EXPIRED, wording.EXPIRED),
}
_OF_APPROVALS: Mapping[ApprovalEffect, RecordEffect] = {
    ApprovalEffect.EXPIRED: RecordEffect(Reason.EXPIRED, wording.EXPIRED),
    ApprovalEffect.UNKNOWN_AUTHOR: RecordEffect(Reason.OWN_CHANGE, wording.AUTHOR_UNKNOWN),
    ApprovalEffect.OWN_CHANGE: RecordEffect(Reason.OWN_CHANGE, wording.OWN_CHANGE),
    ApprovalEffect.AHEAD: RecordEffect(Reason.FROM_THE_FUTURE, wording.FUTURE),
    ApprovalEffect.COUNTS: RecordEffect(Reason.EFFECTIVE, wording.APPROVES),
}
_OF_EVIDENCE: Mapping[EvidenceEffect, RecordEffect] = {
    EvidenceEffect.EARLY: RecordEffect(Reason.RECORDED_EARLY, wording.EARLY),
    EvidenceEffect.SUPERSEDED: RecordEffect(Reason.SUPERSEDED, wording.SUPERSEDED),
    EvidenceEffect.AHEAD: RecordEffect(Reason.FROM_THE_FUTURE, wording.FUTURE),
    EvidenceEffect.COUNTS: RecordEffect(Reason.EFFECTIVE, wording.COUNTS),
}


class RecordEvaluator:
    """Evaluator of the records of one policy, as of one evaluation of it."""

    def __init__(self, facts: PolicyFacts, evaluation: PolicyEvaluation) -> None:
        """Evaluate by the facts and the result of an evaluation."""
        self._facts = facts
        self._evaluation = evaluation
        self._stages = {rule.name: rule for rule in facts.stages}
        self._ages = RevisionAges(facts.revisions)
        self._decisions = ActiveDecisions(facts.records.decisions, facts.now, facts.variants)
        self._variants: dict[str, list[VariantFacts]] = {}
        for variant in facts.variants:
            self._variants.setdefault(variant.stage, []).append(variant)

    # ---- decisions -----------------------------------------------------------------------------

    def evaluate_decision(self, decision: DecisionFacts, status: DecisionStatus) -> RecordEffect:
        """Return the effect of a decision that a gate reads, which has this status."""
        if status is DecisionStatus.STALE:
            sentence = wording.describe_rewritten_drafts(decision.revision)
            return RecordEffect(Reason.STALE, sentence)
        if status is DecisionStatus.ACTIVE:
            problem = self._find_unknown(decision.spec.stage, decision.spec.variants)
            if problem is not None:
                return problem
            if decision.spec.action is Action.PUBLISH and not self._is_candidate(decision):
                return self._describe_candidate(decision.spec.stage, decision.revision)
        return effect_of_status(status)

    def _is_candidate(self, decision: DecisionFacts) -> bool:
        """Return whether the decision is about what a variant is to have, or has."""
        subjects = [
            it
            for it in self._variants.get(decision.spec.stage, ())
            if not decision.spec.variants or it.name in decision.spec.variants
        ]
        evaluations = self._evaluation.variants
        revisions = {evaluations[it.name].candidate for it in subjects if it.name in evaluations}
        revisions |= {it.published.revision for it in subjects if it.published is not None}
        return not subjects or decision.revision in revisions

    def _describe_candidate(self, stage: str, revision: str) -> RecordEffect:
        evaluation = self._evaluation.stages.get(stage)
        candidate = evaluation.candidate if evaluation is not None else ""
        sentence = wording.describe_other_candidate(stage, revision, candidate)
        return RecordEffect(Reason.DECISION_WAITS, sentence)

    def _find_unknown(self, stage: str, variants: Iterable[str]) -> RecordEffect | None:
        """Return the effect of a record about a stage or variants that do not exist."""
        if stage not in self._stages and stage:
            return RecordEffect(Reason.NOT_FOUND, wording.describe_unknown_stage(stage))
        present = self._variants.get(stage, ()) if stage in self._stages else self._facts.variants
        names = set(variants)
        if names and names.isdisjoint(it.name for it in present):
            return RecordEffect(Reason.NOT_FOUND, wording.describe_unknown_variants(stage))
        return None

    # ---- approvals -----------------------------------------------------------------------------

    def evaluate_approvals(self) -> Mapping[str, RecordEffect]:
        """Return the effect of each approval on record, by its name."""
        approvals = self._facts.records.approvals
        revoked = find_revoked(approvals, self._facts.stages)
        effects = self._find_approval_effects()
        result: dict[str, RecordEffect] = {}
        earlier: dict[str, ApprovalFacts] = {}
        for approval in approvals:
            earlier[approval.name] = approval
            if approval.spec.revokes:
                result[approval.name] = _evaluate_revocation(approval, earlier, revoked)
            elif approval.name in revoked:
                result[approval.name] = WITHDRAWN
            elif approval.name in effects:
                result[approval.name] = _OF_APPROVALS[effects[approval.name]]
            else:
                result[approval.name] = self._explain_approval(approval)
        return result

    def _find_approval_effects(self) -> Mapping[str, ApprovalEffect]:
        """Return the best effect of each approval on any draft, by its name."""
        facts, best = self._facts, dict[str, ApprovalEffect]()
        index = ApprovalIndex(facts.records.approvals, facts.stages, facts.now, self._decisions)
        for stage_rule in facts.stages:
            for approval_rule in stage_rule.approvals:
                for variant in self._variants.get(stage_rule.name, ()):
                    if variant.draft is None:
                        continue
                    effects = index.find_effects(approval_rule, variant, variant.draft)
                    for _, approval, effect in effects:
                        best[approval.name] = max(effect, best.get(approval.name, effect))
        return best

    def _explain_approval(self, approval: ApprovalFacts) -> RecordEffect:
        """Return why an approval is about no draft, or its author must not approve it."""
        spec = approval.spec
        problem = self._find_unknown(spec.stage, spec.variants)
        if problem is not None:
            return problem
        rules = self._stages[spec.stage].approvals if spec.stage in self._stages else ()
        rule = next((it for it in rules if it.name == spec.check), None)
        if rule is None:
            sentence = wording.describe_unknown_check(spec.stage, spec.check, "approval")
            return RecordEffect(Reason.NOT_FOUND, sentence)
        if rule.find_approver(approval.by, approval.groups) is None:
            sentence = wording.describe_not_entitled(approval.by, rule.groups)
            return RecordEffect(Reason.NOT_ENTITLED, sentence)
        if is_from_the_future(approval.at, self._facts.now):
            return _OF_APPROVALS[ApprovalEffect.AHEAD]
        return self._explain_drafts(approval)

    def _explain_drafts(self, approval: ApprovalFacts) -> RecordEffect:
        """Return what became of the drafts that an approval names."""
        spec = approval.spec
        subjects = [
            it
            for it in self._variants.get(spec.stage, ())
            if not spec.variants or it.name in spec.variants
        ]
        if any(
            it.published is not None
            and it.published.revision == spec.revision
            and it.published.at >= approval.at
            for it in subjects
        ):
            return RecordEffect(Reason.APPLIED, wording.APPROVED_PUBLISHED)
        if any(it.draft is not None and it.draft.revision == spec.revision for it in subjects):
            sentence = wording.describe_other_drafts(spec.stage, spec.revision)
            return RecordEffect(Reason.STALE, sentence)
        if any(
            it.published is not None
            and it.published.at >= approval.at
            and self._ages.is_older(spec.revision, it.published.revision)
            for it in subjects
        ):
            return RecordEffect(Reason.APPLIED, wording.APPROVED_EARLIER)
        return self._describe_candidate(spec.stage, spec.revision)

    # ---- evidence ------------------------------------------------------------------------------

    def evaluate_evidence(self) -> Mapping[str, RecordEffect]:
        """Return the effect of each piece of evidence on record, by its name."""
        effects = self._find_evidence_effects()
        return {
            it.name: WITHDRAWN
            if it.withdrawn
            else effects.get(it.name) or self._explain_evidence(it)
            for it in self._facts.records.evidence
        }

    def _find_evidence_effects(self) -> Mapping[str, RecordEffect]:
        """Return the best effect of evidence on any publication or draft, by its name."""
        facts, best = self._facts, dict[str, EvidenceEffect]()
        index = EvidenceIndex(facts.records.evidence, facts.now)
        outdated: dict[str, bool] = {}
        shared: set[tuple[object, ...]] = set()
        for check in _list_report_checks(facts.stages):
            for variant in self._variants.get(check.stage, ()):
                subject = check.find_subject(variant, facts.now)
                if subject is None:
                    continue
                retried = self._decisions.retried_at(check.stage, variant.name, subject.revision)
                key = (check, subject.revision, subject.at, subject.last_evidence, retried)
                if index.is_shared(check.stage, check.rule.name, variant.name):
                    if key in shared:
                        continue
                    shared.add(key)
                effects = index.find_effects(
                    check.stage, check.rule.name, variant.name, subject, retried,
                    drafted=check.is_of_draft,
                )  # fmt: skip
                for evidence, effect in effects:
                    best[evidence.name] = max(effect, best.get(evidence.name, effect))
                    is_outdated = check.is_outdated(variant, subject, evidence, facts.now)
                    outdated[evidence.name] = is_outdated and outdated.get(evidence.name, True)
        return {
            name: RecordEffect(Reason.EXPIRED, wording.EXPIRED)
            if effect is EvidenceEffect.COUNTS and outdated[name]
            else _OF_EVIDENCE[effect]
            for name, effect in best.items()
        }

    def _explain_evidence(self, evidence: EvidenceFacts) -> RecordEffect:
        """Return why evidence is about nothing that a check asks for."""
        spec = evidence.spec
        problem = self._find_unknown(spec.stage, spec.variants)
        if problem is not None:
            return problem
        checks = [
            it
            for it in _list_report_checks(self._facts.stages)
            if (it.stage, it.rule.name) == (spec.stage, spec.check)
        ]
        if not checks:
            sentence = wording.describe_unknown_check(spec.stage, spec.check, "report")
            return RecordEffect(Reason.NOT_FOUND, sentence)
        if is_from_the_future(evidence.at, self._facts.now):
            return _OF_EVIDENCE[EvidenceEffect.AHEAD]
        if any(it.is_of_draft for it in checks) and any(
            it.published is not None
            and it.published.revision == spec.revision
            and it.published.at >= evidence.at
            for it in self._variants.get(spec.stage, ())
        ):
            return RecordEffect(Reason.APPLIED, wording.EVIDENCE_USED)
        subject = spec.revision or f"a package as in commit {(spec.commit or '')[:12]}"
        sentence = wording.describe_other_revision(spec.stage, subject)
        return RecordEffect(Reason.WRONG_REVISION, sentence)


def effect_of_status(status: DecisionStatus) -> RecordEffect:
    """Return the effect of a decision with this status, as far as the status tells."""
    return _BY_STATUS[status]


class _ReportCheck(Value):
    """A check of a stage that people or pipelines report."""

    stage: str
    rule: CheckRule
    is_of_draft: bool  # required before publication

    def find_subject(self, variant: VariantFacts, now: datetime) -> Publication | None:
        """Return what the check is about for a variant, or None if there is nothing yet."""
        if not self.is_of_draft:
            return variant.published
        draft = variant.draft
        return build_reported_draft(variant, draft, now) if draft is not None else None

    def is_outdated(
        self, variant: VariantFacts, subject: Publication, evidence: EvidenceFacts, now: datetime
    ) -> bool:
        """Return whether evidence is too old (`freshFor`) and has not counted before."""
        if self.rule.spec.fresh_for is None or evidence.at + self.rule.spec.fresh_for > now:
            return False
        answered = {(it.check, it.digest) for it in variant.answers}
        return self.is_of_draft or (self.rule.name, subject.digest) not in answered


def _list_report_checks(stage_rules: Iterable[StageRule]) -> Iterator[_ReportCheck]:
    for stage_rule in stage_rules:
        for is_of_draft, rules in ((False, stage_rule.verification), (True, stage_rule.requires)):
            for rule in rules:
                if not isinstance(rule, ApprovalRule) and rule.method is CheckMethod.REPORT:
                    yield _ReportCheck(stage_rule.name, rule, is_of_draft)


def _evaluate_revocation(
    approval: ApprovalFacts, earlier: Mapping[str, ApprovalFacts], revoked: frozenset[str]
) -> RecordEffect:
    """Return the effect of an approval that revokes one of the `earlier` ones."""
    if approval.spec.revokes not in earlier:
        sentence = wording.describe_unknown_record(approval.spec.revokes)
        return RecordEffect(Reason.NOT_FOUND, sentence)
    if approval.spec.revokes not in revoked:
        sentence = wording.describe_revoker(approval.by, approval.spec.revokes)
        return RecordEffect(Reason.NOT_ENTITLED, sentence)
    return RecordEffect(Reason.APPLIED, wording.REVOKES)
