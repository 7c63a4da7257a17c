"""Builder of stage tallies: the state of publications by their checks and the clock.

draft → … → published → (verification passes, and stays passed for minReady) ready, or
failed. A failure by the clock alone can be reversed: a later answer for the same
publication counts. (Design §6.)
"""

from collections.abc import Iterable
from datetime import datetime

from fanout.api.gate_vocabulary import CheckMethod, OverridableGate, VariantState, Verdict
from fanout.api.results import CheckAnswer, CheckResult, Hold
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions, spec_suspension_hold
from fanout.gates.evidence_index import EvidenceIndex
from fanout.gates.gate_facts import Publication, VariantFacts
from fanout.gates.gate_rules import CheckRule, StageRule
from fanout.gates.machine_checks import apply_timeout, fold_readings, stale_result
from fanout.gates.record_facts import DecisionFacts
from fanout.gates.rollout_deadlines import apply_rollout_deadlines
from fanout.gates.stage_tally import StageTally, TalliedVariant
from fanout.values import replace


class TallyBuilder:
    """Builds the tallies of one policy's stages at one instant."""

    def __init__(
        self,
        evidence: EvidenceIndex,
        active_decisions: ActiveDecisions,
        suspended: Hold | None,
        now: datetime,
    ) -> None:
        self._evidence = evidence
        self._active_decisions = active_decisions
        self._suspended = suspended
        self._now = now

    def build(self, stage_rule: StageRule, variants: Iterable[VariantFacts]) -> StageTally:
        """Build the tally of a stage from its variants, sorted by name."""
        suspended = self._suspended or self._active_decisions.stage_suspended(stage_rule.name)
        if suspended is None and stage_rule.suspended:
            suspended = spec_suspension_hold(f"stage {stage_rule.name}", gate_wording.AUTHOR)
        tally = StageTally(
            stage_rule,
            suspended,
            self._active_decisions,
            last_withdrawal=self._evidence.withdrawals.get(stage_rule.name),
        )
        for variant_facts in variants:
            tally.add(self._tally_variant(stage_rule, variant_facts, suspended))
        return tally

    def _tally_variant(
        self, stage_rule: StageRule, variant_facts: VariantFacts, suspended: Hold | None
    ) -> TalliedVariant:
        suspended = suspended or self._active_decisions.variant_suspended(variant_facts.name)
        if suspended is None and variant_facts.suspended:
            label, owner = f"variant {variant_facts.name}", "the owner of the variant"
            suspended = spec_suspension_hold(label, owner)
        publication = variant_facts.published
        if publication is None:
            return TalliedVariant(variant_facts, None, (), suspended)
        # A reverted publication is no longer on the branch, so its checks would judge something
        # else.
        if publication.reverted is not None:
            return TalliedVariant(variant_facts, VariantState.HELD, (), suspended)
        retried = self._active_decisions.retried_at(
            stage_rule.name, variant_facts.name, publication.revision
        )
        answers: list[CheckAnswer] = []
        checks = tuple(
            [
                self._evaluate_check(stage_rule, check_rule, variant_facts, retried, answers)
                for check_rule in stage_rule.verification
            ]
        )
        clock_start = publication.at if retried is None else max(publication.at, retried)
        # Most publications have passed everything; overrides and timeouts can only matter to the
        # others.
        if any(check_result.verdict is not Verdict.PASSED for check_result in checks):
            overridden_checks = self._apply_overrides(
                stage_rule.name, variant_facts.name, publication, checks
            )
            checks = tuple(
                apply_timeout(check_rule.spec.timeout, check_result, clock_start, self._now)
                for check_rule, check_result in zip(
                    stage_rule.verification, overridden_checks, strict=True
                )
            )
        variant = TalliedVariant(
            variant_facts, derive_state(checks), checks, suspended, answers=tuple(answers)
        )
        return apply_rollout_deadlines(stage_rule, variant, publication, clock_start, self._now)

    def _evaluate_check(
        self,
        stage_rule: StageRule,
        check_rule: CheckRule,
        variant_facts: VariantFacts,
        retried: datetime | None,
        answers: list[CheckAnswer],
    ) -> CheckResult:
        publication = variant_facts.published
        assert publication is not None, "only a published variant is verified"
        if check_rule.method is not CheckMethod.REPORT:
            # A Retry asks again: a failure from before it is no answer any more.
            prior_answers = [it for it in variant_facts.answers if not is_retried(it, retried)]
            check_result, answer = fold_readings(
                check_rule, publication, variant_facts.readings, prior_answers, self._now
            )
            answers += [answer] if answer is not None else []
            return check_result
        check_result = self._evidence.evaluate(
            stage_rule.name, check_rule.name, variant_facts.name, publication, retried
        )
        if check_rule.spec.fresh_for is None or check_result.verdict is not Verdict.PASSED:
            return check_result
        recorded_answer = CheckAnswer(
            check_rule.name,
            publication.digest,
            check_result.verdict,
            check_result.at or publication.at,
        )
        assert check_result.latest is not None, "a report has an instant"
        # Freshness is asked of an answer until it has counted once. From then on it is on record,
        # and only a failure withdraws it: a ready variant must not become unready because time
        # passes.
        if any(
            (it.check, it.digest) == (recorded_answer.check, recorded_answer.digest)
            for it in variant_facts.answers
        ):
            answers.append(recorded_answer)
            return check_result
        until = check_result.latest + check_rule.spec.fresh_for
        if until <= self._now:
            return stale_result(check_rule, check_result)
        answers.append(recorded_answer)
        return replace(check_result, until=until)

    def _apply_overrides(
        self,
        stage: str,
        variant_name: str,
        publication: Publication,
        checks: tuple[CheckResult, ...],
    ) -> tuple[CheckResult, ...]:
        """Pass the checks that a decision overrides.

        A failure later than the decision stays one.
        """
        # Applied decisions included: the override holds as long as the variant has the revision.
        decisions = self._active_decisions.publish_decisions(
            stage, variant_name, publication.revision
        )
        for decision in reversed(decisions):
            if OverridableGate.VERIFICATION in decision.spec.overrides:
                return tuple(
                    check
                    if check.verdict is Verdict.PASSED
                    or (
                        check.verdict is Verdict.FAILED
                        and check.at is not None
                        and check.at > decision.at
                    )
                    else override_check(check, decision)
                    for check in checks
                )
        return checks


def override_check(check_result: CheckResult, decision: DecisionFacts) -> CheckResult:
    """Return the check as passed by the override of a decision, at the instant of the decision."""
    sentence = f"check {check_result.name} is overridden by {decision.by}"
    return CheckResult(check_result.name, Verdict.PASSED, sentence, decision.at)


def is_retried(answer: CheckAnswer, retried: datetime | None) -> bool:
    """Return whether the answer is a failure from before the last recorded Retry."""
    return answer.verdict is Verdict.FAILED and retried is not None and answer.at <= retried


def derive_state(checks: Iterable[CheckResult]) -> VariantState:
    """Derive the state of a published variant from its checks; without checks it is ready."""
    verdicts = [check.verdict for check in checks]
    if Verdict.FAILED in verdicts:
        return VariantState.FAILED
    return VariantState.VERIFYING if Verdict.PENDING in verdicts else VariantState.READY
