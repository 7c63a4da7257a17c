"""What can be wrong with a scenario as a whole: names that nothing has, and times that go back.

Asked when the stages are known: its own, or those of the policy that it names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from fanout.api.checks import Check
from fanout.api.faults import Fault, Path
from fanout.api.nearest import suggestion
from fanout.api.reasons import Reason
from fanout.api.records import Action
from fanout.api.scenario import Event, Scenario, names_of
from fanout.api.scenario_state import StatedVariant, Stay
from fanout.api.stages import Stage

_SPEC: Path = ("spec",)
ANSWERED = ("report", "commitStatus", "object", "prometheus", "http")
_NOT_STATED: Mapping[Action, str] = {
    Action.RESOLVE: "state how many conflicts are left: draft.disputed",
    Action.ACCEPT_RECORDS: "a scenario has no records that could be put back",
    Action.CONFIRM_REMOVAL: "state that the variant goes: removed, or an event with goes",
}


@dataclass(slots=True)
class _Known:
    """The names that a scenario may use."""

    stages: Mapping[str, Stage]
    variants: dict[str, str] = field(default_factory=dict)  # name → its stage
    revisions: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def stage(self, name: str | None, path: Path) -> Iterator[Fault]:
        if name and name not in self.stages:
            remedy = suggestion(name, sorted(self.stages), _there("stages", self.stages))
            yield Fault((*path, "stage"), f"there is no stage {name}", remedy)

    def about(self, names: Iterable[str], path: Path) -> Iterator[Fault]:
        for index, name in enumerate(names):
            if name not in self.variants:
                remedy = suggestion(name, sorted(self.variants), "state it under variants")
                yield Fault((*path, index), f"there is no variant {name}", remedy)

    def revision(self, name: str | None, path: Path) -> Iterator[Fault]:
        if name and name not in self.revisions:
            remedy = suggestion(name, sorted(self.revisions), "add it to spec.revisions")
            yield Fault((*path, "revision"), f"there is no revision {name}", remedy)

    def check(
        self, stage: str, name: str, path: Path, ways: Sequence[str] = ANSWERED
    ) -> Iterator[Fault]:
        """A check of the stage that is asked in one of these ways."""
        if stage not in self.stages:
            return
        checks = [*self.stages[stage].verification, *self.stages[stage].requires]
        fitting = [it.name for it in checks if _way(it) in ways]
        if name in fitting:
            return
        there = next((_way(it) for it in checks if it.name == name), "")
        problem = (
            f"check {name} of stage {stage} is answered by {there}, not so"
            if there
            else f"stage {stage} has no check {name}"
        )
        yield Fault((*path, "check"), problem, suggestion(name, fitting, _there("checks", fitting)))


def scenario_faults(scenario: Scenario, stages: Sequence[Stage]) -> Iterator[Fault]:
    """Every fault of a scenario that has these stages, each with its field."""
    spec = scenario.spec
    known = _Known({stage.name: stage for stage in stages})
    known.revisions.update(spec.revisions, (it.revision for it in spec.events if it.revision))
    known.revisions.update(past.revision for past in spec.history)
    yield from _own_stages(scenario)
    for path, variant in _variants(scenario):
        known.revisions.update(it.revision for it in (variant, *variant.earlier) if it.revision)
        if path[1] == "variants":
            yield from _twice(variant, path, known)
        known.variants.update(dict.fromkeys(names_of(variant), variant.stage))
    for path, variant in _variants(scenario):
        yield from known.stage(variant.stage, path)
        yield from _variant(scenario, variant, path, known)
    yield from _history(scenario, known)
    yield from _records(scenario, known)
    yield from _events(scenario, known)
    yield from _expectations(scenario, known)


def _own_stages(scenario: Scenario) -> Iterator[Fault]:
    spec = scenario.spec
    for name, given in (("promotion", spec.promotion), ("inFlight", spec.in_flight)):
        if given is not None and not spec.stages:
            problem = "is for a scenario that states its own stages"
            yield Fault((*_SPEC, name), problem, "remove it: the policy and those over it say so")
    groups = [it.group for it in spec.promotion.approvers] if spec.promotion else []
    for index, stage in enumerate(spec.stages):
        for number, check in enumerate(stage.requires):
            for place, group in enumerate(check.approval.from_ if check.approval else ()):
                if group not in groups:
                    path = (*_SPEC, "stages", index, "requires", number, "approval", "from", place)
                    problem = f"there is no group {group} under promotion.approvers"
                    yield Fault(path, problem, suggestion(group, groups, "say who is in it"))
    if spec.advance is None:
        for path, variant in _variants(scenario):
            fields = (("readyAfter", variant.ready_after is not None), ("fails", variant.fails))
            for name, said in fields:
                if said:
                    yield Fault((*path, name), "means nothing without advance", "add spec.advance")


def _variants(scenario: Scenario) -> Iterator[tuple[Path, StatedVariant]]:
    for index, variant in enumerate(scenario.spec.variants):
        yield (*_SPEC, "variants", index), variant
    for index, event in enumerate(scenario.spec.events):
        if event.comes is not None:
            yield (*_SPEC, "events", index, "comes"), event.comes


def _twice(variant: StatedVariant, path: Path, known: _Known) -> Iterator[Fault]:
    for name in names_of(variant):
        if name in known.variants:
            yield Fault((*path, "name"), f"there are two variants {name}", "rename one")
            return


def _variant(
    scenario: Scenario, variant: StatedVariant, path: Path, known: _Known
) -> Iterator[Fault]:
    comes = path[1] == "events"
    at = scenario.spec.events[int(path[2])].at if comes else None
    now = scenario.spec.instant(at)
    before: datetime | None = None
    stays = [((*path, "earlier", index), stay) for index, stay in enumerate(variant.earlier)]
    for where, stay in [*stays, (path, variant)]:
        yield from _stay(scenario, stay, where, now)
        yield from _answers(variant.stage, stay, where, known)
        begins = begun(scenario, stay, now)
        if begins is not None and before is not None and begins < before:
            problem = "was published before what was in force before it"
            yield Fault((*where, "published"), problem, "put the stays in order")
        before = begins or before
    if variant.draft is not None:
        yield from known.revision(variant.draft.revision, (*path, "draft"))
    if variant.released is not None and not variant.drafted:
        yield Fault((*path, "released"), "only a draft is released", "remove drafted: false")
    yield from _not_after(scenario, now, [("released", variant.released)], path)


def begun(scenario: Scenario, stay: Stay, now: datetime) -> datetime | None:
    """When the stay's revision was published; None where there is none."""
    if stay.revision is None:
        return None
    first = next((it for it in (stay.published, stay.ready, stay.failed) if it is not None), None)
    return now if first is None else scenario.spec.instant(first)


