"""Gate of a stage's `after`: whether enough upstream stages have passed a revision.

Each listed stage contributes one AfterStep: its verdict and its soak. The steps are
aggregated by a required number of passed stages, so All and Any are numbers too.
(Design §6, `after`.)
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from fanout.api.gate_vocabulary import OverridableGate, Require, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.stages import After
from fanout.gates import gate_wording
from fanout.gates.gate_wording import label_stage
from fanout.gates.percentages import compute_budget
from fanout.gates.soak import compute_soak, soak_hold
from fanout.gates.stage_verdicts import UpstreamStage
from fanout.values import Value, replace


class AfterStep(Value):
    """Contribution of one listed upstream stage to the gate."""

    stage: str
    verdict: Verdict
    possible: bool  # passed, or can still pass without a rollback
    hold: Hold | None = None  # reason why it has not passed
    since: datetime | None = None  # when it passed
    stage_ready: bool = False  # it passed, and the stage is ready with the revision
    # the stage is ready with the revision, or can become so (again)
    can_stay_ready: bool = False
    ready_at: datetime | None = None  # when both hold without another event


class AfterGate(Value):
    """Result of evaluating `after` for one stage and one revision."""

    verdict: Verdict
    possible: bool
    steps: tuple[AfterStep, ...] = ()
    holds: tuple[Hold, ...] = ()  # reasons to wait; empty if open
    next: datetime | None = None  # when time alone opens it; None: something else is missing
    # enough upstream stages are ready, or can become so (again)
    can_stay_ready: bool = True
    # when time alone makes enough of them ready again, after some have moved on
    ready_again_at: datetime | None = None


OPEN_GATE = AfterGate(Verdict.PASSED, possible=True)


def compute_quorum(after: After) -> int:
    """Compute how many of the listed stages must have passed.

    Majority is more than half; a percentage rounds up; a number above the total means all
    (design §6).
    """
    total = len(after.stages)
    # Never above the total: a policy that lists fewer stages than it requires would never pass.
    if after.at_least is not None:
        return min(compute_budget(after.at_least, total), total)
    match after.require:
        case Require.ALL:
            return total
        case Require.ANY:
            return 1
        case Require.MAJORITY:
            return total // 2 + 1


def format_requirement(after: After) -> str:
    """Format the required number of stages as the policy writes it: `All`, `at least 60%`."""
    if after.at_least is None:
        return after.require.value
    share = after.at_least
    return f"at least {share if isinstance(share, int) else f'{share * 100}%'}"


def aggregate_verdicts(after: After, verdicts_by_stage: Mapping[str, Verdict]) -> Verdict:
    """Aggregate the verdicts of the listed stages (by stage name) into one verdict.

    A stage without a verdict counts as pending. The result is FAILED as soon as the stages
    that can still pass are fewer than the quorum.
    """
    listed_verdicts = [verdicts_by_stage.get(stage, Verdict.PENDING) for stage in after.stages]
    passed = listed_verdicts.count(Verdict.PASSED)
    quorum = compute_quorum(after)
    if passed >= quorum:
        return Verdict.PASSED
    possible = passed + listed_verdicts.count(Verdict.PENDING)
    return Verdict.PENDING if possible >= quorum else Verdict.FAILED


def evaluate_after(
    after: After | None,
    revision: str,
    upstream_stages: Mapping[str, UpstreamStage],
    now: datetime,
    overrides: frozenset[OverridableGate] = frozenset(),
) -> AfterGate:
    """Evaluate `after` of a stage for one revision; None means an open gate.

    `upstream_stages` has one entry per listed stage, by name. An override removes only the
    condition that it names: AFTER ignores the verdicts, SOAK the soak.
    """
    if after is None:
        return OPEN_GATE
    steps = tuple(
        _evaluate_step(stage, after.soak_time, revision, upstream_stages[stage], now, overrides)
        for stage in after.stages
    )
    verdict = aggregate_verdicts(after, {step.stage: step.verdict for step in steps})
    quorum = compute_quorum(after)
    possible = sum(step.possible for step in steps) >= quorum
    # What has failed is not saved by what is only pending: no soak that runs is worth waiting for.
    blocking_steps = [
        step for step in steps if verdict is not Verdict.FAILED or step.verdict is verdict
    ]
    holds = tuple(step.hold for step in blocking_steps if step.hold is not None)
    can_stay_ready = sum(step.can_stay_ready for step in steps) >= quorum
    if verdict is Verdict.PASSED:
        missing = quorum - sum(step.stage_ready for step in steps)
        # The gate is open, but a stage that has passed may have moved on since. A control-flow
        # stage behind this gate is ready only while enough upstream stages are, so the instant of
        # their return matters.
        ready_again_at = _nth_instant(
            missing, [step.ready_at for step in steps if not step.stage_ready]
        )
        return AfterGate(
            verdict, possible, steps, can_stay_ready=can_stay_ready, ready_again_at=ready_again_at
        )
    missing = quorum - sum(step.verdict is Verdict.PASSED for step in steps)
    ends = [step.hold.until for step in steps if step.hold is not None]
    return AfterGate(verdict, possible, steps, holds, _nth_instant(missing, ends), can_stay_ready)


def _nth_instant(needed: int, instants: Iterable[datetime | None]) -> datetime | None:
    """Return the instant at which `needed` more stages are through by time alone.

    None if there is none. None means that for at least one of them something other than
    time is missing.
    """
    # The `needed` earliest suffice; the gate does not wait for the others.
    ends = sorted(at for at in instants if at is not None)
    return ends[needed - 1] if 0 < needed <= len(ends) else None


def _evaluate_step(
    stage: str,
    soak: timedelta,
    revision: str,
    upstream_stage: UpstreamStage,
    now: datetime,
    overrides: frozenset[OverridableGate],
) -> AfterStep:
    verdict = upstream_stage.verdicts.verdict(revision)
    history = upstream_stage.verdicts.history(revision)
    ready = history.passed is not None and history.left is None
    can_stay_ready = ready or upstream_stage.returning
    soaked_before = OverridableGate.SOAK in overrides or history.soaked >= soak
    # A stretch that is over and was long enough counts for good, so the soak is not added again.
    ready_at = (
        upstream_stage.ready_at
        if soaked_before or upstream_stage.ready_at is None
        else upstream_stage.ready_at + soak
    )
    if verdict is not Verdict.PASSED and OverridableGate.AFTER not in overrides:
        possible = verdict is Verdict.PENDING and upstream_stage.reachable
        hold = replace(_not_passed_hold(stage, revision, verdict, upstream_stage), until=ready_at)
        return AfterStep(
            stage, verdict, possible, hold, can_stay_ready=can_stay_ready, ready_at=ready_at
        )
    if OverridableGate.SOAK in overrides or compute_soak(history, now) >= soak:
        passed = AfterStep(stage, Verdict.PASSED, possible=True, since=history.passed)
        return replace(passed, stage_ready=ready, can_stay_ready=can_stay_ready, ready_at=ready_at)
    hold, possible = soak_hold(stage, soak, revision, upstream_stage, ready_at)
    until = ready_at if hold.until is None else hold.until
    return AfterStep(
        stage, Verdict.PENDING, possible, hold, can_stay_ready=can_stay_ready, ready_at=until
    )


def _not_passed_hold(
    stage: str, revision: str, verdict: Verdict, upstream_stage: UpstreamStage
) -> Hold:
    if verdict is Verdict.FAILED:
        sentence = f"{revision} failed in {label_stage(stage)}"
        return Hold(Reason.AFTER_FAILED, sentence, upstream_stage.who)
    if upstream_stage.reachable:
        sentence = f"{revision} has not passed {label_stage(stage)} yet"
        return Hold(Reason.AFTER_PENDING, sentence, upstream_stage.who)
    sentence = f"{label_stage(stage)} moved on before {revision} passed"
    return Hold(Reason.AFTER_PENDING, sentence, gate_wording.MAY_OVERRIDE_AFTER)
