"""Forecast of the earliest time at which each stage can have a revision.

Soaks, windows, sweeps and budgets are taken into account, and how long variants have taken to
become ready. Whatever people or machines still have to do is assumed to be done at once and listed
as an assumption: a forecast is the earliest time, not the likely one.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from fanout.api.durations import format_duration
from fanout.api.gate_vocabulary import VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import ForecastResult, Hold
from fanout.api.text_fields import pluralize
from fanout.calendar.publication_calendar import WindowState, compute_window_state
from fanout.gates import gate_wording
from fanout.gates.after_gate import compute_quorum
from fanout.gates.gate_evaluation import GateEvaluation, start_evaluation
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import format_names, label_stage, label_stages
from fanout.gates.percentages import compute_budget
from fanout.gates.revision_history import compute_soak
from fanout.gates.rollback_pins import Pin
from fanout.gates.rollout_budget import compute_in_flight_limit
from fanout.gates.stage_tally import StageTally, TalliedVariant

NextSweep = Callable[[datetime], datetime | None]
"""Time at which automation publishes next, at or after a given one; None: never."""
_NO_TIME = timedelta(0)


@dataclass(slots=True)
class _PublicationClock:
    """Instants at which something may be published: windows open, and a sweep runs."""

    policy_facts: PolicyFacts
    next_sweep: NextSweep
    _window_state: WindowState | None = None
    _looked_up_at: datetime | None = None

    def next_allowed(self, at: datetime) -> datetime | None:
        """Return the first instant from `at` at which something may be published, or None."""
        # Windows and sweeps are independent recurrences: each candidate instant must satisfy both.
        for _ in range(1000):  # bounded: a sweep may fall into a closed window each time
            open_at: datetime | None = at
            if self.policy_facts.calendars:
                window_state, looked_up_at = self._window_state, self._looked_up_at
                if (
                    window_state is None
                    or looked_up_at is None
                    or at < looked_up_at
                    or (window_state.until and at >= window_state.until)
                ):
                    window_state = compute_window_state(self.policy_facts.calendars, at)
                    self._window_state, self._looked_up_at = window_state, at
                open_at = at if window_state.open else window_state.until
            swept_at = self.next_sweep(open_at) if open_at is not None else None
            if swept_at is None or swept_at == open_at:
                return swept_at
            at = swept_at
        return None


@dataclass(slots=True)
class _ForecastState:
    stage_rule: StageRule
    tally: StageTally
    revision: str
    ready_after: timedelta  # from publication to ready
    candidate: str  # candidate of the stage, which a failure counts for
    pin: Pin | None  # the stage is to go back to exactly this
    assumptions: list[str] = field(default_factory=list)
    holds: list[Hold] = field(default_factory=list)

    def to_forecast(self, begins_at: datetime | None, passes_at: datetime | None) -> ForecastResult:
        return ForecastResult(
            begins_at,
            passes_at if not self.holds else None,
            tuple(dict.fromkeys(self.assumptions)),
            tuple(self.holds),
        )


def forecast_stages(
    policy_facts: PolicyFacts,
    revision: str,
    next_sweep: NextSweep,
    ready_after: Mapping[str, timedelta],
) -> Mapping[str, ForecastResult]:
    """Forecast every stage for one revision: by name, in the order written.

    `ready_after` maps stages to the time their variants take to become ready; for others it
    is the median of what was observed.
    """
    evaluation = start_evaluation(policy_facts)
    evaluation.apply_candidates()
    clock = _PublicationClock(policy_facts, next_sweep)
    forecasts: dict[str, ForecastResult] = {}
    # In the order of promotion, since a stage's forecast begins where those before it pass.
    for stage_rule in evaluation.stages:
        forecasts[stage_rule.name] = _forecast_stage(
            evaluation, stage_rule, revision, forecasts, clock, ready_after
        )
    return {stage_rule.name: forecasts[stage_rule.name] for stage_rule in policy_facts.stages}


def _forecast_stage(
    evaluation: GateEvaluation,
    stage_rule: StageRule,
    revision: str,
    upstream_forecasts: Mapping[str, ForecastResult],
    clock: _PublicationClock,
    ready_after: Mapping[str, timedelta],
) -> ForecastResult:
    tally, verdicts = evaluation.tallies[stage_rule.name], evaluation.verdicts[stage_rule.name]
    pin = evaluation.pin(stage_rule)
    active_pin = pin if pin is not None and pin.revision == revision else None
    stage = _ForecastState(
        stage_rule, tally, revision, _NO_TIME, evaluation.candidate(stage_rule.name), active_pin
    )
    if verdicts.verdict(revision) is Verdict.PASSED:
        history = verdicts.history(revision)
        return stage.to_forecast(
            _first_publication(tally, revision, history.passed), history.passed
        )
    gate_opens_at = (
        evaluation.now
        if active_pin is not None
        else _gate_opens_at(evaluation, stage, upstream_forecasts)
    )
    if stage_rule.control_flow or gate_opens_at is None:
        return stage.to_forecast(
            _first_publication(tally, revision) if gate_opens_at is None else gate_opens_at,
            gate_opens_at,
        )
    _note_blockers(evaluation, stage)
    stage.ready_after = _ready_after(stage, ready_after)
    if stage.holds:
        return stage.to_forecast(_first_publication(tally, revision), None)
    # Simulate the rollout in waves, each as big as the budget allows and after the previous one is
    # ready.
    missing: Counter[int] = Counter()  # variants without the revision, by group
    published_at: list[datetime] = []  # of those that have it, ready or not
    at, total = max(gate_opens_at, evaluation.now), tally.count_for(revision)
    for variant in _needed_variants(stage):
        if (publication := variant.facts.published) is None or not variant.has(revision):
            missing[variant.facts.group] += 1
            continue
        published_at.append(publication.at)
        if variant.state is VariantState.VERIFYING:
            at = max(at, publication.at + stage.ready_after)
    published, first_publication = len(published_at), min(published_at, default=None)
    # Group by group: a wave never mixes groups, as the rollout itself does not.
    for group in sorted(missing):
        remaining = missing[group]
        while remaining:
            if (start := clock.next_allowed(at)) is None:
                sentence = "no scheduled sweep falls within an open window"
                actor = gate_wording.WINDOW_ADMINISTRATOR
                stage.holds.append(Hold(Reason.WINDOW_CLOSED, sentence, actor))
                return stage.to_forecast(None, None)
            first_publication = start if first_publication is None else first_publication
            limit = compute_in_flight_limit(stage_rule.rollout, total, published)
            wave = remaining if limit is None else min(limit, remaining)
            remaining, published, at = remaining - wave, published + wave, start + stage.ready_after
    return stage.to_forecast(first_publication, at)


def _first_publication(
    tally: StageTally, revision: str, passes_at: datetime | None = None
) -> datetime | None:
    """Return the first publication of the revision in force, at most `passes_at`.

    New inputs at the same revision are published after that, and variants that have moved
    on are not known any more.
    """
    publications = (it.facts.published for it in tally.variants)
    instants = [it.at for it in publications if it is not None and it.revision == revision]
    return min([*instants, *([passes_at] if passes_at is not None else [])], default=None)


def _gate_opens_at(
    evaluation: GateEvaluation,
    stage: _ForecastState,
    upstream_forecasts: Mapping[str, ForecastResult],
) -> datetime | None:
    """Return when enough upstream stages have passed and soaked. None, with a hold noted: never."""
    after = stage.stage_rule.after
    gate = evaluation.stage_gate(stage.stage_rule, stage.revision)
    if after is None or gate.verdict is Verdict.PASSED:
        return evaluation.now
    instants: dict[str, datetime] = {}
    for name in after.stages:
        verdicts = evaluation.verdicts[name]
        history = verdicts.history(stage.revision)
        if verdicts.verdict(stage.revision) is Verdict.PASSED and history.left is not None:
            if compute_soak(history, evaluation.now) >= after.soak_time:
                instants[name] = evaluation.now
        elif (passes := upstream_forecasts[name].passes) is not None:
            instants[name] = passes + after.soak_time
    quorum = compute_quorum(after)
    if len(instants) >= quorum:
        # The quorum is reached with the n-th earliest stage; later ones are not needed.
        return max(sorted(instants.values())[quorum - 1], evaluation.now)
    impossible = [
        step.hold for step in gate.steps if step.stage not in instants and not step.possible
    ]
    stage.holds += [hold for hold in impossible if hold is not None]
    if not stage.holds:
        impossible_stages = [name for name in after.stages if name not in instants]
        sentence = f"{label_stages(impossible_stages)} cannot pass {stage.revision}"
        actor = gate_wording.format_stage_actor(impossible_stages)
        stage.holds.append(Hold(Reason.AFTER_PENDING, sentence, actor))
    return None


def _note_blockers(evaluation: GateEvaluation, stage: _ForecastState) -> None:
    """Note what stops the stage for good, and what is assumed to be done at once."""
    stage_rule, tally = stage.stage_rule, stage.tally
    pin = evaluation.pin(stage_rule)
    if pin is not None and stage.revision not in (pin.revision, pin.until):
        sentence = f"{label_stage(stage_rule.name)} is pinned to {pin.revision}"
        stage.holds.append(Hold(Reason.WOULD_GO_BACK, sentence, "the author of the pin"))
    elif (
        pin is None
        and stage.revision not in evaluation.choices[stage_rule.name].eligible
        and evaluation.ages.is_older(stage.revision, stage.candidate)
    ):
        sentence = (
            f"{label_stage(stage_rule.name)} takes {stage.candidate}, which is newer; automation"
            " never downgrades"
        )
        stage.holds.append(Hold(Reason.WOULD_GO_BACK, sentence, gate_wording.ANY_PROMOTER_ROLLBACK))
    if stage_rule.rollout.max_in_flight is not None and not compute_budget(
        stage_rule.rollout.max_in_flight, 100
    ):
        sentence, actor = gate_wording.LIMIT_IS_ZERO, gate_wording.AUTHOR_OF_LIMIT
        stage.holds.append(Hold(Reason.BUDGET_EXHAUSTED, sentence, actor))
    if tally.suspended is not None:
        stage.holds.append(tally.suspended)
    elif not tally.count_for(stage.revision):
        sentence = f"no variant counts in {label_stage(stage_rule.name)}"
        stage.holds.append(Hold(Reason.NOTHING_COUNTS, sentence, gate_wording.ANY_PROMOTER_RESUME))
    # What variants without the revision still need before publication.
    unpublished = [it for it in _needed_variants(stage) if not it.has(stage.revision)]
    is_decided = stage.pin is not None and stage.pin.decision is not None
    if unpublished and not stage_rule.automatic and not is_decided:
        stage.assumptions.append(
            "a promoter promotes as soon as the gate opens (automatic promotion is off)"
        )
    missing = [
        check.name
        for check in stage_rule.requires
        if not all(
            it.draft is not None
            and it.draft.revision == stage.revision
            and any(
                result.name == check.name and result.verdict is Verdict.PASSED
                for result in it.required
            )
            for it in unpublished
        )
    ]
    if missing and stage.pin is None:
        stage.assumptions.append(f"required checks pass immediately: {', '.join(missing)}")
    if unpublished and stage_rule.propagate_when and stage.pin is None:
        stage.assumptions.append("propagateWhen is true for all variants")
    counting = [it for it in tally.variants if tally.counts(it, stage.revision)]
    if held := sum(it.facts.held is not None for it in counting):
        stage.assumptions.append(f"{pluralize(held, 'held variant')} freed immediately")
    conflict_names = [
        it.facts.name
        for it in counting
        if not it.has(stage.revision) and it.draft is not None and it.draft.conflict_count > 0
    ]
    if conflict_names:
        stage.assumptions.append(
            f"merge conflicts of {pluralize(len(conflict_names), 'variant')} are decided"
            f" immediately ({format_names(conflict_names)})"
        )
    _note_failed(evaluation, stage)


def _note_failed(evaluation: GateEvaluation, stage: _ForecastState) -> None:
    """Note failures beyond `maxFailures`: a rolled back variant is a hold, others can be mended."""
    failed = [it for it in stage.tally.variants if _has_failed(it, stage)]
    too_many = len(failed) - stage.tally.tolerated_failures(stage.revision)
    if too_many <= 0:
        return
    # Those that were rolled back beyond the promotion of this revision.
    rolled_back = {
        it.facts.name: it.rolled_back
        for it in failed
        if it.rolled_back is not None
        and (pin := evaluation.pin(stage.stage_rule, it.facts.name)) is not None
        and pin.until != stage.revision
    }
    if len(rolled_back) > stage.tally.tolerated_failures(stage.revision):
        first_hold = next(iter(rolled_back.values()))
        verb = "does" if len(rolled_back) == 1 else "do"
        sentence = (
            f"{format_names(rolled_back)} {verb} not take {stage.revision}: {first_hold.message}"
        )
        stage.holds.append(Hold(first_hold.reason, sentence, first_hold.who, first_hold.since))
    elif len(failed) > len(rolled_back):
        number = min(too_many, len(failed) - len(rolled_back))
        stage.assumptions.append(
            f"{pluralize(number, 'failed variant')} fixed or skipped immediately"
        )


def _has_failed(variant: TalliedVariant, stage: _ForecastState) -> bool:
    if not stage.tally.counts(variant, stage.revision):
        return False
    if variant.has(stage.revision):
        return variant.state is VariantState.FAILED
    if stage.candidate == stage.revision:
        return variant.absent_failure is not None
    return variant.rolled_back is not None


def _needed_variants(stage: _ForecastState) -> list[TalliedVariant]:
    """List the variants that must have the revision, without tolerated failures."""
    counting = [it for it in stage.tally.variants if stage.tally.counts(it, stage.revision)]
    failed = sum(_has_failed(it, stage) for it in counting)
    if not failed or failed > stage.tally.tolerated_failures(stage.revision):
        return counting
    return [it for it in counting if it.has(stage.revision) or not _has_failed(it, stage)]


def _ready_after(stage: _ForecastState, ready_after: Mapping[str, timedelta]) -> timedelta:
    """Return the time from publication to ready, declared or observed. It includes `minReady`."""
    stage_rule = stage.stage_rule
    if stage_rule.name in ready_after:
        return ready_after[stage_rule.name]
    observed_times: list[timedelta] = []  # from publication to the last check
    for variant in stage.tally.variants:
        instants = [check.at for check in variant.checks if check.at is not None]
        if variant.state is VariantState.READY and variant.facts.published and instants:
            observed_times.append(max(max(instants) - variant.facts.published.at, _NO_TIME))
    min_ready = stage_rule.rollout.ready_time
    if observed_times:
        median_time = timedelta(seconds=round(median(it.total_seconds() for it in observed_times)))
        stage.assumptions.append(
            f"a variant is ready {format_duration(median_time + min_ready)} after publication,"
            f" as {pluralize(len(observed_times), 'variant')} before"
        )
        return median_time + min_ready
    if stage_rule.verification:
        checks = [check.name for check in stage_rule.verification]
        stage.assumptions.append(
            f"checks pass immediately, as no duration is known: {', '.join(checks)}"
        )
    return min_ready
