"""Gate of a stage's `after`: whether enough upstream stages have passed a revision.

Each listed stage contributes one AfterStep: its verdict and its soak. The steps are aggregated by a
required number of passed stages, so All and Any are numbers too.

Control-flow stages have no targets and forward verdicts and clocks. The verdict for a revision is
the stage's own gate. The stage is ready from the instant at which its gate opened, soak included,
until the upstream stages that are still at the revision no longer suffice; so soaks along a path
add up. When they suffice again, another stretch begins.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import OverridableGate, Require, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.api.stages import After
from fanout.gates import gate_wording
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import label_stage
from fanout.gates.percentages import compute_budget
from fanout.gates.revision_history import (
    NO_HISTORY,
    RevisionHistory,
    begin_stretch,
    compute_soak,
    end_stretch,
    soak_ends_at,
    withdraw_history,
)
from fanout.gates.stage_verdicts import StageVerdicts
from fanout.values import Value, replace


class UpstreamStage(Value):
    """State of one upstream stage for a revision, as the gate of a later stage needs it."""

    verdicts: StageVerdicts
    reachable: bool  # it has the revision or can still get it
    who: str = ""  # who can unblock it
    ready_at: datetime | None = None  # when it is ready with the revision without another event
    returning: bool = False  # it left the revision and is returning to it


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

    Majority is more than half; a percentage rounds up; a number above the total means all.
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
    """Return when time alone lets `needed` more stages through, or None."""
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
        reason, actor = Reason.AFTER_PENDING, upstream_stage.who
        if verdict is Verdict.FAILED:
            reason, sentence = Reason.AFTER_FAILED, f"{revision} failed in {label_stage(stage)}"
        elif upstream_stage.reachable:
            sentence = f"{revision} has not passed {label_stage(stage)} yet"
        else:
            sentence = f"{label_stage(stage)} moved on before {revision} passed"
            actor = gate_wording.MAY_OVERRIDE_AFTER
        hold = Hold(reason, sentence, actor, until=ready_at)
        possible = verdict is Verdict.PENDING and upstream_stage.reachable
        return AfterStep(
            stage, verdict, possible, hold, can_stay_ready=can_stay_ready, ready_at=ready_at
        )
    if OverridableGate.SOAK in overrides or compute_soak(history, now) >= soak:
        passed = AfterStep(stage, Verdict.PASSED, possible=True, since=history.passed)
        return replace(passed, stage_ready=ready, can_stay_ready=can_stay_ready, ready_at=ready_at)
    label, duration, possible = label_stage(stage), format_duration(soak), True
    # No end is promised before a sweep has recorded when the soak began.
    if revision in upstream_stage.verdicts.unrecorded:
        sentence = (
            f"{revision} is ready in {label}; its soak of {duration} starts with the next sweep"
        )
        hold = Hold(Reason.SOAK_RUNNING, sentence, gate_wording.NEXT_SWEEP)
    elif (soaked_at := soak_ends_at(history, soak)) is not None:
        sentence, since = f"{revision} soaks in {label} for {duration}", history.stretch_start
        hold = Hold(Reason.SOAK_RUNNING, sentence, gate_wording.TIME_ALONE, since, soaked_at)
    elif verdict is not Verdict.PASSED:
        sentence = f"{revision} is not ready in {label}; its soak of {duration} has not started"
        possible = verdict is Verdict.PENDING and upstream_stage.reachable
        hold = Hold(Reason.AFTER_PENDING, sentence, upstream_stage.who, until=ready_at)
    else:
        soaked, since = format_duration(history.soaked), history.left
        ended = f"soak of {revision} in {label} ended after {soaked} of {duration}"
        sentence, actor = f"{ended}; {revision} can no longer pass", gate_wording.MAY_OVERRIDE_SOAK
        hold, possible = Hold(Reason.SOAK_CUT_SHORT, sentence, actor, since), False
        if upstream_stage.returning:
            sentence, actor = (
                f"{ended}; it restarts when the stage is ready again",
                upstream_stage.who,
            )
            hold, possible = Hold(Reason.SOAK_RUNNING, sentence, actor, since, ready_at), True
    until = ready_at if hold.until is None else hold.until
    return AfterStep(
        stage, Verdict.PENDING, possible, hold, can_stay_ready=can_stay_ready, ready_at=until
    )


def forward_verdicts(
    stage_rule: StageRule,
    gate_of: Callable[[str], AfterGate],
    upstream_verdicts: Mapping[str, StageVerdicts],
    histories: Mapping[str, RevisionHistory],
    revisions: Iterable[str],
    now: datetime,
) -> StageVerdicts:
    """Compute the verdicts of a control-flow stage; `gate_of` evaluates its gate."""
    by_revision: dict[str, Verdict] = {}
    new_histories: dict[str, RevisionHistory] = {}
    # Revisions on record too: one that the rule no longer allows may still soak downstream.
    for revision in dict.fromkeys([*revisions, *histories]):
        history, gate = histories.get(revision, NO_HISTORY), gate_of(revision)
        by_revision[revision] = gate.verdict
        new_histories[revision] = (
            _forward_history(stage_rule, gate, upstream_verdicts, revision, history, now)
            if gate.verdict is Verdict.PASSED
            else withdraw_history(history)
        )
    return StageVerdicts.of_pass(by_revision, histories, new_histories, now)


def _forward_history(
    stage_rule: StageRule,
    gate: AfterGate,
    upstream_verdicts: Mapping[str, StageVerdicts],
    revision: str,
    history: RevisionHistory,
    now: datetime,
) -> RevisionHistory:
    """Return the history of a revision whose gate is open: its present stretch, or its end."""
    assert stage_rule.after is not None, "validation refuses other stages without targets"
    quorum, soak = compute_quorum(stage_rule.after), stage_rule.after.soak_time
    # Since when, and until when, each stage that counts as passed now suffices for the gate; None:
    # always, as far as is known.
    spans: list[tuple[datetime | None, datetime | None]] = []
    for step in gate.steps:
        upstream_history = upstream_verdicts[step.stage].history(revision)
        if step.verdict is not Verdict.PASSED or upstream_history.passed is None:
            continue
        since = soak_ends_at(upstream_history, soak)
        if upstream_history.left is None and upstream_history.soaked >= soak:
            since = upstream_history.stretch_start
        # An overridden soak counts as none.
        if since is not None and since > now:
            since = upstream_history.stretch_start
        spans.append((since, upstream_history.left))

    def count_at(at: datetime) -> int:
        return sum(
            (since is None or since <= at) and (until is None or until > at)
            for since, until in spans
        )

    # Since when enough suffice, or `now` where that is unknown. Those that have left are not part
    # of a stretch that is open now.
    present = sorted(since or now for since, until in spans if until is None or until > now)
    quorum_since = min(present[quorum - 1], now) if len(present) >= quorum else now
    new_history = RevisionHistory(passed=quorum_since) if history.passed is None else history
    start = new_history.stretch_start
    if new_history.left is None and start is not None:
        # The number that suffices can drop only where a span ends; the other instants need no look.
        ends = [until for _, until in spans if until is not None]
        moments = sorted({start, *(end for end in ends if end > start)}) if ends else []
        shortages = (moment for moment in moments if count_at(moment) < quorum)
        if (ended_at := next(shortages, None)) is not None:
            new_history = end_stretch(new_history, ended_at)
    if new_history.left is not None and count_at(now) >= quorum:
        return begin_stretch(new_history, max(quorum_since, new_history.left))
    return new_history
