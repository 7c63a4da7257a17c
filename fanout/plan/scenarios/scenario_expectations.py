"""Comparison of a played scenario with the expectations of its author."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from datetime import datetime
from typing import Any

from fanout.api.field_errors import FieldPath
from fanout.api.reasons import classify_reason
from fanout.api.scenarios.scenario import (
    Expectation,
    ExpectedRevision,
    ExpectedStage,
    ExpectedVariant,
    Scenario,
)
from fanout.gates.evaluation_results import PolicyEvaluation, StageEvaluation
from fanout.gates.gate_facts import Hold
from fanout.plan.records.policy_status import format_instant
from fanout.plan.scenarios.scenario_player import PlayedPass
from fanout.values import frozen

ExpectedValue = str | int | bool | tuple[str, ...] | tuple[int, ...] | None


@frozen
class ComparedValue:
    """One expected value and the actual one; `path` is that of the expectation."""

    _: KW_ONLY
    at: datetime
    subject: str
    path: FieldPath  # of the expectation
    expected: ExpectedValue
    actual: ExpectedValue
    explanation: str  # of the subject, by the gates

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
        yield from _compare_policy(scenario, moment, expected, path)
        for number, stage in enumerate(expected.stages):
            yield from _compare_stage(scenario, moment, stage, (*path, "stages", number))
        for number, variant in enumerate(expected.variants):
            yield from _compare_variant(moment, variant, (*path, "variants", number))


def _compare_policy(
    scenario: Scenario, moment: PlayedPass, expected: Expectation, path: FieldPath
) -> Iterator[ComparedValue]:
    decision = moment.decision
    explanation = _join_sentences(decision.holds)
    if expected.held is not None:
        yield _compare_policy_value(
            moment,
            "policy",
            (*path, "held"),
            _sorted_unique(expected.held),
            _reason_classes(decision.holds),
        )
    if expected.next is not None:
        wanted = format_instant(scenario.spec.resolve_instant(expected.next))
        yield ComparedValue(
            at=moment.at,
            subject="policy",
            path=(*path, "next"),
            expected=wanted,
            actual=_format_instant(decision.next),
            explanation=explanation,
        )


def _compare_stage(
    scenario: Scenario, moment: PlayedPass, expected: ExpectedStage, path: FieldPath
) -> Iterator[ComparedValue]:
    decision = moment.decision
    stage = decision.stages[expected.stage]
    aggregates = stage.aggregates
    stage_variants = [
        variant for variant in decision.variants.values() if variant.stage == stage.name
    ]
    holds = [*stage.holds, *(hold for variant in stage_variants for hold in variant.holds)]
    actual: Mapping[str, ExpectedValue] = {
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
        "published": _sorted_unique(variant.name for variant in stage_variants if variant.publish),
        "held": _reason_classes(holds),
        "queued": stage.queued,
        "next": _format_instant(stage.next),
    }
    # The keys above are the field names of the expectation's model.
    wanted: dict[str, Any] = {name: getattr(expected, name) for name in actual}
    for name in ("published", "held"):
        wanted[name] = None if wanted[name] is None else _sorted_unique(wanted[name])
    if expected.next is not None:
        wanted["next"] = format_instant(scenario.spec.resolve_instant(expected.next))
    for name, value in wanted.items():
        if value is not None:
            field = (*path, expected.__class__.model_fields[name].alias or name)
            expected_value = str(value) if name in ("gate", "verdict") else value
            explanation = _join_sentences(stage.holds)
            yield ComparedValue(
                at=moment.at,
                subject=f"stage {stage.name}",
                path=field,
                expected=expected_value,
                actual=actual[name],
                explanation=explanation,
            )
    if expected.others is not None:
        yield from _compare_other_revisions(moment, stage, expected.others, (*path, "others"))


def _compare_other_revisions(
    moment: PlayedPass,
    stage: StageEvaluation,
    expected: Sequence[ExpectedRevision],
    path: FieldPath,
) -> Iterator[ComparedValue]:
    """Compare the other revisions of a stage, and the holds of each expected one."""
    subject = f"stage {stage.name}"
    by_revision = {other.revision: other for other in stage.alternatives}
    wanted = _sorted_unique(other.revision for other in expected)
    explanation = _join_sentences(hold for other in stage.alternatives for hold in other.holds)
    yield ComparedValue(
        at=moment.at,
        subject=subject,
        path=path,
        expected=wanted,
        actual=_sorted_unique(by_revision),
        explanation=explanation,
    )
    for index, revision in enumerate(expected):
        other = by_revision.get(revision.revision)
        if other is None:
            continue
        rows: tuple[tuple[str, ExpectedValue, ExpectedValue], ...] = (
            ("newer", revision.newer, other.newer),
            (
                "held",
                None if revision.held is None else _sorted_unique(revision.held),
                _reason_classes(other.holds),
            ),
            (
                "reasons",
                None if revision.reasons is None else _sorted_unique(revision.reasons),
                _sorted_unique(hold.reason for hold in other.holds),
            ),
        )
        revision_subject = f"{subject}, revision {revision.revision}"
        for name, expected_value, actual in rows:
            if expected_value is not None:
                field_path = (*path, index, name)
                yield ComparedValue(
                    at=moment.at,
                    subject=revision_subject,
                    path=field_path,
                    expected=expected_value,
                    actual=actual,
                    explanation=_join_sentences(other.holds),
                )


def _compare_variant(
    moment: PlayedPass, expected: ExpectedVariant, path: FieldPath
) -> Iterator[ComparedValue]:
    decision = moment.decision.variants.get(expected.variant)
    subject = f"variant {expected.variant}"
    if decision is None:
        yield _compare_policy_value(moment, subject, (*path, "variant"), "there", "gone")
        return
    facts = next(it for it in moment.facts.variants if it.name == decision.name)
    published_revision = facts.published.revision if facts.published else ""
    rows: tuple[tuple[str, ExpectedValue, ExpectedValue], ...] = (
        ("state", expected.state, decision.state.value),
        ("revision", expected.revision, published_revision),
        ("released", expected.released, decision.release),
        ("published", expected.published, decision.publish),
        (
            "held",
            None if expected.held is None else _sorted_unique(expected.held),
            _reason_classes(decision.holds),
        ),
        (
            "reasons",
            None if expected.reasons is None else _sorted_unique(expected.reasons),
            _sorted_unique(hold.reason for hold in decision.holds),
        ),
    )
    for name, wanted, actual in rows:
        if wanted is not None:
            yield ComparedValue(
                at=moment.at,
                subject=subject,
                path=(*path, name),
                expected=wanted,
                actual=actual,
                explanation=_join_sentences(decision.holds),
            )


def _compare_waves(scenario: Scenario, moments: Sequence[PlayedPass]) -> Iterator[ComparedValue]:
    for index, expected in enumerate(scenario.spec.expect_waves):
        waves = tuple(
            len(moment.decision.stages[expected.stage].released)
            for moment in moments
            if moment.is_carried_out and moment.decision.stages[expected.stage].released
        )
        path = ("spec", "expectWaves", index, "waves")
        last = moments[-1]
        explanation = _join_sentences(last.decision.stages[expected.stage].holds)
        subject = f"stage {expected.stage}"
        yield ComparedValue(
            at=last.at,
            subject=subject,
            path=path,
            expected=tuple(expected.waves),
            actual=waves,
            explanation=explanation,
        )


def _compare_policy_value(
    moment: PlayedPass,
    subject: str,
    path: FieldPath,
    expected: ExpectedValue,
    actual: ExpectedValue,
) -> ComparedValue:
    decision: PolicyEvaluation = moment.decision
    return ComparedValue(
        at=moment.at,
        subject=subject,
        path=path,
        expected=expected,
        actual=actual,
        explanation=_join_sentences(decision.holds),
    )


def _join_sentences(holds: Iterable[Hold]) -> str:
    return "; ".join(dict.fromkeys(hold.sentence for hold in holds))


def _reason_classes(holds: Iterable[Hold]) -> tuple[str, ...]:
    return _sorted_unique(classify_reason(hold.reason).value for hold in holds)


def _sorted_unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values}))


def _format_instant(at: datetime | None) -> str:
    return "" if at is None else format_instant(at)