def _stay(scenario: Scenario, stay: Stay, path: Path, now: datetime) -> Iterator[Fault]:
    said = [
        (name, when)
        for name, when in (
            ("published", stay.published),
            ("ready", stay.ready),
            ("failed", stay.failed),
            ("withdrawn", stay.withdrawn),
        )
        if when is not None
    ]
    if stay.revision is None:
        for name, _ in said[:1]:
            yield Fault((*path, name), "nothing is in force", "say which revision is")
        return
    if stay.ready is not None and stay.failed is not None:
        yield Fault((*path, "failed"), "what was ready and failed later is withdrawn", "say so")
    if stay.withdrawn is not None and stay.ready is None:
        yield Fault((*path, "withdrawn"), "was never ready", "say since when it was")
    yield from _not_after(scenario, now, said, path)
    instants = [(name, scenario.spec.instant(when)) for name, when in said]
    for (first, earlier), (name, later) in pairwise(instants):
        if later < earlier:
            yield Fault((*path, name), f"comes before {first}", "times do not go back")


def _not_after(
    scenario: Scenario,
    now: datetime,
    said: Iterable[tuple[str, datetime | timedelta | None]],
    path: Path,
) -> Iterator[Fault]:
    for name, when in said:
        if when is not None and scenario.spec.instant(when) > now:
            yield Fault((*path, name), "is after the moment it is stated for", "make it an event")


def _answers(stage: str, stay: Stay, path: Path, known: _Known) -> Iterator[Fault]:
    for index, answer in enumerate(stay.answers):
        at = (*path, "answers", index)
        yield from known.check(stage, answer.check, at)
    empty = stage in known.stages and not known.stages[stage].verification
    for name, given in (("failed", stay.failed), ("withdrawn", stay.withdrawn)):
        if given is not None and empty:
            problem = f"stage {stage} verifies nothing, so nothing can fail"
            yield Fault((*path, name), problem, "remove it, or give the stage a check")


def _way(check: Check) -> str:
    given = {
        "report": check.report,
        "approval": check.approval,
        "commitStatus": check.commit_status,
        "object": check.object,
        "prometheus": check.prometheus,
        "http": check.http,
    }
    return next(name for name, value in given.items() if value is not None)


def _history(scenario: Scenario, known: _Known) -> Iterator[Fault]:
    for index, past in enumerate(scenario.spec.history):
        path = (*_SPEC, "history", index)
        yield from known.stage(past.stage, path)
        instant = scenario.spec.instant
        if past.left and past.passed and instant(past.left) < instant(past.passed):
            yield Fault((*path, "left"), "comes before passed", "times do not go back")


def _records(scenario: Scenario, known: _Known) -> Iterator[Fault]:
    spec = scenario.spec
    for index, evidence in enumerate(spec.evidence):
        event = Event(at=evidence.at, evidence=evidence)
        yield from _said(event, (*_SPEC, "evidence", index), known)
    for index, approval in enumerate(spec.approvals):
        event = Event(at=approval.at, approval=approval)
        yield from _said(event, (*_SPEC, "approvals", index), known)
    for index, decision in enumerate(spec.decisions):
        event = Event(at=decision.at, decision=decision)
        yield from _said(event, (*_SPEC, "decisions", index), known)


