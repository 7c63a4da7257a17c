"""Takes the census: how does what each variant of a stage has published stand?

draft → … → published → (verification passes, and stays so for minReady) ready, or failed. What
fails by the clock alone is live: an answer that comes later for the same publication counts.
(Design §6.)
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from fanout.api.reasons import Reason
from fanout.gates.answer import CheckView, State
from fanout.gates.census import Census, Member
from fanout.gates.checks import EvidenceIndex
from fanout.gates.decisions import Standing, by_spec
from fanout.gates.facts import Answer, Hold, Published, VariantFacts
from fanout.gates.instants import soonest, written
from fanout.gates.machine import fold, in_time, stale
from fanout.gates.records import Override
from fanout.gates.rules import CheckRule, StageRule, Verdict, Way
from fanout.gates.wording import lasting
from fanout.values import replace


class Registrar:
    """Takes the census of stages."""

    def __init__(
        self, evidence: EvidenceIndex, standing: Standing, policy: Hold | None, now: datetime
    ) -> None:
        self._evidence = evidence
        self._standing = standing
        self._policy = policy
        self._now = now

    def take(self, rule: StageRule, variants: Iterable[VariantFacts]) -> Census:
        """The stage with these variants in it; they come in the order of their names."""
        suspended = self._policy or self._standing.stage_suspended(rule.name)
        if suspended is None and rule.suspended:
            suspended = by_spec(f"stage {rule.name}", "the policy's author")
        census = Census(rule, suspended, self._standing)
        for facts in variants:
            census.add(self._member(rule, facts, suspended))
        return census

    def _member(self, rule: StageRule, facts: VariantFacts, stage: Hold | None) -> Member:
        suspended = stage or self._standing.variant_suspended(facts.name)
        if suspended is None and facts.suspended:
            suspended = by_spec(f"variant {facts.name}", "its owner")
        published = facts.published
        if published is None:
            return Member(facts, None, (), suspended)
        if published.undone is not None:
            return Member(facts, State.HELD, (), suspended)
        retried = self._standing.retried(rule.name, facts.name, published.revision)
        answers: list[Answer] = []
        checks = tuple(
            [self._check(rule, check, facts, retried, answers) for check in rule.verification]
        )
        begun = published.at if retried is None else max(published.at, retried)
        if any(check.verdict is not Verdict.PASSED for check in checks):
            lifted_checks = self._lifted(rule.name, facts.name, published, checks)
            checks = tuple(
                in_time(check, view, begun, self._now)
                for check, view in zip(rule.verification, lifted_checks, strict=True)
            )
        member = Member(facts, standing_of(checks), checks, suspended, answers=tuple(answers))
        return self._timed(rule, member, published, begun)

    def _check(
        self,
        rule: StageRule,
        check: CheckRule,
        facts: VariantFacts,
        retried: datetime | None,
        answers: list[Answer],
    ) -> CheckView:
        published = facts.published
        assert published is not None, "verification is about what is published"
        if check.way is not Way.REPORT:
            known = [it for it in facts.answers if not forgotten(it, retried)]
            view, answer = fold(check, published, facts.readings, known, self._now)
            answers += [answer] if answer is not None else []
            return view
        view = self._evidence.answer(rule.name, check.name, facts.name, published, retried)
        if check.fresh_for is None or view.verdict is not Verdict.PASSED:
            return view
        given = Answer(check.name, published.digest, view.verdict, view.at or published.at)
        assert view.last is not None, "what was reported was reported some time"
        if any((it.check, it.digest) == (given.check, given.digest) for it in facts.answers):
            answers.append(given)  # an answer that was given stands
            return view
        end = view.last + check.fresh_for
        if end <= self._now:
            return stale(check, view)
        answers.append(given)
        return replace(view, until=end)

    def _timed(
        self, rule: StageRule, member: Member, published: Published, begun: datetime
    ) -> Member:
        """The state of a publication with what the clock makes of it."""
        rollout = rule.rollout
        if member.state is State.READY and rollout.min_ready:
            since = max([published.at, *(check.at for check in member.checks if check.at)])
            end = since + rollout.min_ready
            if end > self._now:
                member.state, member.wake, member.ready_at = State.VERIFYING, end, end
                member.holds = (_min_ready(rollout.min_ready, since, end),)
        elif member.state in (State.VERIFYING, State.FAILED):
            answered = _answered_at(member.checks)
            if answered is not None:
                member.ready_at = max(published.at, answered) + rollout.min_ready
            if member.state is State.VERIFYING:
                self._wait(rule, member, begun, answered)
            member.wake = soonest([member.fails_at, answered], self._now)
        return member

    def _wait(
        self, rule: StageRule, member: Member, begun: datetime, answered: datetime | None
    ) -> None:
        """What becomes of a member whose checks are not all answered, and are by `answered`."""
        deadline = rule.rollout.progress_deadline
        if deadline is not None and begun + deadline <= self._now:
            member.state = State.FAILED
            member.holds = (_too_late(deadline, begun, begun + deadline),)
            return
        end = soonest(_too_late_at(rule, member.checks, begun), self._now)
        if end is not None and (answered is None or end < answered):
            member.fails_at = end

    def _lifted(
        self, stage: str, variant: str, published: Published, checks: tuple[CheckView, ...]
    ) -> tuple[CheckView, ...]:
        """A person may let a variant count as ready; of what failed later they did not know."""
        orders = self._standing.orders(stage, variant, published.revision)
        for order in reversed(orders):
            if Override.VERIFICATION in order.decision.overrides:
                return tuple(
                    check
                    if check.verdict is Verdict.PASSED
                    or (check.verdict is Verdict.FAILED and _later(check.at, order.at))
                    else lifted(check, order.decision.by, order.at)
                    for check in checks
                )
        return checks


def lifted(check: CheckView, by: str, at: datetime) -> CheckView:
    """The check as a person overrode it."""
    return CheckView(check.name, Verdict.PASSED, f"{check.name}: lifted by {by}", at)


def forgotten(answer: Answer, retried: datetime | None) -> bool:
    """Is it a failure from before a person asked for another try?"""
    return answer.verdict is Verdict.FAILED and retried is not None and answer.at <= retried


def standing_of(checks: Iterable[CheckView]) -> State:
    """How a published variant stands. Without checks it is ready on publication."""
    verdicts = [check.verdict for check in checks]
    if Verdict.FAILED in verdicts:
        return State.FAILED
    return State.VERIFYING if Verdict.PENDING in verdicts else State.READY


def _min_ready(wanted: timedelta, since: datetime, end: datetime) -> Hold:
    sentence = (
        f"verified since {written(since)}; it is to stay so for {lasting(wanted)},"
        f" until {written(end)}"
    )
    return Hold(Reason.MIN_READY_RUNNING, sentence, "time alone", since, end)


def _answered_at(checks: Iterable[CheckView]) -> datetime | None:
    """Return when all checks will have passed if nobody says anything more; None if never."""
    latest: datetime | None = None
    for check in checks:
        at = check.at if check.verdict is Verdict.PASSED else check.passes
        if at is None and check.verdict is not Verdict.PASSED:
            return None
        if at is not None and (latest is None or at > latest):
            latest = at
    return latest


def _too_late_at(
    rule: StageRule, checks: Iterable[CheckView], begun: datetime
) -> Iterator[datetime]:
    """The instants at which what is verified has taken too long."""
    if rule.rollout.progress_deadline is not None:
        yield begun + rule.rollout.progress_deadline
    for check, view in zip(rule.verification, checks, strict=True):
        if check.timeout is not None and view.verdict is Verdict.PENDING:
            yield begun + check.timeout


def _too_late(deadline: timedelta, begun: datetime, end: datetime) -> Hold:
    sentence = (
        f"in flight since {written(begun)} and not ready within {lasting(deadline)}; it is failed,"
        " and what passes later still counts"
    )
    return Hold(
        Reason.DEADLINE_EXCEEDED, sentence, "whoever runs what was published; fanout retry", end
    )


def _later(at: datetime | None, than: datetime) -> bool:
    return at is not None and at > than
