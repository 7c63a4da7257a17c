"""Comparison of a played scenario with the expectations of its author."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.durations import format_instant
from fanout.api.field_errors import FieldPath
from fanout.api.reasons import classify_reason
from fanout.api.results import Hold, StageResult
from fanout.api.scenario import (
    ExpectedRevision,
    ExpectedStage,
    ExpectedVariant,
    Scenario,
    ScenarioModel,
)
from fanout.scenarios.scenario_player import PlayedPass
from fanout.values import Value

ExpectedValue = str | int | bool | tuple[str, ...] | tuple[int, ...] | None
_UNORDERED_LISTS = ("held", "reasons", "published")


class ComparedSubject(Value):
    """Subject of an expectation: policy, stage, revision or variant at one moment."""

    at: datetime
    name: str
    explanation: str  # by the gates


class ComparedValue(Value):
    """One expected value and the actual one; `path` is that of the expectation."""

    subject: ComparedSubject
    path: FieldPath
    expected: ExpectedValue
    actual: ExpectedValue

    @property
    def differs(self) -> bool:
        """Return whether the actual value is not the expected one."""
        return self.expected != self.actual


def compare_expectations(
    scenario: Scenario, moments: Sequence[PlayedPass]
) -> tuple[ComparedValue, ...]:
    """Compare all expectations with the played passes, in written order."""
    return (*_compare_moments(scenario, moments), *_compare_waves(scenario, moments))


def _compare_moments(scenario: Scenario, moments: Sequence[PlayedPass]) -> Iterator[ComparedValue]:
    first_pass: dict[datetime, PlayedPass] = {}
    for moment in moments:
        first_pass.setdefault(moment.at, moment)
    for index, expected in enumerate(scenario.spec.expect):
        moment = first_pass[scenario.spec.resolve_instant(expected.at)]
        path = ("spec", "expect", index)
        holds = moment.decision.holds
        yield from _compare_fields(
            scenario,
            ComparedSubject(moment.at, "policy", _join_sentences(holds)),
            path,
            expected,
            {"held": _reason_classes(holds), "next": _format_instant(moment.decision.next)},
        )
        for number, stage in enumerate(expected.stages):
            yield from _compare_stage(scenario, moment, stage, (*path, "stages", number))
        for number, variant in enumerate(expected.variants):
            yield from _compare_variant(scenario, moment, variant, (*path, "variants", number))


def _compare_stage(
    scenario: Scenario, moment: PlayedPass, expected: ExpectedStage, path: FieldPath
) -> Iterator[ComparedValue]:
    stage = moment.decision.stages[expected.stage]
    aggregates = stage.aggregates
    stage_variants = [it for it in moment.decision.variants.values() if it.stage == stage.name]
    holds = [*stage.holds, *(hold for variant in stage_variants for hold in variant.holds)]
    yield from _compare_fields(
        scenario,
        ComparedSubject(moment.at, f"stage {stage.name}", _join_sentences(stage.holds)),
        path,
        expected,
        {
            "candidate": stage.candidate,
            "gate": stage.gate.value,
            "verdict": stage.verdict.value,
            "halted": stage.halted,
            "budget": stage.budget,
            "in_flight": aggregates.in_flight,
            "ready": aggregates.ready,
            "failed": aggregates.failed,
            "total": aggregates.total,
            "released": stage.released,
            "releases": len(stage.released),
            "published": _sorted_unique(it.name for it in stage_variants if it.publish),
            "held": _reason_classes(holds),
            "queued": stage.queued,
            "next": _format_instant(stage.next),
        },
    )
    if expected.others is not None:
        yield from _compare_other_revisions(
            scenario, moment, stage, expected.others, (*path, "others")
        )


def _compare_other_revisions(
    scenario: Scenario,
    moment: PlayedPass,
    stage: StageResult,
    expected: Sequence[ExpectedRevision],
    path: FieldPath,
) -> Iterator[ComparedValue]:
    """Compare the other revisions of a stage, and the holds of each expected one."""
    by_revision = {other.revision: other for other in stage.others}
    explanation = _join_sentences(hold for other in stage.others for hold in other.holds)
    yield ComparedValue(
        ComparedSubject(moment.at, f"stage {stage.name}", explanation),
        path,
        _sorted_unique(other.revision for other in expected),
        _sorted_unique(by_revision),
    )
    for index, revision in enumerate(expected):
        other = by_revision.get(revision.revision)
        if other is None:
            continue
        name = f"stage {stage.name}, revision {revision.revision}"
        yield from _compare_fields(
            scenario,
            ComparedSubject(moment.at, name, _join_sentences(other.holds)),
            (*path, index),
            revision,
            {
                "newer": other.newer,
                "held": _reason_classes(other.holds),
                "reasons": _sorted_unique(hold.reason for hold in other.holds),
            },
        )


def _compare_variant(
    scenario: Scenario, moment: PlayedPass, expected: ExpectedVariant, path: FieldPath
) -> Iterator[ComparedValue]:
    decision = moment.decision.variants.get(expected.variant)
    name = f"variant {expected.variant}"
    if decision is None:
        subject = ComparedSubject(moment.at, name, _join_sentences(moment.decision.holds))
        yield ComparedValue(subject, (*path, "variant"), "there", "gone")
        return
    facts = next(it for it in moment.facts.variants if it.name == decision.name)
    yield from _compare_fields(
        scenario,
        ComparedSubject(moment.at, name, _join_sentences(decision.holds)),
        path,
        expected,
        {
            "state": str(decision.state),
            "revision": facts.published.revision if facts.published else "",
            "released": decision.release,
            "published": decision.publish,
            "held": _reason_classes(decision.holds),
            "reasons": _sorted_unique(hold.reason for hold in decision.holds),
        },
    )


def _compare_waves(scenario: Scenario, moments: Sequence[PlayedPass]) -> Iterator[ComparedValue]:
    for index, expected in enumerate(scenario.spec.expect_waves):
        evaluations = [(it, it.decision.stages[expected.stage]) for it in moments]
        last_pass, last_evaluation = evaluations[-1]
        yield ComparedValue(
            ComparedSubject(
                last_pass.at, f"stage {expected.stage}", _join_sentences(last_evaluation.holds)
            ),
            ("spec", "expectWaves", index, "waves"),
            tuple(expected.waves),
            tuple(
                len(stage.released)
                for played, stage in evaluations
                if played.is_carried_out and stage.released
            ),
        )


def _compare_fields(
    scenario: Scenario,
    subject: ComparedSubject,
    path: FieldPath,
    expected: ScenarioModel,
    actual: Mapping[str, ExpectedValue],
) -> Iterator[ComparedValue]:
    """Compare each stated field of `expected`; the keys of `actual` are names of its fields."""
    for name, actual_value in actual.items():
        wanted = getattr(expected, name)
        if wanted is None:
            continue
        if name == "next":
            wanted = format_instant(scenario.spec.resolve_instant(wanted))
        elif name in ("gate", "verdict"):
            wanted = str(wanted)
        elif name in _UNORDERED_LISTS and isinstance(wanted, tuple):
            wanted = _sorted_unique(wanted)
        field = (*path, type(expected).model_fields[name].alias or name)
        yield ComparedValue(subject, field, wanted, actual_value)


def _join_sentences(holds: Iterable[Hold]) -> str:
    return "; ".join(dict.fromkeys(hold.message for hold in holds))


def _reason_classes(holds: Iterable[Hold]) -> tuple[str, ...]:
    return _sorted_unique(classify_reason(hold.reason).value for hold in holds)


def _sorted_unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values}))


def _format_instant(at: datetime | None) -> str:
    return "" if at is None else format_instant(at)
