"""Rules for a whole scenario: known names, and times in order.

They are checked when the stages are known: the scenario's own, or those of the policy it names.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

ANSWERABLE_CHECK_TYPES = ("report", "commitStatus", "object", "prometheus", "http")
_UNSUPPORTED_ACTIONS: Mapping[Action, str] = {
    Action.RESOLVE: "set draft.disputed to the number of undecided conflicts",
    Action.ACCEPT_RECORDS: "remove it: a scenario has no records to restore",
    Action.CONFIRM_REMOVAL: "set removed on the variant, or add an event with goes",
}


def check_scenario(scenario: Scenario, stages: Sequence[Stage]) -> Iterator[FieldError]:
    """Yield every error of a scenario that has these stages, each with its field."""
    yield from _ScenarioCheck(scenario, stages).find_errors()


def compute_publication_time(
    scenario: Scenario, publication: StatedPublication, now: datetime
) -> datetime | None:
    """Return the instant of publication, or None if no revision is published."""
    if publication.revision is None:
        return None
    stated_times = (publication.published, publication.ready, publication.failed)
    first_time = next((it for it in stated_times if it is not None), None)
    return now if first_time is None else scenario.spec.resolve_instant(first_time)


class _ScenarioCheck:
    """Check of one scenario, with the names that it declares and may refer to."""

    def __init__(self, scenario: Scenario, stages: Sequence[Stage]) -> None:
        self._scenario, self._spec = scenario, scenario.spec
        self._instant = scenario.spec.resolve_instant
        self._stages = {stage.name: stage for stage in stages}
        self._variants: dict[str, str] = {}  # name → its stage
        self._revisions = {
            *self._spec.revisions,
            *(it.revision for it in self._spec.events if it.revision),
            *(it.revision for it in self._spec.history),
        }
        self._records: set[str] = set()

    def find_errors(self) -> Iterator[FieldError]:
        """Yield every error, each with its field."""
        spec = self._spec
        yield from self._check_own_stages()
        # Names are collected from all variants first: events and records may refer to variants that
        # are written further down.
        for path, variant in self._stated_variants():
            publications = (variant, *variant.earlier)
            self._revisions.update(it.revision for it in publications if it.revision)
            names = [*expand_variant_names(variant)]
            duplicate = next(filter(self._variants.__contains__, names), "")
            if duplicate and path[1] == "variants":
                yield FieldError((*path, "name"), f"duplicate variant {duplicate}", "rename one")
            self._variants.update(dict.fromkeys(names, variant.stage))
        for path, variant in self._stated_variants():
            yield from self._check_stage(variant.stage, path)
            yield from self._check_variant(variant, path)
        for index, past in enumerate(spec.history):
            path = ("spec", "history", index)
            yield from self._check_stage(past.stage, path)
            if past.left and past.passed and self._instant(past.left) < self._instant(past.passed):
                yield FieldError((*path, "left"), "comes before passed", "put the times in order")
        records: tuple[tuple[str, Sequence[StatedRecord]], ...] = (
            ("evidence", spec.evidence),
            ("approvals", spec.approvals),
            ("decisions", spec.decisions),
        )
        for name, stated in records:
            for index, record in enumerate(stated):
                yield from self._check_record(record, ("spec", name, index))
        yield from self._check_events()
        yield from self._check_expectations()

    def _check_stage(self, name: str | None, path: FieldPath) -> Iterator[FieldError]:
        otherwise = _list_alternatives("stages", self._stages)
        return _check_name((*path, "stage"), "stage", name, self._stages, otherwise)

    def _check_variants(self, names: Iterable[str], path: FieldPath) -> Iterator[FieldError]:
        for index, name in enumerate(names):
            variants, otherwise = self._variants, "add it to spec.variants"
            yield from _check_name((*path, index), "variant", name, variants, otherwise)

    def _check_revision(self, name: str | None, path: FieldPath) -> Iterator[FieldError]:
        return _check_name(path, "revision", name, self._revisions, "add it to spec.revisions")

    def _check_check(
        self,
        stage: str,
        name: str,
        path: FieldPath,
        check_types: Sequence[str] = ANSWERABLE_CHECK_TYPES,
    ) -> Iterator[FieldError]:
        """Yield an error unless the stage has a check of this name and of one of these types."""
        if stage not in self._stages:
            return
        checks = [*self._stages[stage].verification, *self._stages[stage].requires]
        matching_checks = [it.name for it in checks if _check_type(it) in check_types]
        if name in matching_checks:
            return
        actual_type = next((_check_type(it) for it in checks if it.name == name), "")
        problem = (
            f"check {name} of stage {stage} is of type {actual_type}, which does not fit here"
            if actual_type
            else f"stage {stage} has no check {name}"
        )
        remedy = suggest_name(name, matching_checks, _list_alternatives("checks", matching_checks))
        yield FieldError((*path, "check"), problem, remedy)

    def _check_own_stages(self) -> Iterator[FieldError]:
        spec = self._spec
        for name, setting in (("promotion", spec.promotion), ("inFlight", spec.in_flight)):
            if setting is not None and not spec.stages:
                problem = "applies only to a scenario with its own stages"
                remedy = "remove it: the policy has its own settings"
                yield FieldError(("spec", name), problem, remedy)
        groups = [it.group for it in spec.promotion.approvers] if spec.promotion else []
        for index, stage in enumerate(spec.stages):
            for number, check in enumerate(stage.requires):
                path = ("spec", "stages", index, "requires", number, "approval", "from")
                for place, group in enumerate(check.approval.from_ if check.approval else ()):
                    if group not in groups:
                        problem = f"there is no group {group} under promotion.approvers"
                        remedy = suggest_name(group, groups, "add it there")
                        yield FieldError((*path, place), problem, remedy)
        for variant_path, variant in self._stated_variants() if spec.advance is None else ():
            is_set = {"readyAfter": variant.ready_after is not None, "fails": variant.fails}
            for name in filter(is_set.__getitem__, is_set):
                problem = "has no effect without advance"
                yield FieldError((*variant_path, name), problem, "add spec.advance")

    def _stated_variants(self) -> Iterator[tuple[FieldPath, StatedVariant]]:
        for index, variant in enumerate(self._spec.variants):
            yield ("spec", "variants", index), variant
        for index, event in enumerate(self._spec.events):
            if event.comes is not None:
                yield ("spec", "events", index, "comes"), event.comes

    def _check_variant(self, variant: StatedVariant, path: FieldPath) -> Iterator[FieldError]:
        is_event = path[1] == "events"
        now = self._instant(self._spec.events[int(path[2])].at if is_event else None)
        stage = self._stages.get(variant.stage)
        previous_start: datetime | None = None
        publications: list[tuple[FieldPath, StatedPublication]] = [
            ((*path, "earlier", index), it) for index, it in enumerate(variant.earlier)
        ]
        for publication_path, publication in [*publications, (path, variant)]:
            yield from self._check_publication(publication, publication_path, now)
            for index, answer in enumerate(publication.answers):
                answer_path = (*publication_path, "answers", index)
                yield from self._check_check(variant.stage, answer.check, answer_path)
            for name in ("failed", "withdrawn"):
                is_stated = getattr(publication, name) is not None
                if is_stated and stage is not None and not stage.verification:
                    problem = f"stage {variant.stage} has no verification, so nothing can fail"
                    remedy = "remove it, or give the stage a check"
                    yield FieldError((*publication_path, name), problem, remedy)
            start = compute_publication_time(self._scenario, publication, now)
            if start is not None and previous_start is not None and start < previous_start:
                problem = "is before the previous publication"
                remedy = "put the publications in order"
                yield FieldError((*publication_path, "published"), problem, remedy)
            previous_start = start or previous_start
        if variant.draft is not None:
            yield from self._check_revision(variant.draft.revision, (*path, "draft", "revision"))
        if variant.released is not None and not variant.drafted:
            problem = "a variant without a draft cannot be released"
            yield FieldError((*path, "released"), problem, "remove drafted: false")
        yield from self._check_not_after(now, {"released": variant.released}, path)

    def _check_publication(
        self, publication: StatedPublication, path: FieldPath, now: datetime
    ) -> Iterator[FieldError]:
        times = {
            "published": publication.published,
            "ready": publication.ready,
            "failed": publication.failed,
            "withdrawn": publication.withdrawn,
        }
        stated_times = {name: when for name, when in times.items() if when is not None}
        if publication.revision is None:
            for name in [*stated_times][:1]:
                yield FieldError((*path, name), "no revision is published", "add revision")
            return
        if publication.ready is not None and publication.failed is not None:
            problem = "ready and failed exclude each other"
            remedy = "use withdrawn if it failed after it was ready"
            yield FieldError((*path, "failed"), problem, remedy)
        if publication.withdrawn is not None and publication.ready is None:
            remedy = "add the time when it was ready"
            yield FieldError((*path, "withdrawn"), "withdrawn needs ready", remedy)
        yield from self._check_not_after(now, stated_times, path)
        instants = [(name, self._instant(when)) for name, when in stated_times.items()]
        for (first, earlier), (name, later) in pairwise(instants):
            if later < earlier:
                yield FieldError((*path, name), f"comes before {first}", "put the times in order")

    def _check_not_after(
        self, now: datetime, times: Mapping[str, datetime | timedelta | None], path: FieldPath
    ) -> Iterator[FieldError]:
        for name, when in times.items():
            if when is not None and self._instant(when) > now:
                yield FieldError((*path, name), "is in the future of this state", "use an event")

    def _check_record(self, record: StatedRecord, path: FieldPath) -> Iterator[FieldError]:
        """Check stage, variants, revision, check and withdrawn record of a recorded object."""
        yield from self._check_stage(record.stage, path)
        yield from self._check_variants(record.variants, (*path, "variants"))
        yield from self._check_revision(record.revision, (*path, "revision"))
        if record.name:
            self._records.add(record.name)
        match record:
            case StatedEvidence():
                yield from self._check_check(record.stage, record.check, path, ("report",))
                if (record.revision is None) == (record.commit is None):
                    problem = "evidence needs either a revision or a commit"
                    yield FieldError((*path, "revision"), problem, "set one of them")
            case StatedApproval():
                yield from self._check_check(record.stage, record.check, path, ("approval",))
                yield from self._check_withdrawn(record.revokes, (*path, "revokes"))
            case StatedDecision(action=action):
                if action in _UNSUPPORTED_ACTIONS:
                    problem = f"{action} has no effect on gates"
                    yield FieldError((*path, "action"), problem, _UNSUPPORTED_ACTIONS[action])
                if action in REASONED_ACTIONS and not record.revision:
                    yield missing_revision(action, path)
                if record.accept_conflicts and not (action is Action.PUBLISH and record.variants):
                    problem = "only a Publish that names variants accepts merge conflicts"
                    remedy = "add variants, or remove the field"
                    yield FieldError((*path, "acceptConflicts"), problem, remedy)
                if (action is Action.WITHDRAW) != bool(record.withdraws):
                    problem = "withdraws is for Withdraw, which requires it"
                    yield FieldError((*path, "withdraws"), problem, "add it, or remove the field")
                yield from self._check_withdrawn(record.withdraws, (*path, "withdraws"))

    def _check_withdrawn(self, name: str, path: FieldPath) -> Iterator[FieldError]:
        otherwise = "give the earlier record this name"
        return _check_name(path, "earlier record", name, self._records, otherwise)

    def _check_events(self) -> Iterator[FieldError]:
        latest = self._instant(None)
        for index, event in enumerate(self._spec.events):
            path = ("spec", "events", index)
            if (at := self._instant(event.at)) < latest:
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
                    yield from self._check_record(record, (*path, name))
                    if record.at is not None:
                        problem = "the time of the event applies"
                        yield FieldError((*path, name, "at"), problem, "remove it")
            for name in ("goes", "offline", "online", "changed"):
                yield from self._check_variants(getattr(event, name), (*path, name))
            if event.answer is not None:
                names = event.answer.variants
                yield from self._check_variants(names, (*path, "answer", "variants"))
                for stage in {self._variants.get(it, "") for it in names}:
                    yield from self._check_check(stage, event.answer.check, (*path, "answer"))
            if event.revision in self._spec.revisions:
                problem = f"revision {event.revision} exists already"
                yield FieldError((*path, "revision"), problem, "use a new name")

    def _check_expectations(self) -> Iterator[FieldError]:
        spec, now = self._spec, self._instant(None)
        problem, remedy = "comes before `now`", "use a later time"
        for index, when in enumerate(spec.moments):
            if self._instant(when) < now:
                yield FieldError(("spec", "moments", index), problem, remedy)
        for index, expected in enumerate(spec.expect):
            path = ("spec", "expect", index)
            if self._instant(expected.at) < now:
                yield FieldError((*path, "at"), problem, remedy)
            for number, stage in enumerate(expected.stages):
                entry_path = (*path, "stages", number)
                yield from self._check_stage(stage.stage, entry_path)
                yield from self._check_variants(stage.released or (), (*entry_path, "released"))
                yield from self._check_variants(stage.published or (), (*entry_path, "published"))
                yield from self._check_revision(stage.candidate, (*entry_path, "candidate"))
                for place, other in enumerate(stage.others or ()):
                    other_path = (*entry_path, "others", place)
                    yield from self._check_revision(other.revision, (*other_path, "revision"))
                    yield from _check_reasons(other.reasons or (), (*other_path, "reasons"))
            for number, variant in enumerate(expected.variants):
                entry_path = (*path, "variants", number)
                for error in self._check_variants([variant.variant], entry_path):
                    yield FieldError((*entry_path, "variant"), error.problem, error.remedy)
                yield from self._check_revision(variant.revision, (*entry_path, "revision"))
                yield from _check_reasons(variant.reasons or (), (*entry_path, "reasons"))
        for index, waves in enumerate(spec.expect_waves):
            yield from self._check_stage(waves.stage, ("spec", "expectWaves", index))


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


def _check_name(
    path: FieldPath, noun: str, name: str | None, names: Collection[str], otherwise: str
) -> Iterator[FieldError]:
    """Yield an error for a name not among `names`; `otherwise` is advice where none is similar."""
    if name and name not in names:
        remedy = suggest_name(name, sorted(names), otherwise)
        yield FieldError(path, f"there is no {noun} {name}", remedy)


def _check_reasons(names: Iterable[str], path: FieldPath) -> Iterator[FieldError]:
    declared, otherwise = [reason.value for reason in Reason], "see docs/concepts/scenarios.md"
    for index, name in enumerate(names):
        yield from _check_name((*path, index), "reason", name, declared, otherwise)


def _list_alternatives(noun: str, names: Iterable[str]) -> str:
    return f"there are the {noun} {', '.join(names)}" if list(names) else f"there are no {noun}"
