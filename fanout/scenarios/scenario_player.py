"""Player of scenarios: passes over the stated past, then from instant to instant; and their views.

A pass is made whenever something is stated to happen and whenever the gate engine says that
something can change, as in a running sweep. Played passes are also
the data that `fanout test --show` prints.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from heapq import heapify, heappop, heappush
from itertools import count

from fanout.api.gate_vocabulary import VariantState
from fanout.api.output_views import (
    HeldView,
    MomentView,
    OtherRevisionMoment,
    ReasonView,
    Simulation,
    StageMoment,
)
from fanout.api.reasons import classify_reason
from fanout.api.results import Hold, StageResult, VariantResult
from fanout.api.scenario import Scenario
from fanout.api.view_base import ViewMeta
from fanout.errors import InvalidInput
from fanout.gates.gate_evaluator import choose_candidates, evaluate_gates
from fanout.gates.gate_facts import PolicyEvaluation, PolicyFacts
from fanout.gates.gate_rules import PropagationCondition
from fanout.gates.revision_history import RevisionHistory
from fanout.scenarios.scenario_events import ScenarioChange, ScenarioTimeline
from fanout.scenarios.scenario_world import ScenarioPolicy, ScenarioWorld, build_first_facts
from fanout.values import Value

_MAX_ADVANCE = timedelta(days=30)  # default limit of `advance`
MAX_PASSES = 5_000  # passes of a scenario, its past included

_FINAL_STATES = (VariantState.READY, VariantState.SKIPPED)

PolicyEvaluator = Callable[[PolicyFacts], PolicyEvaluation]


class PlayedPass(Value):
    """One pass: the facts that the gates read and their decision.

    `is_carried_out` means that what the gates allowed was carried out.
    """

    facts: PolicyFacts
    decision: PolicyEvaluation
    is_carried_out: bool

    @property
    def at(self) -> datetime:
        """Return the instant of the pass."""
        return self.facts.now


def play_scenario(
    scenario: Scenario,
    scenario_policy: ScenarioPolicy,
    compile_condition: Callable[[str], PropagationCondition],
    evaluate_policy: PolicyEvaluator = evaluate_gates,
) -> tuple[PlayedPass, ...]:
    """Return the passes at requested instants, and with `advance` all with effects.

    `compile_condition` is as in `build_stage_rules`. Raises InvalidInput if the scenario does not
    end.
    """
    upstream = scenario_policy.policy.spec.upstream
    variables = {"repository": upstream.repository, "package": upstream.package}
    world = ScenarioWorld(
        first_facts=build_first_facts(scenario, scenario_policy, compile_condition),
        upstream={} if scenario.spec.stages else variables,
        revisions=list(scenario.spec.revisions),
    )
    timeline = ScenarioTimeline(scenario, scenario_policy.policy)
    return tuple(_ScenarioRun(scenario, world, timeline, evaluate_policy).reported_passes())


class _ScenarioRun:
    def __init__(
        self,
        scenario: Scenario,
        world: ScenarioWorld,
        timeline: ScenarioTimeline,
        evaluate_policy: PolicyEvaluator,
    ) -> None:
        self._spec = spec = scenario.spec
        self._world, self._timeline, self._evaluate_policy = world, timeline, evaluate_policy
        world.history = self._stated_history()
        self._now = spec.resolve_instant(None)
        self._requeue_at: datetime | None = None
        self._unreported: PlayedPass | None = None  # the last pass, if not yet reported
        self._passes = 0
        self._is_finished = False  # all variants are ready
        # The number also keeps the heap from comparing changes, which are functions.
        self._sequence = count()  # keeps the stated order
        requested = [
            None,
            *spec.moments,
            *(it.at for it in spec.events),
            *(e.at for e in spec.expect),
        ]
        self._requested = {spec.resolve_instant(when) for when in requested}
        advance = spec.advance
        last = max(self._requested)
        self._until = last + _MAX_ADVANCE
        if advance is not None and advance.until is not None:
            self._until = max(last, spec.resolve_instant(advance.until))
        self._publishes = {spec.resolve_instant(it.at) for it in spec.events if it.publish}
        self._queue: list[tuple[datetime, int, ScenarioChange | None]] = [
            (at, next(self._sequence), change)
            for at, change in (*timeline.past_changes(world), *timeline.event_changes())
        ]
        self._queue += [(at, next(self._sequence), None) for at in self._requested]
        heapify(self._queue)

    def reported_passes(self) -> Iterator[PlayedPass]:
        """Yield the passes to report, in order."""
        while (at := self._next_instant()) is not None:
            while self._queue and self._queue[0][0] <= at:
                if (change := heappop(self._queue)[2]) is not None:
                    change(self._world)
            # Stated history holds from `now` on and overrides what playing the past has derived.
            if at == self._now:
                self._world.history = {**self._world.history, **self._stated_history()}
            yield from self._passes_at(at)
        if self._unreported is not None:
            yield self._unreported

    def _passes_at(self, at: datetime) -> Iterator[PlayedPass]:
        """Yield the pass at an instant; with `advance`, also those that follow from it."""
        is_requested = at in self._requested
        advances = at >= self._now and self._spec.advance is not None
        carries_out = advances or at in self._publishes
        while True:
            played = self._make_pass(at, carries_out)
            has_effect = self._carry_out(played) if carries_out else False
            if is_requested or (advances and has_effect):
                yield played
                is_requested, self._unreported = False, None
            elif advances:
                self._unreported = played
            if not (advances and has_effect):
                break
        self._requeue_at = played.decision.next
        stages, variants = played.decision.stages.values(), played.decision.variants.values()
        self._is_finished = not any(it.queued for it in stages) and all(
            it.state in _FINAL_STATES for it in variants
        )

    def _make_pass(self, at: datetime, carries_out: bool) -> PlayedPass:
        """Make the pass at an instant, repeated until its history is on record."""
        world = self._world
        while True:
            self._passes += 1
            if self._passes > MAX_PASSES:
                raise InvalidInput(
                    f"more than {MAX_PASSES} passes are needed up to {at:%Y-%m-%dT%H:%M:%SZ}",
                    reason="LimitExceeded",
                    remedy="set spec.advance.until",
                )
            world.apply_stated_drafts(at)
            world.update_drafts(
                choose_candidates(world.build_facts(at)), at, is_past=at < self._now
            )
            self._timeline.deliver_pending_answers(world)
            facts = world.build_facts(at)
            decision = self._evaluate_policy(facts)
            recorded_history = world.history
            world.record_decision(decision)
            # A verdict recorded in this pass may decide another stage, which a sweep sees
            # in its next pass.
            if decision.history == recorded_history:
                return PlayedPass(facts, decision, carries_out)

    def _carry_out(self, played: PlayedPass) -> bool:
        """Carry out what the gates allow; return whether there was anything to do."""
        decision = played.decision
        published = self._world.carry_out(decision, played.at)
        if (advance := self._spec.advance) is not None:
            for name in published:
                variant = self._world.variants[name]
                delay = variant.stated.ready_after or advance.ready_after or timedelta(0)
                at, change = self._timeline.verification_change(variant, played.at + delay)
                if delay:
                    heappush(self._queue, (at, next(self._sequence), change))
                else:
                    change(self._world)
        return bool(published) or any(variant.release for variant in decision.variants.values())

    def _next_instant(self) -> datetime | None:
        requeue_at = self._requeue_at
        next_change = self._queue[0][0] if self._queue else None
        if requeue_at is not None and (next_change is None or requeue_at < next_change):
            # A timer matters after `now` only if the scenario advances by itself.
            advances = self._spec.advance is not None and not self._is_finished
            if (
                requeue_at <= self._now
                or requeue_at < max(self._requested)
                or (advances and requeue_at <= self._until)
            ):
                return requeue_at
        return None if next_change is None or next_change > self._until else next_change

    def _stated_history(self) -> dict[tuple[str, str], RevisionHistory]:
        instant = self._spec.resolve_instant
        return {
            (past.stage, past.revision): RevisionHistory(
                instant(past.passed) if past.passed is not None else None,
                instant(past.left) if past.left is not None else None,
                past.soaked or timedelta(0),
            )
            for past in self._spec.history
        }


def build_simulation(scenario: Scenario, moments: Sequence[PlayedPass]) -> Simulation:
    """Build the view of a played scenario; `moments` are its passes, at least one."""
    meta = scenario.metadata
    return Simulation(
        metadata=ViewMeta(name=meta.name, namespace=meta.namespace),
        policy=moments[0].facts.name,
        moments=tuple(build_moment_view(moment) for moment in moments),
    )


def build_moment_view(played: PlayedPass) -> MomentView:
    """Build the view of one pass."""
    decision = played.decision
    variants_by_stage: dict[str, list[VariantResult]] = {name: [] for name in decision.stages}
    variants_without_stage: list[VariantResult] = []
    for variant in decision.variants.values():
        variants_by_stage.get(variant.stage, variants_without_stage).append(variant)
    return MomentView(
        at=played.at,
        carried_out=played.is_carried_out,
        stages=tuple(
            _build_stage_view(stage, variants_by_stage[name])
            for name, stage in decision.stages.items()
        ),
        in_no_stage=tuple(_build_held_view(variant) for variant in variants_without_stage),
        holds=tuple(map(build_reason_view, decision.holds)),
        next=decision.next,
    )


def build_reason_view(hold: Hold) -> ReasonView:
    """Build the view of one hold."""
    return ReasonView(
        class_=classify_reason(hold.reason),
        reason=str(hold.reason),
        message=hold.message,
        who=hold.who,
        since=hold.since,
        until=hold.until,
    )


def _build_stage_view(stage: StageResult, variants: Iterable[VariantResult]) -> StageMoment:
    return StageMoment(
        stage=stage.name,
        candidate=stage.candidate,
        gate=stage.gate,
        verdict=stage.verdict,
        verdicts=stage.verdicts,
        halted=stage.halted,
        budget=stage.budget,
        aggregates=stage.aggregates,
        counts=stage.counts,
        released=stage.released,
        published=tuple(variant.name for variant in variants if variant.publish),
        held=tuple(_build_held_view(variant) for variant in variants if variant.holds),
        holds=tuple(map(build_reason_view, stage.holds)),
        queued=stage.queued,
        others=tuple(
            OtherRevisionMoment(
                revision=other.revision,
                newer=other.newer,
                reasons=tuple(map(build_reason_view, other.holds)),
            )
            for other in stage.others
        ),
        next=stage.next,
    )


def _build_held_view(variant: VariantResult) -> HeldView:
    return HeldView(
        variant=variant.name,
        state=variant.state,
        reasons=tuple(map(build_reason_view, variant.holds)),
    )
