"""Played passes of a scenario as the data that `fanout test --show` prints."""

from collections.abc import Iterable, Sequence

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
from fanout.scenarios.scenario_player import PlayedPass


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
