"""A played moment as the data that `fanout simulate` prints."""

from collections.abc import Iterable
from datetime import datetime

from fanout.api.reason_classes import class_of
from fanout.api.scenario import Scenario
from fanout.api.simulation import (
    AggregatesView,
    HeldView,
    MomentView,
    OtherRevisionMoment,
    ReasonView,
    Simulation,
    StageMoment,
)
from fanout.api.views import ViewMeta
from fanout.gates.answer import StageDecision, VariantDecision
from fanout.gates.facts import Hold
from fanout.plan.scenarios.play import Moment
from fanout.plan.status import written


def simulation(scenario: Scenario, policy: str, moments: Iterable[Moment]) -> Simulation:
    """All that was played."""
    meta = scenario.metadata
    return Simulation(
        metadata=ViewMeta(name=meta.name, namespace=meta.namespace),
        policy=policy,
        moments=tuple(view(moment) for moment in moments),
    )


def view(moment: Moment) -> MomentView:
    """One pass as data."""
    decision = moment.decision
    inside: dict[str, list[VariantDecision]] = {name: [] for name in decision.stages}
    outside: list[VariantDecision] = []
    for item in decision.variants.values():
        inside.get(item.stage, outside).append(item)
    return MomentView(
        at=written(moment.at),
        carried_out=moment.carried,
        stages=tuple(_stage(one, inside[name]) for name, one in decision.stages.items()),
        in_no_stage=tuple(_held(item) for item in outside),
        holds=tuple(map(reason, decision.holds)),
        next=_instant(decision.next),
    )


def reason(hold: Hold) -> ReasonView:
    """One reason as data."""
    return ReasonView(
        class_=class_of(hold.reason),
        reason=str(hold.reason),
        message=hold.sentence,
        who=hold.who,
        since=_instant(hold.since),
        until=_instant(hold.until),
    )


def _stage(stage: StageDecision, variants: Iterable[VariantDecision]) -> StageMoment:
    numbers = stage.aggregates
    return StageMoment(
        stage=stage.name,
        candidate=stage.candidate,
        gate=stage.gate.value,
        verdict=stage.verdict.value,
        verdicts={name: verdict.value for name, verdict in stage.verdicts.items()},
        halted=stage.halted,
        budget=stage.budget,
        aggregates=AggregatesView(
            total=numbers.total,
            updated=numbers.updated,
            ready=numbers.ready,
            in_flight=numbers.in_flight,
            failed=numbers.failed,
        ),
        counts={state.value: number for state, number in stage.counts.items()},
        released=stage.released,
        published=tuple(item.name for item in variants if item.publish),
        held=tuple(_held(item) for item in variants if item.holds),
        holds=tuple(map(reason, stage.holds)),
        queued=stage.queued,
        others=tuple(
            OtherRevisionMoment(
                revision=other.revision,
                newer=other.newer,
                reasons=tuple(map(reason, other.holds)),
            )
            for other in stage.others
        ),
        next=_instant(stage.next),
    )


def _held(item: VariantDecision) -> HeldView:
    return HeldView(
        variant=item.name, state=item.state.value, reasons=tuple(map(reason, item.holds))
    )


def _instant(at: datetime | None) -> str | None:
    return None if at is None else written(at)
