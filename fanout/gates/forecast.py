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
from fanout.gates.amounts import budget, tolerance
from fanout.gates.answer import State
from fanout.gates.census import Census, Member
from fanout.gates.facts import Hold, PolicyFacts
from fanout.gates.judgement import Judgement, survey
from fanout.gates.pins import Pin
from fanout.gates.rules import RolloutRule, StageRule, Strategy, Verdict
from fanout.gates.soak import soaked
from fanout.gates.wording import counted, lasting, listed, stage_named
from fanout.values import frozen

NextSweep = Callable[[datetime], datetime | None]
"""When automation publishes at an instant or next after it; None: never."""
_AT_ONCE = timedelta(0)


@frozen
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
    candidate: str  # of the stage: who fails, fails that
    back: Pin | None  # the stage is to go back to exactly this
    assumptions: list[str] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)

    def reach(self, begins: datetime | None, passes: datetime | None) -> Reach:
        return Reach(
            self.rule.name,
            self.revision,
            begins,
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
    pin = judgement.pin(rule)
    back = pin if pin is not None and pin.revision == revision else None
    stage = _Stage(rule, census, revision, _AT_ONCE, judgement.candidate(rule.name), back)
    if ledger.verdict(revision) is Verdict.PASSED:
        past = ledger.past(revision)
        return stage.reach(_begun(census, revision, past.passed), past.passed)
    gate = judgement.now if back is not None else _gate(judgement, stage, before)
    if rule.control_flow or gate is None:
        return stage.reach(_begun(census, revision) if gate is None else gate, gate)
    _note(judgement, stage)
    stage.takes = _takes(stage, takes)
    if stage.holds:
        return stage.reach(_begun(census, revision), None)
    return _roll_out(stage, max(gate, judgement.now), clock)


def _begun(census: Census, revision: str, passed: datetime | None = None) -> datetime | None:
    """The first publication of it that is still there, at the latest when the stage had passed it.

    New inputs at the same revision are published after that, and what is not there any more can
    not be asked.
    """
    published = (it.facts.published for it in census.members)
    instants = [it.at for it in published if it is not None and it.revision == revision]
    return min([*instants, *([passed] if passed is not None else [])], default=None)


def _gate(judgement: Judgement, stage: _Stage, before: Mapping[str, Reach]) -> datetime | None:
    """When enough of the stages before have passed and soaked; None and a hold: never."""
    after = stage.rule.after
    gate = judgement.stage_gate(stage.rule, stage.revision)
    if after is None or gate.verdict is Verdict.PASSED:
        return judgement.now
    instants: dict[str, datetime] = {}
    for name in after.stages:
        ledger = judgement.ledgers[name]
        past = ledger.past(stage.revision)
        if ledger.verdict(stage.revision) is Verdict.PASSED and past.left is not None:
            if soaked(past, judgement.now) >= after.soak:
                instants[name] = judgement.now
        elif (passes := before[name].passes) is not None:
            instants[name] = passes + after.soak
    wanted = needed(after)
    if len(instants) >= wanted:
        return max(sorted(instants.values())[wanted - 1], judgement.now)
    cut = [step.hold for step in gate.steps if step.stage not in instants and not step.possible]
    stage.holds += [hold for hold in cut if hold is not None]
    if not stage.holds:
        sentence = (
            f"{counted(wanted - len(instants), 'stage')} too few of {', '.join(after.stages)} can"
            f" come to have passed {stage.revision}"
        )
        stage.holds.append(Hold(Reason.AFTER_PENDING, sentence, "whoever can act there"))
    return None


def _note(judgement: Judgement, stage: _Stage) -> None:
    """What stops the stage for good, and what is taken to be done at once."""
    rule, census = stage.rule, stage.census
    pin = judgement.pin(rule)
    if pin is not None and stage.revision not in (pin.revision, pin.until):
        sentence = f"{stage_named(rule.name)} is to stay at {pin.revision}"
        stage.holds.append(Hold(Reason.WOULD_GO_BACK, sentence, "whoever pinned it"))
    elif pin is None and _passed_by(judgement, stage):
        sentence = (
            f"{stage_named(rule.name)} takes {stage.candidate}, which is newer, and never goes back"
            " by itself"
        )
        stage.holds.append(Hold(Reason.WOULD_GO_BACK, sentence, "whoever may decide: rollback"))
    if rule.rollout.max_in_flight is not None and not budget(rule.rollout.max_in_flight, 100):
        stage.holds.append(Hold(Reason.BUDGET_EXHAUSTED, "maxInFlight is 0", "the policy's author"))
    if census.suspended is not None:
        stage.holds.append(census.suspended)
    elif not census.counting(stage.revision):
        sentence = f"nothing counts in {stage_named(rule.name)}"
        stage.holds.append(Hold(Reason.NOTHING_COUNTS, sentence, "whoever may decide"))
    _note_unpublished(stage)
    counting = [it for it in census.members if census.counts(it, stage.revision)]
    held = sum(it.facts.held is not None for it in counting)
    if held:
        are = "is" if held == 1 else "are"
        stage.assumptions.append(f"{counted(held, 'held variant')} {are} let go at once")
    conflicted = [it.facts.name for it in counting if _conflicted(it, stage)]
    if conflicted:
        number = counted(len(conflicted), "variant")
        stage.assumptions.append(
            f"undecided merge conflicts of {number} ({listed(conflicted)}) are decided at once"
        )
    _note_failed(judgement, stage)


def _conflicted(member: Member, stage: _Stage) -> bool:
    """Whether its draft has merge conflicts that nobody decided; one that has the revision waits
    for no draft.
    """
    draft = member.draft
    return draft is not None and draft.disputed > 0 and not member.has(stage.revision)


def _passed_by(judgement: Judgement, stage: _Stage) -> bool:
    """Is it older than what the stage takes, and nothing that it can come to as things stand?"""
    eligible = judgement.choices[stage.rule.name].eligible
    return stage.revision not in eligible and judgement.ages.older(stage.revision, stage.candidate)


def _note_unpublished(stage: _Stage) -> None:
    """What those still need that do not have the revision yet."""
    rule = stage.rule
    left = [it for it in _waited_for(stage) if not it.has(stage.revision)]
    if not left:
        return
    if not rule.automatic and (stage.back is None or stage.back.decision is None):
        stage.assumptions.append("a person promotes as soon as the gate opens: automation is off")
    missing = [
        check.name
        for check in rule.requires
        if not all(_given(it, check.name, stage) for it in left)
    ]
    if missing and stage.back is None:
        stage.assumptions.append(f"what it requires is given at once: {', '.join(missing)}")
    if rule.propagate_when and stage.back is None:
        stage.assumptions.append("propagateWhen lets all of them go")


def _given(member: Member, check: str, stage: _Stage) -> bool:
    """Has the check passed for its draft of the revision?"""
    draft = member.draft
    return (
        draft is not None
        and draft.revision == stage.revision
        and any(it.name == check and it.verdict is Verdict.PASSED for it in member.required)
    )


def _note_failed(judgement: Judgement, stage: _Stage) -> None:
    """Of those that failed, more than the stage bears; who was sent back is mended by nobody."""
    failed = [it for it in stage.census.members if _fails(it, stage)]
    too_many = len(failed) - _borne(stage)
    if too_many <= 0:
        return
    back = [it for it in failed if _stays_back(judgement, it, stage)]
    if len(back) > _borne(stage):
        first = next(it.returned for it in back if it.returned is not None)
        names = listed(it.facts.name for it in back)
        go, take = ("goes", "does") if len(back) == 1 else ("go", "do")
        sentence = f"{names} {go} back and {take} not take {stage.revision}: {first.sentence}"
        stage.holds.append(Hold(first.reason, sentence, first.who, first.since))
    elif len(failed) > len(back):
        number = min(too_many, len(failed) - len(back))
        stage.assumptions.append(f"{counted(number, 'failed variant')} mended or skipped at once")


def _fails(member: Member, stage: _Stage) -> bool:
    if not stage.census.counts(member, stage.revision):
        return False
    if member.has(stage.revision):
        return member.state is State.FAILED
    failing = member.failing is not None and stage.candidate == stage.revision
    return failing or member.returned is not None


def _waited_for(stage: _Stage) -> list[Member]:
    """Who counts and has the revision, or is to get it: no failed ones that the stage bears."""
    counting = [it for it in stage.census.members if stage.census.counts(it, stage.revision)]
    failed = sum(_fails(it, stage) for it in counting)
    if not failed or failed > _borne(stage):
        return counting
    return [it for it in counting if it.has(stage.revision) or not _fails(it, stage)]


def _stays_back(judgement: Judgement, member: Member, stage: _Stage) -> bool:
    """Was it sent back, and not only until this very revision may be taken?"""
    pin = judgement.pin(stage.rule, member.facts.name)
    return member.returned is not None and pin is not None and pin.until != stage.revision


def _borne(stage: _Stage) -> int:
    counting = stage.census.counting(stage.revision)
    return tolerance(stage.rule.rollout.max_failures, counting)


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
        stage.assumptions.append(
            f"its checks are answered at once, since none is seen at present: {names}"
        )
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
    for member in _waited_for(stage):
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
