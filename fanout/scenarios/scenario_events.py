"""Timeline of a scenario: the stated past and the events, as changes of its world.

Playing the past gives each stage its history: when a revision was first ready everywhere, when
evidence was withdrawn, when the stage moved on. So a scenario need not state what follows.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from fanout.api.gate_vocabulary import Action, CheckMethod, Verdict
from fanout.api.record_objects import ApprovalSpec, DecisionSpec, EvidenceSpec
from fanout.api.scenario import (
    CheckResultEvent,
    Scenario,
    ScenarioEvent,
    StatedApproval,
    StatedCheckResult,
    StatedDecision,
    StatedEvidence,
    StatedPublication,
    StatedRecord,
    StatedVariant,
    expand_variant_names,
)
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.api.validators.scenario_rules import compute_publication_time
from fanout.gates.gate_facts import CheckReading, DraftFacts, Publication
from fanout.gates.gate_rules import ApprovalRule, CheckRule
from fanout.plan.records.policy_records import RecordEntry, RecordSpec
from fanout.scenarios.scenario_world import ScenarioAnswer, ScenarioVariant, ScenarioWorld
from fanout.selection.label_selector import MatchableSelector, matches

ScenarioChange = Callable[[ScenarioWorld], None]
TimedChange = tuple[datetime, ScenarioChange]
_DEFAULT_AUTHOR = "scenario@example.com"

_SPEC_CLASSES: Mapping[type, type[RecordSpec]] = {
    StatedEvidence: EvidenceSpec,
    StatedApproval: ApprovalSpec,
    StatedDecision: DecisionSpec,
}


class ScenarioTimeline:
    """Converter of a scenario's statements into timed changes of its world."""

    def __init__(self, scenario: Scenario, policy: UpstreamPolicy) -> None:
        """Create the timeline of a scenario of this policy."""
        self._scenario, self._spec = scenario, scenario.spec
        self._instant = scenario.spec.resolve_instant
        self._groups: dict[str, Sequence[MatchableSelector]] = {
            stage.name: stage.rollout.groups for stage in policy.spec.stages if stage.rollout
        }
        self._record_count = 0

    def past_changes(self, world: ScenarioWorld) -> Iterator[TimedChange]:
        """Yield all changes up to `now`; variants are added to the world at once."""
        for stated in self._spec.variants:
            for name in expand_variant_names(stated):
                yield from self._add_variant(world, name, stated, self._instant(None))
        spec = self._spec
        records: tuple[StatedRecord, ...] = (*spec.evidence, *spec.approvals, *spec.decisions)
        for record in records:
            at = self._instant(record.at)
            yield min(at, self._instant(None)), partial(self._add_record, record, at)

    def event_changes(self) -> Iterator[TimedChange]:
        """Yield all changes from `now` on."""
        for event in self._spec.events:
            yield self._instant(event.at), partial(self._apply_event, event)

    def verification_change(self, variant: ScenarioVariant, at: datetime) -> TimedChange:
        """Return the change that answers all checks after publication as stated."""
        status = Verdict.FAILED if variant.stated.fails else Verdict.PASSED
        answer = ScenarioAnswer(variant=variant.name, at=at, status=status)
        return at, partial(self._apply_answer, answer)

    def deliver_pending_answers(self, world: ScenarioWorld) -> None:
        """Apply answers about drafts that were stated before the drafts existed."""
        for variant in world.variants.values():
            if variant.pending_answers and variant.draft is not None:
                pending, variant.pending_answers = variant.pending_answers, []
                for scenario_answer in pending:
                    self._apply_answer(scenario_answer, world)

    def _add_variant(
        self, world: ScenarioWorld, name: str, stated: StatedVariant, now: datetime
    ) -> Iterator[TimedChange]:
        groups = self._groups.get(stated.stage, ())
        matching = (i for i, selector in enumerate(groups) if matches(selector, stated.labels))
        variant = ScenarioVariant(
            name=name, stated=stated, group=next(matching, len(groups)), offline=stated.offline
        )
        variant.stated_draft = stated.draft
        variant.removed = self._instant(stated.removed) if stated.removed is not None else None
        previous = world.variants.get(name)
        if previous is not None:
            # A variant that returns can be rolled back to what it published before it left.
            variant.publications = previous.publications
        world.variants[name] = variant
        for stay in (*stated.earlier, stated):
            yield from self._stay_changes(variant, stay, now)
        if stated.released is not None:
            released_at = self._instant(stated.released)
            yield released_at, lambda _: variant.state_release(released_at)
        if stated.taken_back:
            yield now, lambda _: variant.revert()

    def _stay_changes(
        self, variant: ScenarioVariant, stay: StatedPublication, now: datetime
    ) -> Iterator[TimedChange]:
        if (at := compute_publication_time(self._scenario, stay, now)) is not None:
            revision = stay.revision or ""
            digest = stay.digest or revision
            publication = Publication(
                revision,
                digest,
                stay.tree or variant.tree_of(digest),
                at,
                frozenset(stay.commits),
                reads=dict(stay.reads),
            )
            yield at, lambda _: variant.publish(publication)
        for when, status in (
            (stay.ready, Verdict.PASSED),
            (stay.failed, Verdict.FAILED),
            (stay.withdrawn, Verdict.FAILED),
        ):
            if when is not None:
                then = self._instant(when)
                answer = ScenarioAnswer(variant=variant.name, at=then, status=status)
                yield then, partial(self._apply_answer, answer)
        for stated in stay.answers:
            then = at or now if stated.at is None else self._instant(stated.at)
            yield then, partial(self._apply_answer, _build_answer(variant.name, then, stated))

    def _apply_answer(self, scenario_answer: ScenarioAnswer, world: ScenarioWorld) -> None:
        if (variant := world.variants.get(scenario_answer.variant)) is None:
            return
        stage = variant.stated.stage
        rule = next((it for it in world.first_facts.stages if it.name == stage), None)
        if rule is None:
            return
        for check in rule.verification:
            if scenario_answer.check in ("", check.name) and variant.published is not None:
                self._answer_check(scenario_answer, check, variant.published, world)
        for required in rule.requires:
            if scenario_answer.check == required.name and variant.draft is not None:
                self._answer_check(scenario_answer, required, variant.draft, world)
            elif scenario_answer.check == required.name:
                variant.pending_answers.append(scenario_answer)

    def _answer_check(
        self,
        scenario_answer: ScenarioAnswer,
        check: CheckRule | ApprovalRule,
        subject: Publication | DraftFacts,
        world: ScenarioWorld,
    ) -> None:
        """Answer a check: reported ones by evidence, all others by a reading."""
        status, variant = scenario_answer.status, world.variants[scenario_answer.variant]
        if isinstance(check, CheckRule) and check.method is not CheckMethod.REPORT:
            sentence = scenario_answer.message or f"check {check.name}: {status.value}"
            observed = scenario_answer.observed_revision or subject.revision
            reading = CheckReading(check.name, subject.digest, status, sentence, observed)
            variant.readings[check.name, subject.digest] = reading
            return
        spec = {
            "stage": variant.stated.stage,
            "variants": (scenario_answer.variant,),
            "check": check.name,
            "status": status,
            "revision": subject.revision,
        }
        world.records.append(self._build_record(EvidenceSpec, scenario_answer.at, spec))

    def _add_record(self, record: StatedRecord, at: datetime, world: ScenarioWorld) -> None:
        spec = record.model_dump(by_alias=False, exclude_none=True, exclude={"at", "by", "name"})
        if isinstance(record, StatedDecision) and record.expires is not None:
            spec["expires"] = self._instant(record.expires)
        if isinstance(record, StatedApproval | StatedDecision) and record.trees is None:
            stage, revision = record.stage or "", record.revision or ""
            draft_trees = world.draft_trees(stage, record.variants, revision)
            if draft_trees is None and spec.get("action", Action.PUBLISH) is Action.PUBLISH:
                return  # like the command, which records nothing if all drafts are left out
            spec["trees"] = tuple(draft_trees or ())
        spec_class = _SPEC_CLASSES[type(record)]
        world.records.append(self._build_record(spec_class, at, spec, record.by, record.name))

    def _build_record(
        self,
        spec_class: type[RecordSpec],
        at: datetime,
        spec: dict[str, Any],
        by: str = _DEFAULT_AUTHOR,
        name: str = "",
    ) -> RecordEntry:
        self._record_count += 1
        kind = spec_class.__name__.removesuffix("Spec").lower()
        return RecordEntry(
            name=name or f"{kind}-{self._record_count}",
            at=at,
            by=by,
            spec=spec_class.model_construct(**spec),  # without checks: trees have stated names
        )

    def _apply_event(self, event: ScenarioEvent, world: ScenarioWorld) -> None:
        at = self._instant(event.at)
        if event.revision:
            world.revisions.append(event.revision)
        for record in (event.evidence, event.approval, event.decision):
            if record is not None:
                self._add_record(record, at, world)
        if event.comes is not None:
            for name in expand_variant_names(event.comes):
                changes = self._add_variant(world, name, event.comes, at)
                for _, change in sorted(changes, key=lambda it: it[0]):
                    change(world)
        for name in event.goes:
            world.variants.pop(name, None)
        present = world.variants.keys()
        for name in present & {*event.offline, *event.online}:
            world.variants[name].offline = name in event.offline
        for name in present & {*event.changed}:
            world.variants[name].change_inputs()
        if event.answer is not None:
            for name in event.answer.variants:
                self._apply_answer(_build_answer(name, at, event.answer), world)


def _build_answer(
    variant: str, at: datetime, stated: StatedCheckResult | CheckResultEvent
) -> ScenarioAnswer:
    return ScenarioAnswer(
        variant=variant,
        at=at,
        status=stated.status,
        check=stated.check,
        message=stated.message,
        observed_revision=stated.seen or "",
    )
