"""Checks that a stage requires of a draft before publication (`requires`).

Approvals and reports count for the draft's tree, answers of machines for its digest. A check that
fails makes the variant failed; one that is pending holds (docs/concepts/checks.md).
"""

from collections.abc import Sequence
from datetime import datetime

from fanout.api.gate_vocabulary import CheckMethod, OverridableGate, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckAnswer, CheckResult, Hold
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.evidence_index import EvidenceIndex
from fanout.gates.gate_facts import DraftFacts, Publication, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, StageRule
from fanout.gates.machine_checks import apply_freshness, apply_timeout, fold_readings, stale_result
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.tally_builder import is_retried, override_check
from fanout.values import replace


class RequiredChecks:
    """Evaluates the required checks of drafts."""

    def __init__(
        self,
        evidence: EvidenceIndex,
        approvals: ApprovalIndex,
        active_decisions: ActiveDecisions,
        now: datetime,
    ) -> None:
        self._evidence = evidence
        self._approvals = approvals
        self._active_decisions = active_decisions
        self._now = now

    def evaluate(
        self,
        stage_rule: StageRule,
        variant_facts: VariantFacts,
        draft: DraftFacts,
        decisions: Sequence[DecisionFacts],
    ) -> tuple[tuple[CheckResult, ...], tuple[CheckAnswer, ...]]:
        """Return the result of each required check, and the machine answers to keep on record."""
        if not stage_rule.requires:
            return (), ()
        name, digest = variant_facts.name, draft.digest
        retried = self._active_decisions.retried_at(stage_rule.name, name, draft.revision)
        publication = _as_published(variant_facts, draft, self._now)
        check_results: list[CheckResult] = []
        answers: list[CheckAnswer] = []
        for check_rule in stage_rule.requires:
            if isinstance(check_rule, ApprovalRule):
                timeout = check_rule.timeout
                check_result = self._approvals.evaluate(check_rule, variant_facts, draft)
            elif check_rule.method is CheckMethod.REPORT:
                timeout, fresh_for = check_rule.spec.timeout, check_rule.spec.fresh_for
                written = _as_written(variant_facts, publication)
                check_result = self._evidence.evaluate(
                    stage_rule.name, check_rule.name, name, written, retried, drafted=True
                )
                if fresh_for is not None and check_result.verdict is Verdict.PASSED:
                    assert check_result.latest is not None, "a report has an instant"
                    until = check_result.latest + fresh_for
                    check_result = (
                        stale_result(check_rule, check_result)
                        if until <= self._now
                        else replace(check_result, until=until)
                    )
            else:
                timeout = check_rule.spec.timeout
                # Recorded answers are about the digest of a draft, and a status about its tree: the
                # digest, which is of inputs, stays the same where a person commits to the draft,
                # and a recorded answer would outlive the content that it is about.
                is_status = check_rule.method is CheckMethod.COMMIT_STATUS
                subject = publication.tree if is_status else digest
                prior_answers = [
                    replace(it, digest=digest)
                    for it in variant_facts.answers
                    if it.digest == subject and not is_retried(it, retried)
                ]
                check_result, answer = fold_readings(
                    check_rule, publication, variant_facts.readings, prior_answers, self._now
                )
                check_result, answer = apply_freshness(check_rule, check_result, answer, self._now)
                answers += [replace(answer, digest=subject)] if answer is not None else []
            # The timeout runs from the release: before it, nobody was asked for an answer.
            grant = variant_facts.find_grant(draft)
            if grant is not None:
                clock_start = grant.at if retried is None else max(grant.at, retried)
                check_result = apply_timeout(timeout, check_result, clock_start, self._now)
            overriding = (it for it in decisions if OverridableGate.REQUIRES in it.spec.overrides)
            if check_result.verdict is not Verdict.PASSED and (decision := next(overriding, None)):
                check_result = override_check(check_result, decision)
            check_results.append(check_result)
        return tuple(check_results), tuple(answers)


def find_early_failure(variant_facts: VariantFacts, checks: Sequence[CheckResult]) -> Hold | None:
    """Return why the variant fails the candidate before publication, or None."""
    if variant_facts.failed is not None:
        return variant_facts.failed
    for it in checks:
        if it.verdict is Verdict.FAILED:
            return Hold(Reason.REQUIRES_FAILED, it.message, it.who, it.at, it.until)
    return None


def _as_published(variant_facts: VariantFacts, draft: DraftFacts, now: datetime) -> Publication:
    """Return the draft as a publication; machines are asked about it from its release on."""
    grant = variant_facts.find_grant(draft)
    at = grant.at if grant is not None else now
    return Publication(draft.revision, draft.digest, draft.tree, at, draft.commits)


def _as_written(variant_facts: VariantFacts, publication: Publication) -> Publication:
    """Return the draft as a publication that reports may be about: from its writing on."""
    written_at = variant_facts.draft.written if variant_facts.draft is not None else None
    # A pipeline tests a draft as soon as it is written, long before its release.
    return publication if written_at is None else replace(publication, at=written_at)


def build_reported_draft(
    variant_facts: VariantFacts, draft: DraftFacts, now: datetime
) -> Publication:
    """Return a draft in the form in which evidence about it is looked up."""
    return _as_written(variant_facts, _as_published(variant_facts, draft, now))
