"""Machine checks: folds the readings of this pass into the answers on record.

A reading without an answer (unreachable, missing, about something older) holds while an answer is
awaited and changes nothing once one was given; only *failed* withdraws (docs/concepts/checks.md).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import Verdict
from fanout.api.reasons import Reason
from fanout.api.results import CheckAnswer, CheckResult
from fanout.gates import gate_wording
from fanout.gates.gate_facts import CheckReading, Publication
from fanout.gates.gate_rules import CheckRule
from fanout.gates.gate_wording import append_reason
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


def apply_freshness(
    check_rule: CheckRule, check_result: CheckResult, answer: CheckAnswer | None, now: datetime
) -> tuple[CheckResult, CheckAnswer | None]:
    """Return the result of a check before publication, whose answer must be fresh."""
    if check_rule.spec.fresh_for is None or answer is None or answer.verdict is not Verdict.PASSED:
        return check_result, answer
    until = answer.at + check_rule.spec.fresh_for
    if now < until:
        return replace(check_result, until=until), answer
    # Dropped from the record, so that the next reading counts as a new answer.
    return stale_result(check_rule, check_result), None


def stale_result(check_rule: CheckRule, check_result: CheckResult) -> CheckResult:
    """Return the result of a check whose answer is older than `freshFor`."""
    assert check_rule.spec.fresh_for is not None
    sentence = (
        f"{check_result.message}; the answer is older than"
        f" {format_duration(check_rule.spec.fresh_for)} (freshFor)"
    )
    return _pending_result(check_rule, sentence, Reason.ANSWER_STALE)


def apply_timeout(
    timeout: timedelta | None,
    check_result: CheckResult,
    clock_start: datetime,
    now: datetime,
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