def _said(event: Event, path: Path, known: _Known) -> Iterator[Fault]:
    """What is recorded: its stage, its variants, its revision, its check, what it takes back."""
    records = (event.evidence, event.approval, event.decision)
    for record in (it for it in records if it is not None):
        yield from known.stage(record.stage, path)
        yield from known.about(record.variants, (*path, "variants"))
        yield from known.revision(record.revision, path)
        if record.name:
            known.records.add(record.name)
    if event.evidence is not None:
        yield from known.check(event.evidence.stage, event.evidence.check, path, ("report",))
        if (event.evidence.revision is None) == (event.evidence.commit is None):
            problem = "evidence is about a revision or about a commit"
            yield Fault((*path, "revision"), problem, "name one of them")
    if event.approval is not None:
        yield from known.check(event.approval.stage, event.approval.check, path, ("approval",))
        yield from _taken_back("revokes", event.approval.revokes, path, known)
    if event.decision is not None:
        action = event.decision.action
        if action in _NOT_STATED:
            problem = f"the gates are not asked about {action}"
            yield Fault((*path, "action"), problem, _NOT_STATED[action])
        if event.decision.accept_conflicts and not (
            action is Action.PUBLISH and event.decision.variants
        ):
            problem = "only a Publish that names variants accepts merge conflicts"
            yield Fault((*path, "acceptConflicts"), problem, "name them, or remove the field")
        if (action is Action.WITHDRAW) != bool(event.decision.withdraws):
            problem = "a Withdraw, and nothing else, names the record that is taken back"
            yield Fault((*path, "withdraws"), problem, "name it, or remove the field")
        yield from _taken_back("withdraws", event.decision.withdraws, path, known)


def _taken_back(name: str, record: str, path: Path, known: _Known) -> Iterator[Fault]:
    if record and record not in known.records:
        remedy = suggestion(record, sorted(known.records), "give the earlier record this name")
        yield Fault((*path, name), f"there is no earlier record {record}", remedy)


def _events(scenario: Scenario, known: _Known) -> Iterator[Fault]:
    spec = scenario.spec
    latest = spec.instant(None)
    for index, event in enumerate(spec.events):
        path = (*_SPEC, "events", index)
        at = spec.instant(event.at)
        if at < latest:
            problem = "comes before `now`, or before the event above it"
            yield Fault((*path, "at"), problem, "times do not go back")
        latest = max(at, latest)
        for name, record in (
            ("evidence", event.evidence),
            ("approval", event.approval),
            ("decision", event.decision),
        ):
            if record is not None:
                yield from _said(event, (*path, name), known)
                if record.at is not None:
                    yield Fault((*path, name, "at"), "the event says when", "remove it")
        for name, names in (
            ("goes", event.goes),
            ("offline", event.offline),
            ("online", event.online),
            ("changed", event.changed),
        ):
            yield from known.about(names, (*path, name))
        if event.answer is not None:
            yield from known.about(event.answer.variants, (*path, "answer", "variants"))
            for stage in {known.variants.get(it, "") for it in event.answer.variants}:
                yield from known.check(stage, event.answer.check, (*path, "answer"))
        if event.revision in spec.revisions:
            yield Fault((*path, "revision"), f"{event.revision} is there already", "name a new one")


def _expectations(scenario: Scenario, known: _Known) -> Iterator[Fault]:
    spec = scenario.spec
    for index, when in enumerate(spec.moments):
        if spec.instant(when) < spec.instant(None):
            yield Fault((*_SPEC, "moments", index), "comes before `now`", "ask about a later one")
    for index, expected in enumerate(spec.expect):
        path = (*_SPEC, "expect", index)
        if spec.instant(expected.at) < spec.instant(None):
            yield Fault((*path, "at"), "comes before `now`", "ask about a later moment")
        for number, stage in enumerate(expected.stages):
            where = (*path, "stages", number)
            yield from known.stage(stage.stage, where)
            yield from known.about(stage.released or (), (*where, "released"))
            yield from known.about(stage.published or (), (*where, "published"))
            for fault in known.revision(stage.candidate, where):
                yield Fault((*where, "candidate"), fault.problem, fault.remedy)
            for place, other in enumerate(stage.others or ()):
                yield from known.revision(other.revision, (*where, "others", place))
                yield from _reasons(other.reasons or (), (*where, "others", place, "reasons"))
        for number, variant in enumerate(expected.variants):
            where = (*path, "variants", number)
            for fault in known.about([variant.variant], where):
                yield Fault((*where, "variant"), fault.problem, fault.remedy)
            yield from known.revision(variant.revision, where)
            yield from _reasons(variant.reasons or (), (*where, "reasons"))
    for index, waves in enumerate(spec.expect_waves):
        yield from known.stage(waves.stage, (*_SPEC, "expectWaves", index))


def _reasons(names: Iterable[str], path: Path) -> Iterator[Fault]:
    known = [reason.value for reason in Reason]
    for index, name in enumerate(names):
        if name not in known:
            remedy = suggestion(name, known, "see docs/concepts/scenarios.md")
            yield Fault((*path, index), f"there is no reason {name}", remedy)


def _there(what: str, names: Iterable[str]) -> str:
    return f"there are the {what} {', '.join(names)}" if list(names) else f"there are no {what}"
