"""What a machine's answers make of a check: readings of this pass, folded into what is on record.

A reading that is none (unreachable, missing, about something older) holds while an answer is waited
for and changes nothing once one was given; only *failed* withdraws. (Design §6, "Checks".)
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from fanout.api.reasons import Reason
from fanout.gates.answer import CheckView
from fanout.gates.facts import Answer, Published, Reading
from fanout.gates.rules import ApprovalRule, CheckRule, Verdict
from fanout.gates.wording import lasting
from fanout.values import replace


class Folded(NamedTuple):
    """How the check stands, and the answer that is to be on record from now on."""

    view: CheckView
    answer: Answer | None


def fold(
    rule: CheckRule,
    about: Published,
    readings: Iterable[Reading],
    answers: Iterable[Answer],
    now: datetime,
) -> Folded:
    """The check of a publication, or of a draft that is written down as one."""
    known = next((it for it in answers if (it.check, it.digest) == (rule.name, about.digest)), None)
    start = about.at + rule.settle if rule.settle else about.at
    if now < start and known is None:
        sentence = f"check {rule.name} is first asked {lasting(start - about.at)} after publication"
        view = _pending(rule, sentence, Reason.CHECK_SETTLING)
        return Folded(replace(view, who="time alone", until=start), None)
    said = next((it for it in readings if (it.check, it.digest) == (rule.name, about.digest)), None)
    told, silence = _told(rule, about, said)
    if told is None or said is None:
        return Folded(_pending(rule, silence) if known is None else _given(known), known)
    if known is None or known.verdict is not told:
        known = Answer(rule.name, about.digest, told, now, said.sentence)
    return Folded(_given(known), known)


def fresh(rule: CheckRule, folded: Folded, now: datetime) -> Folded:
    """The answer of a check that is asked before publication: it counts while it is fresh."""
    view, answer = folded
    if rule.fresh_for is None or answer is None or answer.verdict is not Verdict.PASSED:
        return folded
    end = answer.at + rule.fresh_for
    if now < end:
        return Folded(replace(view, until=end), answer)
    return Folded(stale(rule, view), None)


def stale(rule: CheckRule, view: CheckView) -> CheckView:
    """A check whose answer is older than it may be."""
    assert rule.fresh_for is not None
    sentence = f"{view.sentence}; that is longer ago than the {lasting(rule.fresh_for)} it counts"
    return _pending(rule, sentence, Reason.ANSWER_STALE)


def in_time(
    rule: CheckRule | ApprovalRule, view: CheckView, since: datetime, now: datetime
) -> CheckView:
    """The check, failed when it was waited for too long. Later answers still count."""
    if rule.timeout is None or view.verdict is not Verdict.PENDING:
        return view
    end = since + rule.timeout
    if now < end:
        return replace(view, until=end if view.until is None else min(end, view.until))
    sentence = f"{view.sentence}; it had {lasting(rule.timeout)} to be answered"
    return replace(
        view,
        verdict=Verdict.FAILED,
        sentence=sentence,
        at=end,
        reason=Reason.CHECK_TIMED_OUT,
        until=None,
    )


def _told(rule: CheckRule, about: Published, said: Reading | None) -> tuple[Verdict | None, str]:
    """The verdict that counts, or why none does."""
    if said is None:
        return None, f"check {rule.name} was not asked yet"
    if said.verdict is Verdict.PENDING:
        return None, f"check {rule.name}: {said.sentence}"
    if rule.names_revision and said.seen != about.revision and said.seen not in about.commits:
        seen = said.seen or "no revision"
        return None, f"check {rule.name}: what it tells is of {seen}, not of {about.revision}"
    return said.verdict, ""


def _given(answer: Answer) -> CheckView:
    sentence = f"check {answer.check} {answer.verdict.value}: {answer.sentence}".rstrip(": ")
    if answer.verdict is Verdict.PASSED:
        return CheckView(answer.check, answer.verdict, sentence, answer.at)
    reason, who = Reason.VERIFICATION_FAILED, _WHO
    return CheckView(answer.check, answer.verdict, sentence, answer.at, reason, who)


_WHO = "whoever runs what was published; fanout retry"


def _pending(
    rule: CheckRule, sentence: str, reason: Reason = Reason.VERIFICATION_PENDING
) -> CheckView:
    who = f"what check {rule.name} asks ({rule.way.value})"
    return CheckView(rule.name, Verdict.PENDING, sentence, None, reason, who)
