"""When can each stage be reached at the earliest, if all goes well from here?

Soaks, windows, sweeps and budgets are reckoned with, and how long variants have taken to become
ready. What people or machines still have to do is taken to be done at once and told as an
assumption: a forecast is the earliest there is, not what is likely.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import floor
from statistics import median

from fanout.api.reasons import Reason
from fanout.calendar.windows import Opening, opening
from fanout.gates.after import needed
from fanout.gates.amounts import budget
from fanout.gates.answer import State
from fanout.gates.census import Census, Member
from fanout.gates.facts import Hold, PolicyFacts
from fanout.gates.judgement import Judgement, survey
from fanout.gates.rules import RolloutRule, StageRule, Strategy, Verdict
from fanout.gates.soak import soaked
from fanout.gates.wording import counted, lasting, stage_named

NextSweep = Callable[[datetime], datetime | None]
"""When automation publishes at an instant or next after it; None: never."""
_AT_ONCE = timedelta(0)


@dataclass(frozen=True, slots=True)
class Reach:
    """How early one stage can have a revision."""

    stage: str
    revision: str
    begins: datetime | None  # the first variant is published; None: not without a person
    passes: datetime | None  # the stage has passed
    assumptions: tuple[str, ...] = ()
    holds: tuple[Hold, ...] = ()  # why not


@dataclass(slots=True)
class _Clock:
    """The instants at which something may be published."""

    facts: PolicyFacts
    next_sweep: NextSweep
    _known: Opening | None = None
    _since: datetime | None = None

    def allowed(self, at: datetime) -> datetime | None:
        """The first such instant, this one or a later one; None: there is none."""
        for _ in range(1000):  # a sweep that always falls into a closed window is as good as none
            opened = self._opened(at)
            swept = self.next_sweep(opened) if opened is not None else None
            if opened is None or swept is None:
                return None
            if swept == opened:
                return swept
            at = swept
        return None

    def _opened(self, at: datetime) -> datetime | None:
        if not self.facts.calendars:
            return at
        known, since = self._known, self._since
        if known is None or since is None or at < since or (known.until and at >= known.until):
            known = self._known = opening(self.facts.calendars, at)
            self._since = at
        return at if known.open else known.until


@dataclass(slots=True)
class _Stage:
    """A stage while it is reckoned with."""

    rule: StageRule
    census: Census
    revision: str
    takes: timedelta  # from publication to ready
    assumptions: list[str] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)

    def reach(self, begins: datetime | None, passes: datetime | None) -> Reach:
        return Reach(
            self.rule.name,
            self.revision,
            begins if not self.holds else None,
            passes if not self.holds else None,
            tuple(dict.fromkeys(self.assumptions)),
            tuple(self.holds),
        )


def forecast(
    facts: PolicyFacts,
    revision: str,
    next_sweep: NextSweep,
    takes: Mapping[str, timedelta],
) -> tuple[Reach, ...]:
    """The earliest of every stage for one revision, in the order written.

    `takes` says for stages how long their variants take to become ready; of the others it is the
    median of what was seen.
    """
    judgement = survey(facts)
    judgement.final()
    clock = _Clock(facts, next_sweep)
    found: dict[str, Reach] = {}
    for rule in judgement.stages:
        found[rule.name] = _reach(judgement, rule, revision, found, clock, takes)
    return tuple(found[rule.name] for rule in facts.stages)


def _reach(
    judgement: Judgement,
    rule: StageRule,
    revision: str,
    before: Mapping[str, Reach],
    clock: _Clock,
    takes: Mapping[str, timedelta],
) -> Reach:
    census, ledger = judgement.censuses[rule.name], judgement.ledgers[rule.name]
    stage = _Stage(rule, census, revision, _AT_ONCE)
    if ledger.verdict(revision) is Verdict.PASSED:
        past = ledger.past(revision)
        return stage.reach(past.passed, past.passed)
    gate = _gate(judgement, stage, before)
    if rule.control_flow or gate is None:
        return stage.reach(gate, gate)
    _note(judgement, stage)
    stage.takes = _takes(stage, takes)
    if stage.holds:
        return stage.reach(None, None)
    return _roll_out(stage, max(gate, judgement.now), clock)


def _gate(judgement: Judgement, stage: _Stage, before: Mapping[str, Reach]) -> datetime | None:
    """When enough of the stages before have passed and soaked; None and a hold: never."""
    after = stage.rule.after
    if after is None:
        return judgement.now
    instants: list[datetime] = []
    for name in after.stages:
        ledger = judgement.ledgers[name]
        past = ledger.past(stage.revision)
        if ledger.verdict(stage.revision) is Verdict.PASSED and past.left is not None:
            instants += [judgement.now] if soaked(past, judgement.now) >= after.soak else []
        elif (passes := before[name].passes) is not None:
            instants.append(passes + after.soak)
    instants.sort()
    wanted = needed(after)
    if len(instants) >= wanted:
        return max(instants[wanted - 1], judgement.now)
    sentence = (
        f"{counted(wanted - len(instants), 'stage')} too few of {', '.join(after.stages)} can come"
        f" to have passed {stage.revision}"
    )
    stage.holds.append(Hold(Reason.AFTER_PENDING, sentence, "whoever can act there"))
    return None


def _note(judgement: Judgement, stage: _Stage) -> None:
    """What stops the stage for good, and what is taken to be done at once."""
    rule, census = stage.rule, stage.census
    pin = judgement.pin(rule)
    if pin is not None and pin.revision != stage.revision:
        sentence = f"{stage_named(rule.name)} is to stay at {pin.revision}"
        stage.holds.append(Hold(Reason.WOULD_GO_BACK, sentence, "whoever pinned it"))
    if rule.rollout.max_in_flight is not None and not budget(rule.rollout.max_in_flight, 100):
        stage.holds.append(Hold(Reason.BUDGET_EXHAUSTED, "maxInFlight is 0", "the policy's author"))
    if census.suspended is not None:
        stage.holds.append(census.suspended)
    elif not census.counting(stage.revision):
        sentence = f"nothing counts in {stage_named(rule.name)}"
        stage.holds.append(Hold(Reason.NOTHING_COUNTS, sentence, "whoever may decide"))
    if not rule.automatic:
        stage.assumptions.append("a person promotes as soon as the gate opens: automation is off")
    if rule.requires:
        names = ", ".join(check.name for check in rule.requires)
        stage.assumptions.append(f"what it requires is given at once: {names}")
    if rule.propagate_when:
        stage.assumptions.append("propagateWhen lets all of them go")
    held = sum(
        it.facts.held is not None and census.counts(it, stage.revision) for it in census.members
    )
    if held:
        are = "is" if held == 1 else "are"
        stage.assumptions.append(f"{counted(held, 'held variant')} {are} let go at once")
    failed = sum(_fails(it, stage.revision) for it in census.members)
    if failed:
        stage.assumptions.append(f"{counted(failed, 'failed variant')} mended or skipped at once")


def _fails(member: Member, revision: str) -> bool:
    return member.failing is not None or (member.has(revision) and member.state is State.FAILED)


def _takes(stage: _Stage, declared: Mapping[str, timedelta]) -> timedelta:
    """From publication to ready: as declared, else as seen, `minReady` included."""
    rule = stage.rule
    if rule.name in declared:
        return declared[rule.name]
    seen = [took for member in stage.census.members if (took := _took(member)) is not None]
    wanted = rule.rollout.min_ready
    if seen:
        middle = timedelta(seconds=round(median(took.total_seconds() for took in seen)))
        stage.assumptions.append(
            f"a variant is ready {lasting(middle + wanted)} after its publication, as"
            f" {counted(len(seen), 'variant')} of it"
        )
        return middle + wanted
    if rule.verification:
        names = ", ".join(check.name for check in rule.verification)
        stage.assumptions.append(f"its checks are answered at once, since none was seen: {names}")
    return wanted


def _took(member: Member) -> timedelta | None:
    published = member.facts.published
    if member.state is not State.READY or published is None:
        return None
    instants = [check.at for check in member.checks if check.at is not None]
    return max(max(instants) - published.at, _AT_ONCE) if instants else None


def _roll_out(stage: _Stage, gate: datetime, clock: _Clock) -> Reach:
    """Wave after wave: each as big as the budget lets it be, when the one before is ready."""
    under_way = _under_way(stage)
    total, done = stage.census.counting(stage.revision), under_way.there
    at, first = gate, under_way.first
    if under_way.last is not None:
        at = max(gate, under_way.last + stage.takes)
    for _, missing in sorted(under_way.missing.items()):
        left = missing
        while left:
            start = clock.allowed(at)
            if start is None:
                stage.holds.append(_never())
                return stage.reach(None, None)
            first = start if first is None else first
            wave = min(_most(stage.rule.rollout, total, done), left)
            left, done, at = left - wave, done + wave, start + stage.takes
    return stage.reach(first, at)


@dataclass(slots=True)
class _UnderWay:
    """How far the stage is with the revision."""

    missing: dict[int, int] = field(default_factory=dict)  # by group
    there: int = 0  # that have it, ready or not
    first: datetime | None = None  # when the first of them was published
    last: datetime | None = None  # when the last one was that is not ready yet


def _under_way(stage: _Stage) -> _UnderWay:
    found = _UnderWay()
    for member in stage.census.members:
        if not stage.census.counts(member, stage.revision):
            continue
        published = member.facts.published
        if published is None or not member.has(stage.revision):
            group = member.facts.group
            found.missing[group] = found.missing.get(group, 0) + 1
            continue
        found.there += 1
        found.first = published.at if found.first is None else min(found.first, published.at)
        if member.state is State.VERIFYING:
            found.last = published.at if found.last is None else max(found.last, published.at)
    return found


def _most(rule: RolloutRule, total: int, ready: int) -> int:
    """How many go at once when nothing is in flight."""
    limits = [total]
    if rule.strategy is Strategy.LINEAR:
        limits.append(rule.step)
    if rule.strategy is Strategy.EXPONENTIAL:
        limits.append(max(1, floor((rule.factor - 1) * ready)))
    if rule.max_in_flight is not None:
        limits.append(budget(rule.max_in_flight, total))
    return min(limits)


def _never() -> Hold:
    sentence = "no sweep falls into a time in which publication is allowed"
    return Hold(Reason.WINDOW_CLOSED, sentence, "an administrator: PromotionPolicy.windows")
