"""Deadlines of a stage's rollout, applied to its published variants: minReady, progressDeadline.

A variant whose checks have passed is ready once they stayed so for minReady; one that is still
being verified fails at progressDeadline, or at the timeout of a pending check. (Design §6.)
"""

from collections.abc import Iterable
from datetime import datetime

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckResult, Hold
from fanout.gates import gate_wording
from fanout.gates.gate_facts import Publication
from fanout.gates.gate_rules import StageRule
from fanout.gates.stage_tally import TalliedVariant
from fanout.gates.timestamps import find_next


def apply_rollout_deadlines(
    stage_rule: StageRule,
    variant: TalliedVariant,
    publication: Publication,
    clock_start: datetime,
    now: datetime,
) -> TalliedVariant:
    """Apply minReady, progressDeadline and timeouts to the state of a published variant.

    `clock_start`: instant of the publication, or of a later Retry. Returns the variant, changed.
    """
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
    elif variant.state in (VariantState.VERIFYING, VariantState.FAILED):
        # Failed too: a failure by the clock is reversed by an answer that is still to count.
        passes_at = _all_pass_at(variant.checks)
        if passes_at is not None:
            variant.ready_at = max(publication.at, passes_at) + rollout.ready_time
        if variant.state is VariantState.VERIFYING:
            _apply_deadline(stage_rule, variant, clock_start, passes_at, now)
        variant.next_change_at = find_next([variant.fails_at, passes_at], now)
    return variant


def _apply_deadline(
    stage_rule: StageRule,
    variant: TalliedVariant,
    clock_start: datetime,
    passes_at: datetime | None,
    now: datetime,
) -> None:
    """Fail a verifying variant at its deadline, or note when it will fail.

    It does not fail if all of its checks pass earlier, at `passes_at`.
    """
    deadline = stage_rule.rollout.progress_deadline
    if deadline is not None and clock_start + deadline <= now:
        variant.state = VariantState.FAILED
        sentence = (
            f"not ready within {format_duration(deadline)} (progressDeadline); a later pass"
            " still counts"
        )
        since, actor = clock_start + deadline, gate_wording.PUBLICATION_OPERATOR
        variant.holds = (Hold(Reason.DEADLINE_EXCEEDED, sentence, actor, since),)
        return
    # Verification takes too long as a whole, or one of its checks does.
    limits = [deadline] + [
        check_rule.spec.timeout
        for check_rule, check_result in zip(stage_rule.verification, variant.checks, strict=True)
        if check_result.verdict is Verdict.PENDING
    ]
    until = find_next((clock_start + it for it in limits if it is not None), now)
    if until is not None and (passes_at is None or until < passes_at):
        variant.fails_at = until


def _all_pass_at(checks: Iterable[CheckResult]) -> datetime | None:
    """Return when all checks will have passed if nobody reports anything more. None if never."""
    latest: datetime | None = None
    for check in checks:
        at = check.at if check.verdict is Verdict.PASSED else check.passes_at
        if at is None and check.verdict is not Verdict.PASSED:
            return None
        if at is not None and (latest is None or at > latest):
            latest = at
    return latest
