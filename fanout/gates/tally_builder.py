"""Builder of stage tallies: the state of publications by their checks and the clock.

draft → … → published → (verification passes, and stays passed for minReady) ready, or
failed: at progressDeadline, or at the timeout of a pending check. A failure by the clock
alone can be reversed: a later answer for the same publication counts (docs/concepts/rollouts.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import CheckMethod, OverridableGate, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckAnswer, CheckResult, Hold
from fanout.gates import gate_wording
from fanout.gates.active_decisions import ActiveDecisions, spec_suspension_hold
from fanout.gates.check_evaluation import (
    apply_freshness,
    apply_timeout,
    fold_readings,
    is_retried,
    override_check,
)
from fanout.gates.evidence_index import EvidenceIndex
from fanout.gates.gate_facts import Publication, VariantFacts
from fanout.gates.gate_rules import CheckRule, StageRule
from fanout.gates.record_facts import find_next
from fanout.gates.stage_tally import StageTally, TalliedVariant


@dataclass(slots=True)
class TallyBuilder:
    """Builds the tallies of one policy's stages at one instant."""

    _evidence: EvidenceIndex
    _active_decisions: ActiveDecisions
    _suspended: Hold | None  # the whole policy
    _now: datetime

    def build(self, stage_rule: StageRule, variants: Iterable[VariantFacts]) -> StageTally:
        """Build the tally of a stage from its variants, sorted by name."""
        suspended = self._suspended or self._active_decisions.find_suspension(
            "stage", stage_rule.name
        )
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
        suspended = suspended or self._active_decisions.find_suspension(
            "variant", variant_facts.name
        )
        if suspended is None and variant_facts.suspended:
            label, owner = f"variant {variant_facts.name}", "the owner of the variant"
            suspended = spec_suspension_hold(label, owner)
        if (publication := variant_facts.published) is None:
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
            # Applied decisions included: an override holds as long as the variant has the revision.
            decisions = self._active_decisions.publish_decisions(
                stage_rule.name, variant_facts.name, publication.revision
            )
            overriding = [
                it for it in decisions if OverridableGate.VERIFICATION in it.spec.overrides
            ]
            for decision in overriding[-1:]:
                # A check that failed later than the decision stays failed.
                checks = tuple(
                    it
                    if it.verdict is Verdict.PASSED
                    or (it.verdict is Verdict.FAILED and it.at is not None and it.at > decision.at)
                    else override_check(it, decision)
                    for it in checks
                )
            checks = tuple(
                apply_timeout(rule.spec.timeout, check_result, clock_start, self._now)
                for rule, check_result in zip(stage_rule.verification, checks, strict=True)
            )
        verdicts = [check.verdict for check in checks]
        state = VariantState.VERIFYING if Verdict.PENDING in verdicts else VariantState.READY
        state = VariantState.FAILED if Verdict.FAILED in verdicts else state
        variant = TalliedVariant(variant_facts, state, checks, suspended, answers=tuple(answers))
        _apply_rollout_deadlines(stage_rule, variant, publication, clock_start, self._now)
        return variant

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
        # Freshness is asked of an answer until it has counted once. From then on it is on record,
        # and only a failure withdraws it: a ready variant must not become unready because time
        # passes.
        if any(
            (it.check, it.digest) == (recorded_answer.check, recorded_answer.digest)
            for it in variant_facts.answers
        ):
            answers.append(recorded_answer)
            return check_result
        fresh_result = apply_freshness(check_rule, check_result, self._now)
        answers += [recorded_answer] if fresh_result.verdict is Verdict.PASSED else []
        return fresh_result


def _apply_rollout_deadlines(
    stage_rule: StageRule,
    variant: TalliedVariant,
    publication: Publication,
    clock_start: datetime,
    now: datetime,
) -> None:
    """Apply minReady, progressDeadline and timeouts since a publication or a later Retry."""
    rollout = stage_rule.rollout
    if variant.state is VariantState.READY and (ready_time := rollout.ready_time):
        since = max([publication.at, *(check.at for check in variant.checks if check.at)])
        until = since + ready_time
        if until > now:
            variant.state = VariantState.VERIFYING
            variant.next_change_at = variant.ready_at = until
            duration = format_duration(ready_time)
            sentence = f"checks passed; they must stay so for {duration} (minReady)"
            actor = gate_wording.TIME_ALONE
            variant.holds = (Hold(Reason.MIN_READY_RUNNING, sentence, actor, since, until),)
        return
    if variant.state not in (VariantState.VERIFYING, VariantState.FAILED):
        return
    # When all checks will have passed if nobody reports anything more, or None. Of a failed variant
    # too: a failure by the clock is reversed by an answer that is still to count.
    checks, passes_at = variant.checks, None
    if all(it.verdict is Verdict.PASSED or it.passes_at is not None for it in checks):
        instants = [it.at if it.verdict is Verdict.PASSED else it.passes_at for it in checks]
        passes_at = max((at for at in instants if at is not None), default=None)
    if passes_at is not None:
        variant.ready_at = max(publication.at, passes_at) + rollout.ready_time
    deadline = rollout.progress_deadline
    if variant.state is VariantState.FAILED:
        pass
    elif deadline is not None and clock_start + deadline <= now:
        variant.state = VariantState.FAILED
        sentence = (
            f"not ready within {format_duration(deadline)} (progressDeadline); a later pass"
            " still counts"
        )
        since, actor = clock_start + deadline, gate_wording.PUBLICATION_OPERATOR
        variant.holds = (Hold(Reason.DEADLINE_EXCEEDED, sentence, actor, since),)
    else:
        # Verification takes too long as a whole, or one of its checks does. The variant does not
        # fail if all of them pass earlier.
        limits = [deadline] + [
            check_rule.spec.timeout
            for check_rule, check_result in zip(stage_rule.verification, checks, strict=True)
            if check_result.verdict is Verdict.PENDING
        ]
        fails_at = find_next((clock_start + it for it in limits if it is not None), now)
        if fails_at is not None and (passes_at is None or fails_at < passes_at):
            variant.fails_at = fails_at
    variant.next_change_at = find_next([variant.fails_at, passes_at], now)
