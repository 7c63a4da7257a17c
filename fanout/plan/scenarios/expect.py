"""What of a played scenario is not as its author expected."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from fanout.api.faults import Path
from fanout.api.reason_classes import class_of
from fanout.api.scenario import (
    Expectation,
    ExpectedRevision,
    ExpectedStage,
    ExpectedVariant,
    Scenario,
)
from fanout.gates.answer import PolicyDecision, StageDecision
from fanout.gates.facts import Hold
from fanout.plan.scenarios.play import Moment
from fanout.plan.status import written
from fanout.values import frozen

Value = str | int | bool | tuple[str, ...] | tuple[int, ...] | None


@frozen
class Compared:
    """One value that was expected, and what came out."""

    at: datetime
    subject: str
    path: Path  # of the expectation
    expected: Value
    found: Value
    why: str  # what the engine says about the subject

    @property
    def differs(self) -> bool:
        """Is it another than was expected?"""
        return self.expected != self.found


def compare(scenario: Scenario, moments: Sequence[Moment]) -> tuple[Compared, ...]:
    """All that is expected beside what came out, in the order in which it is written."""
    return (*_expected(scenario, moments), *_waves(scenario, moments))


def _expected(scenario: Scenario, moments: Sequence[Moment]) -> Iterator[Compared]:
    first: dict[datetime, Moment] = {}
    for moment in moments:
        first.setdefault(moment.at, moment)
    for index, expected in enumerate(scenario.spec.expect):
        moment = first[scenario.spec.instant(expected.at)]
        path = ("spec", "expect", index)
        yield from _policy(scenario, moment, expected, path)
        for number, stage in enumerate(expected.stages):
            yield from _stage(scenario, moment, stage, (*path, "stages", number))
        for number, variant in enumerate(expected.variants):
            yield from _variant(moment, variant, (*path, "variants", number))


def _policy(
    scenario: Scenario, moment: Moment, expected: Expectation, path: Path
) -> Iterator[Compared]:
    decision = moment.decision
    why = _said(decision.holds)
    if expected.held is not None:
        yield _at(moment, "policy", (*path, "held"), _set(expected.held), _classes(decision.holds))
    if expected.next is not None:
        wanted = written(scenario.spec.instant(expected.next))
        yield Compared(moment.at, "policy", (*path, "next"), wanted, _instant(decision.next), why)


def _stage(
    scenario: Scenario, moment: Moment, expected: ExpectedStage, path: Path
) -> Iterator[Compared]:
    decision = moment.decision
    stage = decision.stages[expected.stage]
    numbers = stage.aggregates
    mine = [item for item in decision.variants.values() if item.stage == stage.name]
    holds = [*stage.holds, *(hold for item in mine for hold in item.holds)]
    found: Mapping[str, Value] = {
        "candidate": stage.candidate,
        "gate": stage.gate.value,
        "verdict": stage.verdict.value,
        "halted": stage.halted,
        "budget": stage.budget,
        "in_flight": numbers.in_flight,
        "ready": numbers.ready,
        "failed": numbers.failed,
        "total": numbers.total,
        "released": stage.released,
        "releases": len(stage.released),
        "published": _set(item.name for item in mine if item.publish),
        "held": _classes(holds),
        "queued": stage.queued,
        "next": _instant(stage.next),
    }
    wanted: dict[str, Any] = {name: getattr(expected, name) for name in found}
    for name in ("published", "held"):
        wanted[name] = None if wanted[name] is None else _set(wanted[name])
    if expected.next is not None:
        wanted["next"] = written(scenario.spec.instant(expected.next))
    for name, value in wanted.items():
        if value is not None:
            field = (*path, expected.__class__.model_fields[name].alias or name)
            said = str(value) if name in ("gate", "verdict") else value
            why = _said(stage.holds)
            yield Compared(moment.at, f"stage {stage.name}", field, said, found[name], why)
    if expected.others is not None:
        yield from _others(moment, stage, expected.others, (*path, "others"))


def _others(
    moment: Moment, stage: StageDecision, expected: Sequence[ExpectedRevision], path: Path
) -> Iterator[Compared]:
    """Which other revisions there are, and of each that is expected why it is not taken."""
    subject = f"stage {stage.name}"
    there = {other.revision: other for other in stage.others}
    wanted = _set(other.revision for other in expected)
    why = _said(hold for other in stage.others for hold in other.holds)
    yield Compared(moment.at, subject, path, wanted, _set(there), why)
    for index, one in enumerate(expected):
        other = there.get(one.revision)
        if other is None:
            continue
        rows: tuple[tuple[str, Value, Value], ...] = (
            ("newer", one.newer, other.newer),
            ("held", None if one.held is None else _set(one.held), _classes(other.holds)),
            (
                "reasons",
                None if one.reasons is None else _set(one.reasons),
                _set(hold.reason for hold in other.holds),
            ),
        )
        about = f"{subject}, revision {one.revision}"
        for name, asked, found in rows:
            if asked is not None:
                where = (*path, index, name)
                yield Compared(moment.at, about, where, asked, found, _said(other.holds))


def _variant(moment: Moment, expected: ExpectedVariant, path: Path) -> Iterator[Compared]:
    item = moment.decision.variants.get(expected.variant)
    subject = f"variant {expected.variant}"
    if item is None:
        yield _at(moment, subject, (*path, "variant"), "there", "gone")
        return
    facts = next(it for it in moment.facts.variants if it.name == item.name)
    has = facts.published.revision if facts.published else ""
    rows: tuple[tuple[str, Value, Value], ...] = (
        ("state", expected.state, item.state.value),
        ("revision", expected.revision, has),
        ("released", expected.released, item.release),
        ("published", expected.published, item.publish),
        ("held", None if expected.held is None else _set(expected.held), _classes(item.holds)),
        (
            "reasons",
            None if expected.reasons is None else _set(expected.reasons),
            _set(hold.reason for hold in item.holds),
        ),
    )
    for name, wanted, found in rows:
        if wanted is not None:
            yield Compared(moment.at, subject, (*path, name), wanted, found, _said(item.holds))


def _waves(scenario: Scenario, moments: Sequence[Moment]) -> Iterator[Compared]:
    for index, expected in enumerate(scenario.spec.expect_waves):
        waves = tuple(
            len(moment.decision.stages[expected.stage].released)
            for moment in moments
            if moment.carried and moment.decision.stages[expected.stage].released
        )
        path = ("spec", "expectWaves", index, "waves")
        last = moments[-1]
        why = _said(last.decision.stages[expected.stage].holds)
        subject = f"stage {expected.stage}"
        yield Compared(last.at, subject, path, tuple(expected.waves), waves, why)


def _at(moment: Moment, subject: str, path: Path, expected: Value, found: Value) -> Compared:
    decision: PolicyDecision = moment.decision
    return Compared(moment.at, subject, path, expected, found, _said(decision.holds))


def _said(holds: Iterable[Hold]) -> str:
    return "; ".join(dict.fromkeys(hold.sentence for hold in holds))


def _classes(holds: Iterable[Hold]) -> tuple[str, ...]:
    return _set(class_of(hold.reason).value for hold in holds)


def _set(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({str(value) for value in values}))


def _instant(at: datetime | None) -> str:
    return "" if at is None else written(at)
