"""Evaluation of checks: answers of machines, and what a stage requires before publication.

The readings of a pass are folded into the answers on record. A reading without an answer
(unreachable, missing, about something older) holds while an answer is awaited and changes nothing
once one was given; only *failed* withdraws.

Of the checks that a stage requires of a draft (`requires`), approvals and reports count for the
draft's tree, answers of machines for its digest. One that fails makes the variant failed; one that
is pending holds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import CheckMethod, OverridableGate, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckAnswer, CheckResult
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.evidence_index import EvidenceIndex
from fanout.gates.gate_facts import CheckReading, DraftFacts, Publication, VariantFacts
from fanout.gates.gate_rules import ApprovalRule, CheckRule, StageRule
from fanout.gates.gate_wording import append_reason
from fanout.gates.record_facts import DecisionFacts
from fanout.values import replace


def fold_readings(
    check_rule: CheckRule,
    publication: Publication,
    readings: Iterable[CheckReading],
    answers: Iterable[CheckAnswer],
    now: datetime,
) -> tuple[CheckResult, CheckAnswer | None]:
    """Fold readings and recorded answers into a check; return the answer to keep as well."""
    recorded_answer = next(
        (it for it in answers if (it.check, it.digest) == (check_rule.name, publication.digest)),
        None,
    )
    until = publication.at + (check_rule.spec.settle or timedelta(0))
    # Right after publication the machine still reports on the previous revision.
    if now < until and recorded_answer is None:
        sentence = (
            f"check {check_rule.name} starts {format_duration(until - publication.at)} after"
            " publication (settle)"
        )
        check_result = _pending_result(check_rule, sentence, Reason.CHECK_SETTLING)
        return replace(check_result, who=gate_wording.TIME_ALONE, until=until), None
    reading = next(
        (it for it in readings if (it.check, it.digest) == (check_rule.name, publication.digest)),
        None,
    )
    if reading is None:
        problem = f"check {check_rule.name} has not been queried yet"
    elif reading.verdict is Verdict.PENDING:
        problem = f"check {check_rule.name}: {reading.message}"
    elif (
        check_rule.names_revision
        and reading.observed_revision != publication.revision
        and reading.observed_revision not in publication.commits
    ):
        problem = (
            f"check {check_rule.name} reports on {reading.observed_revision or 'no revision'}, not"
            f" on {publication.revision}"
        )
    # An equal verdict keeps the recorded instant: minReady and soak start when it was first given.
    elif recorded_answer is None or recorded_answer.verdict is not reading.verdict:
        recorded_answer = CheckAnswer(
            check_rule.name, publication.digest, reading.verdict, now, reading.message
        )
    if recorded_answer is None:
        return _pending_result(check_rule, problem), None
    verdict, at = recorded_answer.verdict, recorded_answer.at
    sentence = append_reason(f"check {check_rule.name} {verdict.value}", recorded_answer.message)
    if verdict is Verdict.PASSED:
        return CheckResult(check_rule.name, verdict, sentence, at), recorded_answer
    reason, actor = Reason.VERIFICATION_FAILED, gate_wording.PUBLICATION_OPERATOR
    return CheckResult(check_rule.name, verdict, sentence, at, reason, actor), recorded_answer


def apply_freshness(check_rule: CheckRule, check_result: CheckResult, now: datetime) -> CheckResult:
    """Return the result of a check whose answer must be fresh: pending if it is too old."""
    fresh_for = check_rule.spec.fresh_for
    if fresh_for is None or check_result.verdict is not Verdict.PASSED:
        return check_result
    answered_at = check_result.latest or check_result.at
    assert answered_at is not None, "an answer has an instant"
    until = answered_at + fresh_for
    if now < until:
        return replace(check_result, until=until)
    limit = f"the answer is older than {format_duration(fresh_for)} (freshFor)"
    return _pending_result(check_rule, f"{check_result.message}; {limit}", Reason.ANSWER_STALE)


def apply_timeout(
    timeout: timedelta | None, check_result: CheckResult, clock_start: datetime, now: datetime
) -> CheckResult:
    """Return the check as failed if pending beyond its `timeout`; later answers still count."""
    if timeout is None or check_result.verdict is not Verdict.PENDING:
        return check_result
    until = clock_start + timeout
    if now < until:
        return replace(check_result, until=min(until, check_result.until or until))
    sentence = f"{check_result.message}; no answer within {format_duration(timeout)} (timeout)"
    return replace(
        check_result,
        verdict=Verdict.FAILED,
        message=sentence,
        at=until,
        reason=Reason.CHECK_TIMED_OUT,
        until=None,
    )


def _pending_result(
    check_rule: CheckRule, sentence: str, reason: Reason = Reason.VERIFICATION_PENDING
) -> CheckResult:
    actor = f"the source of check {check_rule.name} ({check_rule.method.value})"
    return CheckResult(check_rule.name, Verdict.PENDING, sentence, None, reason, actor)


@dataclass(slots=True)
class RequiredChecks:
    """Evaluates the required checks of drafts."""

    _evidence: EvidenceIndex
    _approvals: ApprovalIndex
    _active_decisions: ActiveDecisions
    _now: datetime

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
                timeout = check_rule.spec.timeout
                written = _as_written(variant_facts, publication)
                check_result = self._evidence.evaluate(
                    stage_rule.name, check_rule.name, name, written, retried, drafted=True
                )
                check_result = apply_freshness(check_rule, check_result, self._now)
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
                check_result = apply_freshness(check_rule, check_result, self._now)
                # A stale answer is dropped from the record, so that the next reading counts as a
                # new one.
                if answer is not None and check_result.reason != Reason.ANSWER_STALE:
                    answers.append(replace(answer, digest=subject))
            # The timeout runs from the release: before it, nobody was asked for an answer.
            if (grant := variant_facts.find_grant(draft)) is not None:
                clock_start = grant.at if retried is None else max(grant.at, retried)
                check_result = apply_timeout(timeout, check_result, clock_start, self._now)
            overriding = (it for it in decisions if OverridableGate.REQUIRES in it.spec.overrides)
            if check_result.verdict is not Verdict.PASSED and (decision := next(overriding, None)):
                check_result = override_check(check_result, decision)
            check_results.append(check_result)
        return tuple(check_results), tuple(answers)


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


def override_check(check_result: CheckResult, decision: DecisionFacts) -> CheckResult:
    """Return the check as passed by the override of a decision, at the instant of the decision."""
    sentence = f"check {check_result.name} is overridden by {decision.by}"
    return CheckResult(check_result.name, Verdict.PASSED, sentence, decision.at)


def is_retried(answer: CheckAnswer, retried: datetime | None) -> bool:
    """Return whether the answer is a failure from before the last recorded Retry."""
    return answer.verdict is Verdict.FAILED and retried is not None and answer.at <= retried
