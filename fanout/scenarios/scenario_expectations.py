"""Comparison of a played scenario with the expectations of its author."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from fanout.api.durations import format_instant
from fanout.api.field_errors import FieldPath
from fanout.api.object_meta import Model
from fanout.api.reasons import classify_reason
from fanout.api.results import Hold
from fanout.api.scenario import ExpectedStage, ExpectedVariant, Scenario
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
    return tuple(_Comparison(scenario, moments).compare())


class _Comparison:
    def __init__(self, scenario: Scenario, moments: Sequence[PlayedPass]) -> None:
        self._spec, self._moments = scenario.spec, moments
        self._first_pass: dict[datetime, PlayedPass] = {}
        for moment in moments:
            self._first_pass.setdefault(moment.at, moment)

    def compare(self) -> Iterator[ComparedValue]:
        """Yield the compared values, in written order."""
        for index, expected in enumerate(self._spec.expect):
            moment = self._first_pass[self._spec.resolve_instant(expected.at)]
            path = ("spec", "expect", index)
            holds, at = moment.decision.holds, moment.decision.next
            yield from self._compare_fields(
                _build_subject(moment, "policy", holds),
                path,
                expected,
                {"held": _reason_classes(holds), "next": format_instant(at) if at else ""},
            )
            for number, stage in enumerate(expected.stages):
                yield from self._compare_stage(moment, stage, (*path, "stages", number))
            for number, variant in enumerate(expected.variants):
                yield from self._compare_variant(moment, variant, (*path, "variants", number))
        for index, waves in enumerate(self._spec.expect_waves):
            evaluations = [(it, it.decision.stages[waves.stage]) for it in self._moments]
            last_pass, last_evaluation = evaluations[-1]
            released = (len(stage.released) for it, stage in evaluations if it.is_carried_out)
            yield ComparedValue(
                _build_subject(last_pass, f"stage {waves.stage}", last_evaluation.holds),
                ("spec", "expectWaves", index, "waves"),
                tuple(waves.waves),
                tuple(filter(None, released)),
            )

    def _compare_stage(
        self, moment: PlayedPass, expected: ExpectedStage, path: FieldPath
    ) -> Iterator[ComparedValue]:
        stage = moment.decision.stages[expected.stage]
        aggregates = stage.aggregates
        stage_variants = [it for it in moment.decision.variants.values() if it.stage == stage.name]
        holds = [*stage.holds, *(hold for variant in stage_variants for hold in variant.holds)]
        name = f"stage {stage.name}"
        yield from self._compare_fields(
            _build_subject(moment, name, stage.holds),
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
                "next": format_instant(stage.next) if stage.next else "",
            },
        )
        if expected.others is None:
            return
        others = {other.revision: other for other in stage.others}
        yield ComparedValue(
            _build_subject(moment, name, [hold for it in stage.others for hold in it.holds]),
            (*path, "others"),
            _sorted_unique(it.revision for it in expected.others),
            _sorted_unique(others),
        )
        for index, revision in enumerate(expected.others):
            if (other := others.get(revision.revision)) is not None:
                yield from self._compare_fields(
                    _build_subject(moment, f"{name}, revision {revision.revision}", other.holds),
                    (*path, "others", index),
                    revision,
                    {
                        "newer": other.newer,
                        "held": _reason_classes(other.holds),
                        "reasons": _sorted_unique(hold.reason for hold in other.holds),
                    },
                )

    def _compare_variant(
        self, moment: PlayedPass, expected: ExpectedVariant, path: FieldPath
    ) -> Iterator[ComparedValue]:
        decision = moment.decision.variants.get(expected.variant)
        name = f"variant {expected.variant}"
        if decision is None:
            subject = _build_subject(moment, name, moment.decision.holds)
            yield ComparedValue(subject, (*path, "variant"), "there", "gone")
            return
        facts = next(it for it in moment.facts.variants if it.name == decision.name)
        yield from self._compare_fields(
            _build_subject(moment, name, decision.holds),
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

    def _compare_fields(
        self,
        subject: ComparedSubject,
        path: FieldPath,
        expected: Model,
        actual: Mapping[str, ExpectedValue],
    ) -> Iterator[ComparedValue]:
        """Compare each stated field of `expected`; the keys of `actual` are names of its fields."""
        for name, actual_value in actual.items():
            if (wanted := getattr(expected, name)) is None:
                continue
            if name == "next":
                wanted = format_instant(self._spec.resolve_instant(wanted))
            elif name in ("gate", "verdict"):
                wanted = str(wanted)
            elif name in _UNORDERED_LISTS and isinstance(wanted, tuple):
                wanted = _sorted_unique(wanted)
            field = (*path, type(expected).model_fields[name].alias or name)
            yield ComparedValue(subject, field, wanted, actual_value)


def _build_subject(moment: PlayedPass, name: str, holds: Iterable[Hold]) -> ComparedSubject:
    sentences = dict.fromkeys(hold.message for hold in holds)
    return ComparedSubject(moment.at, name, "; ".join(sentences))


def _reason_classes(holds: Iterable[Hold]) -> tuple[str, ...]:
    return _sorted_unique(classify_reason(hold.reason).value for hold in holds)


def _sorted_unique(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values}))
