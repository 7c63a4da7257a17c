"""Rules for a whole scenario: known names, and times in order.

They are checked when the stages are known: the scenario's own, or those of the policy
it names.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise

from fanout.api.field_errors import FieldError, FieldPath, suggest_name
from fanout.api.gate_vocabulary import Action
from fanout.api.reasons import Reason
from fanout.api.scenario import (
    Scenario,
    StatedApproval,
    StatedDecision,
    StatedEvidence,
    StatedPublication,
    StatedRecord,
    StatedVariant,
    expand_variant_names,
)
from fanout.api.stages import Check, Stage
from fanout.api.validators.record_rules import REASONED_ACTIONS, missing_revision

_SPEC: FieldPath = ("spec",)
ANSWERABLE_CHECK_TYPES = ("report", "commitStatus", "object", "prometheus", "http")
_UNSUPPORTED_ACTIONS: Mapping[Action, str] = {
    Action.RESOLVE: "set draft.disputed to the number of undecided conflicts",
    Action.ACCEPT_RECORDS: "remove it: a scenario has no records to restore",
    Action.CONFIRM_REMOVAL: "set removed on the variant, or add an event with goes",
}


@dataclass(slots=True)
class _DeclaredNames:
    """Names that a scenario declares and may refer to."""

    stages: Mapping[str, Stage]
    variants: dict[str, str] = field(default_factory=dict)  # name → its stage
    revisions: set[str] = field(default_factory=set)
    records: set[str] = field(default_factory=set)

    def check_stage(self, name: str | None, path: FieldPath) -> Iterator[FieldError]:
        if name and name not in self.stages:
            remedy = suggest_name(
                name, sorted(self.stages), _list_alternatives("stages", self.stages)
            )
            yield FieldError((*path, "stage"), f"there is no stage {name}", remedy)

    def check_variants(self, names: Iterable[str], path: FieldPath) -> Iterator[FieldError]:
        for index, name in enumerate(names):
            if name not in self.variants:
                remedy = suggest_name(name, sorted(self.variants), "add it to spec.variants")
                yield FieldError((*path, index), f"there is no variant {name}", remedy)

    def check_revision(self, name: str | None, path: FieldPath) -> Iterator[FieldError]:
        if name and name not in self.revisions:
            remedy = suggest_name(name, sorted(self.revisions), "add it to spec.revisions")
            yield FieldError((*path, "revision"), f"there is no revision {name}", remedy)

    def check_check(
        self,
        stage: str,
        name: str,
        path: FieldPath,
        check_types: Sequence[str] = ANSWERABLE_CHECK_TYPES,
    ) -> Iterator[FieldError]:
        """Yield an error unless the stage has a check of this name and of one of these types."""
        if stage not in self.stages:
            return
        checks = [*self.stages[stage].verification, *self.stages[stage].requires]
        matching_checks = [it.name for it in checks if _check_type(it) in check_types]
        if name in matching_checks:
            return
        actual_type = next((_check_type(it) for it in checks if it.name == name), "")
        problem = (
            f"check {name} of stage {stage} is of type {actual_type}, which does not fit here"
            if actual_type
            else f"stage {stage} has no check {name}"
        )
        yield FieldError(
            (*path, "check"),
            problem,
            suggest_name(name, matching_checks, _list_alternatives("checks", matching_checks)),
        )


def check_scenario(scenario: Scenario, stages: Sequence[Stage]) -> Iterator[FieldError]:
    """Yield every error of a scenario that has these stages, each with its field."""
    spec = scenario.spec
    declared = _DeclaredNames({stage.name: stage for stage in stages})
    declared.revisions.update(spec.revisions, (it.revision for it in spec.events if it.revision))
    declared.revisions.update(past.revision for past in spec.history)
    # Names are collected from all variants first: events and records may refer to variants that are
    # written further down.
    yield from _check_own_stages(scenario)
    for path, variant in _stated_variants(scenario):
        declared.revisions.update(it.revision for it in (variant, *variant.earlier) if it.revision)
        if path[1] == "variants":
            yield from _check_unique_variant(variant, path, declared)
        declared.variants.update(dict.fromkeys(expand_variant_names(variant), variant.stage))
    for path, variant in _stated_variants(scenario):
        yield from declared.check_stage(variant.stage, path)
        yield from _check_variant(scenario, variant, path, declared)
    yield from _check_history(scenario, declared)
    yield from _check_records(scenario, declared)
    yield from _check_events(scenario, declared)
    yield from _check_expectations(scenario, declared)


def _check_own_stages(scenario: Scenario) -> Iterator[FieldError]:
    spec = scenario.spec
    for name, setting in (("promotion", spec.promotion), ("inFlight", spec.in_flight)):
        if setting is not None and not spec.stages:
            problem = "applies only to a scenario with its own stages"
            yield FieldError((*_SPEC, name), problem, "remove it: the policy has its own settings")
    groups = [it.group for it in spec.promotion.approvers] if spec.promotion else []
    for index, stage in enumerate(spec.stages):
        for number, check in enumerate(stage.requires):
            for group_index, group in enumerate(check.approval.from_ if check.approval else ()):
                if group not in groups:
                    path = (
                        *_SPEC,
                        "stages",
                        index,
                        "requires",
                        number,
                        "approval",
                        "from",
                        group_index,
                    )
                    problem = f"there is no group {group} under promotion.approvers"
                    yield FieldError(path, problem, suggest_name(group, groups, "add it there"))
    if spec.advance is None:
        for path, variant in _stated_variants(scenario):
            advance_fields = (
                ("readyAfter", variant.ready_after is not None),
                ("fails", variant.fails),
            )
            for name, is_set in advance_fields:
                if is_set:
                    yield FieldError(
                        (*path, name), "has no effect without advance", "add spec.advance"
                    )


def _stated_variants(scenario: Scenario) -> Iterator[tuple[FieldPath, StatedVariant]]:
    for index, variant in enumerate(scenario.spec.variants):
        yield (*_SPEC, "variants", index), variant
    for index, event in enumerate(scenario.spec.events):
        if event.comes is not None:
            yield (*_SPEC, "events", index, "comes"), event.comes


def _check_unique_variant(
    variant: StatedVariant, path: FieldPath, declared: _DeclaredNames
) -> Iterator[FieldError]:
    for name in expand_variant_names(variant):
        if name in declared.variants:
            yield FieldError((*path, "name"), f"duplicate variant {name}", "rename one")
            return


def _check_variant(
    scenario: Scenario, variant: StatedVariant, path: FieldPath, declared: _DeclaredNames
) -> Iterator[FieldError]:
    is_event = path[1] == "events"
    at = scenario.spec.events[int(path[2])].at if is_event else None
    now = scenario.spec.resolve_instant(at)
    previous_start: datetime | None = None
    earlier_publications = [
        ((*path, "earlier", index), publication)
        for index, publication in enumerate(variant.earlier)
    ]
    for publication_path, publication in [*earlier_publications, (path, variant)]:
        yield from _check_publication(scenario, publication, publication_path, now)
        yield from _check_results(variant.stage, publication, publication_path, declared)
        start = compute_publication_time(scenario, publication, now)
        if start is not None and previous_start is not None and start < previous_start:
            problem = "is before the previous publication"
            yield FieldError(
                (*publication_path, "published"), problem, "put the publications in order"
            )
        previous_start = start or previous_start
    if variant.draft is not None:
        yield from declared.check_revision(variant.draft.revision, (*path, "draft"))
    if variant.released is not None and not variant.drafted:
        yield FieldError(
            (*path, "released"),
            "a variant without a draft cannot be released",
            "remove drafted: false",
        )
    yield from _check_not_after(scenario, now, [("released", variant.released)], path)


def compute_publication_time(
    scenario: Scenario, publication: StatedPublication, now: datetime
) -> datetime | None:
    """Return the instant of publication, or None if no revision is published."""
    if publication.revision is None:
        return None
    first_instant = next(
        (
            it
            for it in (publication.published, publication.ready, publication.failed)
            if it is not None
        ),
        None,
    )
    return now if first_instant is None else scenario.spec.resolve_instant(first_instant)


def _check_publication(
    scenario: Scenario, publication: StatedPublication, path: FieldPath, now: datetime
) -> Iterator[FieldError]:
    stated_times = [
        (name, when)
        for name, when in (
            ("published", publication.published),
            ("ready", publication.ready),
            ("failed", publication.failed),
            ("withdrawn", publication.withdrawn),
        )
        if when is not None
    ]
    if publication.revision is None:
        for name, _ in stated_times[:1]:
            yield FieldError((*path, name), "no revision is published", "add revision")
        return
    if publication.ready is not None and publication.failed is not None:
        yield FieldError(
            (*path, "failed"),
            "ready and failed exclude each other",
            "use withdrawn if it failed after it was ready",
        )
    if publication.withdrawn is not None and publication.ready is None:
        yield FieldError(
            (*path, "withdrawn"), "withdrawn needs ready", "add the time when it was ready"
        )
    yield from _check_not_after(scenario, now, stated_times, path)
    instants = [(name, scenario.spec.resolve_instant(when)) for name, when in stated_times]
    for (first, earlier), (name, later) in pairwise(instants):
        if later < earlier:
            yield FieldError((*path, name), f"comes before {first}", "put the times in order")


def _check_not_after(
    scenario: Scenario,
    now: datetime,
    stated_times: Iterable[tuple[str, datetime | timedelta | None]],
    path: FieldPath,
) -> Iterator[FieldError]:
    for name, when in stated_times:
        if when is not None and scenario.spec.resolve_instant(when) > now:
            yield FieldError((*path, name), "is in the future of this state", "use an event")


def _check_results(
    stage: str, publication: StatedPublication, path: FieldPath, declared: _DeclaredNames
) -> Iterator[FieldError]:
    for index, answer in enumerate(publication.answers):
        at = (*path, "answers", index)
        yield from declared.check_check(stage, answer.check, at)
    verifies_nothing = stage in declared.stages and not declared.stages[stage].verification
    for name, instant in (("failed", publication.failed), ("withdrawn", publication.withdrawn)):
        if instant is not None and verifies_nothing:
            problem = f"stage {stage} has no verification, so nothing can fail"
            yield FieldError((*path, name), problem, "remove it, or give the stage a check")


def _check_type(check: Check) -> str:
    settings = {
        "report": check.report,
        "approval": check.approval,
        "commitStatus": check.commit_status,
        "object": check.object,
        "prometheus": check.prometheus,
        "http": check.http,
    }
    return next(name for name, value in settings.items() if value is not None)


def _check_history(scenario: Scenario, declared: _DeclaredNames) -> Iterator[FieldError]:
    for index, past in enumerate(scenario.spec.history):
        path = (*_SPEC, "history", index)
        yield from declared.check_stage(past.stage, path)
        instant = scenario.spec.resolve_instant
        if past.left and past.passed and instant(past.left) < instant(past.passed):
            yield FieldError((*path, "left"), "comes before passed", "put the times in order")


def _check_records(scenario: Scenario, declared: _DeclaredNames) -> Iterator[FieldError]:
    spec = scenario.spec
    records: tuple[tuple[str, Sequence[StatedRecord]], ...] = (
        ("evidence", spec.evidence),
        ("approvals", spec.approvals),
        ("decisions", spec.decisions),
    )
    for name, stated in records:
        for index, record in enumerate(stated):
            yield from _check_record(record, (*_SPEC, name, index), declared)


def _check_record(
    record: StatedRecord, path: FieldPath, declared: _DeclaredNames
) -> Iterator[FieldError]:
    """Check stage, variants, revision, check and withdrawn record of a recorded object."""
    yield from declared.check_stage(record.stage, path)
    yield from declared.check_variants(record.variants, (*path, "variants"))
    yield from declared.check_revision(record.revision, path)
    if record.name:
        declared.records.add(record.name)
    match record:
        case StatedEvidence():
            yield from declared.check_check(record.stage, record.check, path, ("report",))
            if (record.revision is None) == (record.commit is None):
                problem = "evidence needs either a revision or a commit"
                yield FieldError((*path, "revision"), problem, "set one of them")
        case StatedApproval():
            yield from declared.check_check(record.stage, record.check, path, ("approval",))
            yield from _check_withdrawn_record("revokes", record.revokes, path, declared)
        case StatedDecision():
            yield from _check_decision_record(record, path, declared)


def _check_decision_record(
    decision: StatedDecision, path: FieldPath, declared: _DeclaredNames
) -> Iterator[FieldError]:
    action = decision.action
    if action in _UNSUPPORTED_ACTIONS:
        problem = f"{action} has no effect on gates"
        yield FieldError((*path, "action"), problem, _UNSUPPORTED_ACTIONS[action])
    if action in REASONED_ACTIONS and not decision.revision:
        yield missing_revision(action, path)
    if decision.accept_conflicts and not (action is Action.PUBLISH and decision.variants):
        problem = "only a Publish that names variants accepts merge conflicts"
        yield FieldError((*path, "acceptConflicts"), problem, "add variants, or remove the field")
    if (action is Action.WITHDRAW) != bool(decision.withdraws):
        problem = "withdraws is for Withdraw, which requires it"
        yield FieldError((*path, "withdraws"), problem, "add it, or remove the field")
    yield from _check_withdrawn_record("withdraws", decision.withdraws, path, declared)


def _check_withdrawn_record(
    name: str, record: str, path: FieldPath, declared: _DeclaredNames
) -> Iterator[FieldError]:
    if record and record not in declared.records:
        remedy = suggest_name(record, sorted(declared.records), "give the earlier record this name")
        yield FieldError((*path, name), f"there is no earlier record {record}", remedy)


def _check_events(scenario: Scenario, declared: _DeclaredNames) -> Iterator[FieldError]:
    spec = scenario.spec
    latest = spec.resolve_instant(None)
    for index, event in enumerate(spec.events):
        path = (*_SPEC, "events", index)
        at = spec.resolve_instant(event.at)
        if at < latest:
            problem = "comes before `now`, or before the event above it"
            yield FieldError((*path, "at"), problem, "put the times in order")
        # After an event out of order the highest time counts on, so that one mistake gives one
        # error.
        latest = max(at, latest)
        for name, record in (
            ("evidence", event.evidence),
            ("approval", event.approval),
            ("decision", event.decision),
        ):
            if record is not None:
                yield from _check_record(record, (*path, name), declared)
                if record.at is not None:
                    yield FieldError(
                        (*path, name, "at"), "the time of the event applies", "remove it"
                    )
        for name, names in (
            ("goes", event.goes),
            ("offline", event.offline),
            ("online", event.online),
            ("changed", event.changed),
        ):
            yield from declared.check_variants(names, (*path, name))
        if event.answer is not None:
            yield from declared.check_variants(event.answer.variants, (*path, "answer", "variants"))
            for stage in {declared.variants.get(it, "") for it in event.answer.variants}:
                yield from declared.check_check(stage, event.answer.check, (*path, "answer"))
        if event.revision in spec.revisions:
            yield FieldError(
                (*path, "revision"), f"revision {event.revision} exists already", "use a new name"
            )


def _check_expectations(scenario: Scenario, declared: _DeclaredNames) -> Iterator[FieldError]:
    spec = scenario.spec
    for index, when in enumerate(spec.moments):
        if spec.resolve_instant(when) < spec.resolve_instant(None):
            yield FieldError((*_SPEC, "moments", index), "comes before `now`", "use a later time")
    for index, expected in enumerate(spec.expect):
        path = (*_SPEC, "expect", index)
        if spec.resolve_instant(expected.at) < spec.resolve_instant(None):
            yield FieldError((*path, "at"), "comes before `now`", "use a later time")
        for number, stage in enumerate(expected.stages):
            entry_path = (*path, "stages", number)
            yield from declared.check_stage(stage.stage, entry_path)
            yield from declared.check_variants(stage.released or (), (*entry_path, "released"))
            yield from declared.check_variants(stage.published or (), (*entry_path, "published"))
            for error in declared.check_revision(stage.candidate, entry_path):
                yield FieldError((*entry_path, "candidate"), error.problem, error.remedy)
            for revision_index, other_revision in enumerate(stage.others or ()):
                yield from declared.check_revision(
                    other_revision.revision, (*entry_path, "others", revision_index)
                )
                yield from _check_reasons(
                    other_revision.reasons or (), (*entry_path, "others", revision_index, "reasons")
                )
        for number, variant in enumerate(expected.variants):
            entry_path = (*path, "variants", number)
            for error in declared.check_variants([variant.variant], entry_path):
                yield FieldError((*entry_path, "variant"), error.problem, error.remedy)
            yield from declared.check_revision(variant.revision, entry_path)
            yield from _check_reasons(variant.reasons or (), (*entry_path, "reasons"))
    for index, waves in enumerate(spec.expect_waves):
        yield from declared.check_stage(waves.stage, (*_SPEC, "expectWaves", index))


def _check_reasons(names: Iterable[str], path: FieldPath) -> Iterator[FieldError]:
    declared = [reason.value for reason in Reason]
    for index, name in enumerate(names):
        if name not in declared:
            remedy = suggest_name(name, declared, "see docs/concepts/scenarios.md")
            yield FieldError((*path, index), f"there is no reason {name}", remedy)


def _list_alternatives(noun: str, names: Iterable[str]) -> str:
    return f"there are the {noun} {', '.join(names)}" if list(names) else f"there are no {noun}"
