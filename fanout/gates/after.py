"""May the stage take the revision, given how it stands in the stages before?

One step per stage that is listed: its verdict and, for the same stage, its soak. The fold over them
is a number that must have passed, so that All and Any are no special cases. (Design §6, `after`.)
"""

from collections.abc import Iterable, Mapping
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
    opens: datetime | None = None  # when time alone lets it be ready with the revision
    returns: bool = False  # it has moved on from the revision, and is on its way back to it


@frozen
class Step:
    """What one of the stages before contributes."""

    stage: str
    verdict: Verdict
    possible: bool  # it has passed or can still do so without anybody going back
    hold: Hold | None = None  # why it has not passed
    since: datetime | None = None  # when it has
    there: bool = False  # it has passed, and the stage is ready with the revision
    stays: bool = False  # the stage is ready with the revision, or can still come (back) to be
    opens: datetime | None = None  # when time alone lets it pass and the stage be ready


@frozen
class Gate:
    """The answer of `after` as a whole."""

    verdict: Verdict
    possible: bool
    steps: tuple[Step, ...] = ()
    holds: tuple[Hold, ...] = ()  # what it waits for; nothing when it is open
    next: datetime | None = None
    stays: bool = True  # enough of the stages before are ready, or can still come (back) to be
    again: datetime | None = None  # when time alone lets enough of them be ready, if some moved on


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
    count = needed(after)
    stays = sum(step.stays for step in steps) >= count
    if verdict is Verdict.PASSED:
        missing = count - sum(step.there for step in steps)
        again = _last_of(missing, [step.opens for step in steps if not step.there])
        return Gate(verdict, possible, steps, stays=stays, again=again)
    missing = count - sum(step.verdict is Verdict.PASSED for step in steps)
    ends = [step.hold.until for step in steps if step.hold is not None]
    return Gate(verdict, possible, steps, holds, _last_of(missing, ends), stays)


def _last_of(missing: int, instants: Iterable[datetime | None]) -> datetime | None:
    """When so many more will be through by time alone; None when something else is missing."""
    ends = sorted(at for at in instants if at is not None)
    return ends[missing - 1] if 0 < missing <= len(ends) else None


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
    ready = past.passed is not None and past.left is None
    stays = ready or upstream.returns
    enough = Override.SOAK in lifted or past.soaked >= soak
    opens = upstream.opens if enough or upstream.opens is None else upstream.opens + soak
    if verdict is not Verdict.PASSED and Override.AFTER not in lifted:
        possible = verdict is Verdict.PENDING and upstream.coming
        hold = replace(_not_passed(stage, revision, verdict, upstream), until=opens)
        return Step(stage, verdict, possible, hold, stays=stays, opens=opens)
    if Override.SOAK in lifted or soaked(past, now) >= soak:
        passed = Step(stage, Verdict.PASSED, possible=True, since=past.passed)
        return replace(passed, there=ready, stays=stays, opens=opens)
    hold, possible = _soaking(stage, soak, revision, upstream, opens)
    until = opens if hold.until is None else hold.until
    return Step(stage, Verdict.PENDING, possible, hold, stays=stays, opens=until)


def _soaking(
    stage: str, soak: timedelta, revision: str, upstream: Upstream, opens: datetime | None
) -> tuple[Hold, bool]:
    """Why the soak of a revision is not over, and whether it can be yet."""
    named, verdict = stage_named(stage), upstream.ledger.verdict(revision)
    past = upstream.ledger.past(revision)
    if revision in upstream.ledger.unrecorded:
        sentence = (
            f"{revision} is ready in {named}, which is not on record yet: its soak of"
            f" {lasting(soak)} starts with the next sweep"
        )
        return Hold(Reason.SOAK_RUNNING, sentence, "the next sweep, which records it"), True
    until = over_at(past, soak)
    if until is not None and past.begun is not None:
        sentence = (
            f"{revision} soaks in {named}: ready since {written(past.begun)},"
            f" to be for {lasting(soak)}, until {written(until)}"
        )
        return Hold(Reason.SOAK_RUNNING, sentence, "time alone", past.begun, until), True
    if verdict is not Verdict.PASSED:
        sentence = f"{revision} has not begun to soak in {named}: it is not ready there"
        possible = verdict is Verdict.PENDING and upstream.coming
        return Hold(Reason.AFTER_PENDING, sentence, upstream.who, until=opens), possible
    moved = (
        f"{named} moved on from {revision} after {lasting(past.soaked)} of the {lasting(soak)} that"
        " it had to soak"
    )
    if upstream.returns:
        sentence = f"{moved}; it soaks anew when it is ready there again"
        return Hold(Reason.SOAK_RUNNING, sentence, upstream.who, past.left, opens), True
    sentence = f"{moved}; {revision} can pass there no more"
    who = "whoever may decide: --override soak"
    return Hold(Reason.SOAK_CUT_SHORT, sentence, who, past.left), False


def _not_passed(stage: str, revision: str, verdict: Verdict, upstream: Upstream) -> Hold:
    named = stage_named(stage)
    if verdict is Verdict.FAILED:
        return Hold(Reason.AFTER_FAILED, f"{revision} has failed in {named}", upstream.who)
    if upstream.coming:
        return Hold(Reason.AFTER_PENDING, f"{revision} has not passed {named} yet", upstream.who)
    sentence = f"{named} went past {revision} before it had passed"
    return Hold(Reason.AFTER_PENDING, sentence, "whoever may decide: --override after")
