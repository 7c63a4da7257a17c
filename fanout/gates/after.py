"""May the stage take the revision, given how it stands in the stages before?

One step per stage that is listed: its verdict and, for the same stage, its soak. The fold over them
is a number that must have passed, so that All and Any are no special cases. (Design §6, `after`.)
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from fanout.api.reasons import Reason
from fanout.gates.amounts import budget
from fanout.gates.facts import Hold
from fanout.gates.instants import written
from fanout.gates.records import Override
from fanout.gates.rules import After, Require, Verdict
from fanout.gates.soak import over_at, soaked
from fanout.gates.verdict import Ledger
from fanout.gates.wording import lasting, stage_named
from fanout.values import frozen, replace


@frozen
class Upstream:
    """A stage before this one, as far as this one's gate is concerned."""

    ledger: Ledger
    coming: bool  # it is at the revision or can still come to it
    who: str = ""  # who can do something about what it waits for
    opens: datetime | None = None  # of one that only joins: when time alone opens its gate


@frozen
class Step:
    """What one of the stages before contributes."""

    stage: str
    verdict: Verdict
    possible: bool  # it has passed or can still do so without anybody going back
    hold: Hold | None = None  # why it has not passed
    since: datetime | None = None  # when it has


@frozen
class Gate:
    """The answer of `after` as a whole."""

    verdict: Verdict
    possible: bool
    steps: tuple[Step, ...] = ()
    holds: tuple[Hold, ...] = ()  # what it waits for; nothing when it is open
    next: datetime | None = None


OPEN = Gate(Verdict.PASSED, possible=True)


def needed(after: After) -> int:
    """How many of the listed stages must have passed; a number above their total means all."""
    total = len(after.stages)
    if after.at_least is not None:
        return min(budget(after.at_least, total), total)
    match after.require:
        case Require.ALL:
            return total
        case Require.ANY:
            return 1
        case Require.MAJORITY:
            return total // 2 + 1


def required(after: After) -> str:
    """How many must have passed, as the policy says it: `All`, `at least 60%`."""
    if after.at_least is None:
        return after.require.value
    share = after.at_least
    return f"at least {share if isinstance(share, int) else f'{share * 100}%'}"


def fold(after: After, verdicts: Mapping[str, Verdict]) -> Verdict:
    """Failed as soon as too few can still pass; a stage without a verdict is pending."""
    said = [verdicts.get(stage, Verdict.PENDING) for stage in after.stages]
    passed = said.count(Verdict.PASSED)
    if passed >= needed(after):
        return Verdict.PASSED
    possible = passed + said.count(Verdict.PENDING)
    return Verdict.PENDING if possible >= needed(after) else Verdict.FAILED


def ask(
    after: After | None,
    revision: str,
    upstreams: Mapping[str, Upstream],
    now: datetime,
    lifted: frozenset[Override] = frozenset(),
) -> Gate:
    """The gate of a stage for one revision; an override lifts only what it names."""
    if after is None:
        return OPEN
    steps = tuple(
        _step(stage, after.soak, revision, upstreams[stage], now, lifted) for stage in after.stages
    )
    verdict = fold(after, {step.stage: step.verdict for step in steps})
    possible = sum(step.possible for step in steps) >= needed(after)
    # What has failed is not saved by what is only pending: no soak that runs is worth waiting for.
    told = [step for step in steps if verdict is not Verdict.FAILED or step.verdict is verdict]
    holds = tuple(step.hold for step in told if step.hold is not None)
    if verdict is Verdict.PASSED:
        return Gate(verdict, possible, steps)
    return Gate(verdict, possible, steps, holds, _opens(needed(after), steps))


def _opens(count: int, steps: Sequence[Step]) -> datetime | None:
    """When time alone will have let enough of them pass; None when something else is missing."""
    missing = count - sum(step.verdict is Verdict.PASSED for step in steps)
    ends = sorted(step.hold.until for step in steps if step.hold and step.hold.until)
    return ends[missing - 1] if missing <= len(ends) else None


def _step(
    stage: str,
    soak: timedelta,
    revision: str,
    upstream: Upstream,
    now: datetime,
    lifted: frozenset[Override],
) -> Step:
    verdict = upstream.ledger.verdict(revision)
    past = upstream.ledger.past(revision)
    if verdict is not Verdict.PASSED and Override.AFTER not in lifted:
        possible = verdict is Verdict.PENDING and upstream.coming
        hold = _not_passed(stage, revision, verdict, upstream)
        if verdict is Verdict.PENDING and upstream.opens is not None:
            wanted = timedelta(0) if Override.SOAK in lifted else soak
            hold = replace(hold, until=upstream.opens + wanted)
        return Step(stage, verdict, possible, hold)
    if Override.SOAK in lifted or soaked(past, now) >= soak:
        return Step(stage, Verdict.PASSED, possible=True, since=past.passed)
    if revision in upstream.ledger.unrecorded:
        sentence = (
            f"{revision} is ready in {stage_named(stage)}, which is not on record yet: its soak of"
            f" {lasting(soak)} starts with the next sweep"
        )
        hold = Hold(Reason.SOAK_RUNNING, sentence, "the next sweep, which records it")
        return Step(stage, Verdict.PENDING, possible=True, hold=hold)
    until = over_at(past, soak)
    if until is not None:
        sentence = (
            f"{revision} soaks in {stage_named(stage)}: ready since {written(past.passed or now)},"
            f" to be for {lasting(soak)}, until {written(until)}"
        )
        hold = Hold(Reason.SOAK_RUNNING, sentence, "time alone", past.passed, until)
        return Step(stage, Verdict.PENDING, possible=True, hold=hold)
    if verdict is not Verdict.PASSED:
        sentence = (
            f"{revision} has not begun to soak in {stage_named(stage)}: it is not ready there"
        )
        hold = Hold(Reason.AFTER_PENDING, sentence, upstream.who)
        possible = verdict is Verdict.PENDING and upstream.coming
        return Step(stage, Verdict.PENDING, possible, hold)
    sentence = (
        f"{stage_named(stage)} moved on from {revision} after {lasting(past.soaked)} of the"
        f" {lasting(soak)} that it had to soak; {revision} can pass there no more"
    )
    hold = Hold(Reason.SOAK_CUT_SHORT, sentence, "whoever may decide: --override soak", past.left)
    return Step(stage, Verdict.PENDING, possible=False, hold=hold)


def _not_passed(stage: str, revision: str, verdict: Verdict, upstream: Upstream) -> Hold:
    named = stage_named(stage)
    if verdict is Verdict.FAILED:
        return Hold(Reason.AFTER_FAILED, f"{revision} has failed in {named}", upstream.who)
    if upstream.coming:
        return Hold(Reason.AFTER_PENDING, f"{revision} has not passed {named} yet", upstream.who)
    sentence = f"{named} went past {revision} before it had passed"
    return Hold(Reason.AFTER_PENDING, sentence, "whoever may decide: --override after")
