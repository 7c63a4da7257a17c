"""Timeline of a scenario: its policy and settings, the stated past and the events.

Playing the past gives each stage its history: when a revision was first ready
everywhere, when evidence was withdrawn, when the stage moved on. So a scenario need not
state what follows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.object_meta import ObjectMeta
from fanout.api.package_variant import RevisionRule, Upstream
from fanout.api.promotion_policy import (
    AtClose,
    AutoPromotion,
    PromotionPolicy,
    PromotionPolicySpec,
)
from fanout.api.record_objects import EvidenceStatus
from fanout.api.scenarios.scenario import (
    Scenario,
    ScenarioEvent,
    StatedApproval,
    StatedDecision,
    StatedEvidence,
    StatedPublication,
    StatedVariant,
    expand_variant_names,
)
from fanout.api.scenarios.scenario_rules import compute_publication_time
from fanout.api.upstream_policy import InFlight, TargetEntry, UpstreamPolicy, UpstreamPolicySpec
from fanout.gates.gate_facts import CheckReading, DraftFacts, Publication
from fanout.gates.gate_rules import (
    ApprovalRule,
    CheckRule,
    PropagationCondition,
    StageRule,
    Verdict,
)
from fanout.plan.gate_inputs.stage_rule_builder import (
    build_calendars,
    build_stage_rules,
    governing_promotions,
)
from fanout.plan.records.policy_records import RecordEntry
from fanout.plan.scenarios.scenario_world import (
    ScenarioAnswer,
    ScenarioSetting,
    ScenarioVariant,
    ScenarioWorld,
    with_revert_hold,
)
from fanout.selection.label_selector import MatchableSelector, matches
from fanout.values import frozen, replace

ScenarioChange = Callable[[ScenarioWorld], None]
TimedChange = tuple[datetime, ScenarioChange]
StatedRecord = StatedEvidence | StatedApproval | StatedDecision
_DEFAULT_AUTHOR = "scenario@example.com"


class ScenarioTimeline:
    """Converter of a scenario's statements into timed changes of its world."""

    def __init__(self, scenario: Scenario, groups: Callable[[StatedVariant], int]) -> None:
        """Create the timeline; `groups` returns a variant's rollout group in its stage."""
        self._scenario, self._spec = scenario, scenario.spec
        self._groups = groups
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
        answer = EvidenceStatus.FAILED if variant.stated.fails else EvidenceStatus.PASSED
        return at, partial(
            self._apply_answer, ScenarioAnswer(variant=variant.name, at=at, status=answer)
        )

    def deliver_pending_answers(self, world: ScenarioWorld) -> None:
        """Apply answers about drafts that were stated before the drafts existed."""
        for variant in world.variants.values():
            if variant.pending_answers and variant.draft is not None:
                pending, variant.pending_answers = variant.pending_answers, []
                for scenario_answer in pending:
                    self._apply_answer(scenario_answer, world)

    def _instant(self, when: Any) -> datetime:
        return self._spec.resolve_instant(when)

    def _add_variant(
        self, world: ScenarioWorld, name: str, stated: StatedVariant, now: datetime
    ) -> Iterator[TimedChange]:
        variant = ScenarioVariant(
            name=name, stated=stated, group=self._groups(stated), offline=stated.offline
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
            at = self._instant(stated.released)
            yield at, partial(_apply_release, name, at)
        if stated.taken_back:
            yield now, partial(_apply_revert, name)

    def _stay_changes(
        self, variant: ScenarioVariant, stay: StatedPublication, now: datetime
    ) -> Iterator[TimedChange]:
        at = compute_publication_time(self._scenario, stay, now)
        if at is not None:
            yield at, partial(_apply_publication, variant.name, stay, at)
        for when, answer in (
            (stay.ready, EvidenceStatus.PASSED),
            (stay.failed, EvidenceStatus.FAILED),
            (stay.withdrawn, EvidenceStatus.FAILED),
        ):
            if when is not None:
                then = self._instant(when)
                yield (
                    then,
                    partial(
                        self._apply_answer,
                        ScenarioAnswer(variant=variant.name, at=then, status=answer),
                    ),
                )
        for stated_answer in stay.answers:
            then = at or now if stated_answer.at is None else self._instant(stated_answer.at)
            scenario_answer = ScenarioAnswer(
                variant=variant.name,
                at=then,
                status=stated_answer.status,
                check=stated_answer.check,
                message=stated_answer.message,
                observed_revision=stated_answer.seen or "",
            )
            yield then, partial(self._apply_answer, scenario_answer)

    def _apply_answer(self, scenario_answer: ScenarioAnswer, world: ScenarioWorld) -> None:
        variant, rule = (
            world.variants.get(scenario_answer.variant),
            _stage_rule(world, scenario_answer.variant),
        )
        if variant is None or rule is None:
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
        status = Verdict(scenario_answer.status.value)
        if isinstance(check, CheckRule) and check.method is not CheckMethod.REPORT:
            sentence = scenario_answer.message or f"check {check.name}: {status.value}"
            reading = CheckReading(
                check.name,
                subject.digest,
                status,
                sentence,
                scenario_answer.observed_revision or subject.revision,
            )
            world.variants[scenario_answer.variant].readings[check.name, subject.digest] = reading
            return
        spec = {
            "stage": world.variants[scenario_answer.variant].stated.stage,
            "variants": [scenario_answer.variant],
            "check": check.name,
            "status": status.value,
            "revision": subject.revision,
        }
        world.records.append(self._build_record("Evidence", scenario_answer.at, spec))

    def _add_record(self, record: StatedRecord, at: datetime, world: ScenarioWorld) -> None:
        spec = record.model_dump(mode="json", by_alias=True, exclude_none=True)
        for name in ("at", "by", "name"):
            spec.pop(name, None)
        kind = type(record).__name__.removeprefix("Stated")
        if isinstance(record, StatedDecision) and record.expires is not None:
            spec["expires"] = self._instant(record.expires).isoformat()
        if isinstance(record, StatedApproval | StatedDecision) and record.trees is None:
            draft_trees = world.draft_trees(
                record.stage or "", record.variants, record.revision or ""
            )
            if draft_trees is None and spec.get("action", "Publish") == "Publish":
                return  # like the command, which records nothing if all drafts are left out
            spec["trees"] = list(draft_trees or ())
        world.records.append(self._build_record(kind, at, spec, record.by, record.name))

    def _build_record(
        self,
        kind: str,
        at: datetime,
        spec: dict[str, Any],
        by: str = _DEFAULT_AUTHOR,
        name: str = "",
    ) -> RecordEntry:
        self._record_count += 1
        return RecordEntry(
            name=name or f"{kind.lower()}-{self._record_count}", at=at, by=by, kind=kind, spec=spec
        )

    def _apply_event(self, event: ScenarioEvent, world: ScenarioWorld) -> None:
        at = self._instant(event.at)
        if event.revision:
            world.revisions.append(event.revision)
        for record in (event.evidence, event.approval, event.decision):
            if record is not None:
                self._add_record(record, at, world)
        if event.comes is not None:
            self._add_variants(event.comes, at, world)
        for name in event.goes:
            world.variants.pop(name, None)
        present = world.variants.keys()
        for name in present & {*event.offline, *event.online}:
            world.variants[name].offline = name in event.offline
        for name in present & {*event.changed}:
            world.variants[name].change_inputs()
        if event.answer is not None:
            stated_answer = event.answer
            for name in stated_answer.variants:
                scenario_answer = ScenarioAnswer(
                    variant=name,
                    at=at,
                    status=stated_answer.status,
                    check=stated_answer.check,
                    message=stated_answer.message,
                    observed_revision=stated_answer.seen or "",
                )
                self._apply_answer(scenario_answer, world)

    def _add_variants(self, stated: StatedVariant, at: datetime, world: ScenarioWorld) -> None:
        for name in expand_variant_names(stated):
            changes = self._add_variant(world, name, stated, at)
            for _, change in sorted(changes, key=lambda it: it[0]):
                change(world)


def _stage_rule(world: ScenarioWorld, name: str) -> StageRule | None:
    stage = world.variants[name].stated.stage if name in world.variants else ""
    return next((rule for rule in world.setting.rules if rule.name == stage), None)


def _apply_publication(
    name: str, stay: StatedPublication, at: datetime, world: ScenarioWorld
) -> None:
    variant, revision = world.variants[name], stay.revision or ""
    digest = stay.digest or revision
    tree = stay.tree or variant.tree_of(digest)
    variant.publish(
        Publication(revision, digest, tree, at, frozenset(stay.commits), reads=dict(stay.reads))
    )


def _apply_release(name: str, at: datetime, world: ScenarioWorld) -> None:
    world.variants[name].stated_release = at


def _apply_revert(name: str, world: ScenarioWorld) -> None:
    variant = world.variants[name]
    if variant.published is not None:
        variant.published = with_revert_hold(variant.published)


@frozen
class ScenarioPolicy:
    """The policy of a scenario and the PromotionPolicies that govern it."""

    policy: UpstreamPolicy
    promotions: tuple[PromotionPolicy, ...]


def find_policy(
    scenario: Scenario,
    policies: Iterable[UpstreamPolicy],
    promotions: Iterable[PromotionPolicy],
) -> ScenarioPolicy | None:
    """Return the policy that the scenario names or states; None if it is missing."""
    spec, meta = scenario.spec, scenario.metadata
    if not spec.stages:
        named = (spec.policy, meta.namespace)
        for policy in policies:
            if (policy.metadata.name, policy.metadata.namespace) == named:
                return ScenarioPolicy(policy, governing_promotions(policy, promotions))
        return None
    promotion_spec = spec.promotion or PromotionPolicySpec(
        auto_promotion=AutoPromotion(stages=("*",))
    )
    own_metadata = ObjectMeta(name=meta.name, namespace=meta.namespace)
    return ScenarioPolicy(
        _build_policy(scenario, own_metadata),
        (PromotionPolicy(metadata=own_metadata, spec=promotion_spec),),
    )


def _build_policy(scenario: Scenario, meta: ObjectMeta) -> UpstreamPolicy:
    """Build a policy of the stated stages; no gate reads its upstream or its targets."""
    return UpstreamPolicy(
        metadata=meta,
        spec=UpstreamPolicySpec(
            upstream=Upstream(
                repository="stated", package="stated", revision=RevisionRule(latest=True)
            ),
            targets=(TargetEntry(),),
            stages=scenario.spec.stages,
            in_flight=scenario.spec.in_flight or InFlight.SUPERSEDE,
        ),
    )


def build_setting(
    scenario: Scenario,
    scenario_policy: ScenarioPolicy,
    compile_condition: Callable[[str], PropagationCondition],
) -> ScenarioSetting:
    """Build the settings of a scenario; `compile_condition` is as in `build_stage_rules`."""
    policy, promotions, calendars_incomplete = (
        scenario_policy.policy,
        scenario_policy.promotions,
        scenario.spec.unread,
    )
    rules = build_stage_rules(policy, promotions, compile_condition)
    upstream = policy.spec.upstream
    has_own_stages = bool(scenario.spec.stages)
    return ScenarioSetting(
        name=policy.metadata.name,
        rules=tuple(
            replace(rule, automatic=rule.automatic and not calendars_incomplete) for rule in rules
        ),
        suspended=policy.spec.suspend or scenario.spec.suspend,
        serialize=policy.spec.in_flight is InFlight.SERIALIZE,
        automation_acts=scenario.spec.sweep,
        calendars_incomplete=calendars_incomplete,
        calendars=build_calendars(promotions),
        finishing_calendars=frozenset(
            it.metadata.name for it in promotions if it.spec.at_close is AtClose.FINISH
        ),
        upstream={}
        if has_own_stages
        else {"repository": upstream.repository, "package": upstream.package},
    )


def build_timeline(scenario: Scenario, scenario_policy: ScenarioPolicy) -> ScenarioTimeline:
    """Build the timeline of the scenario."""
    return ScenarioTimeline(scenario, _rollout_groups(scenario_policy.policy))


def _rollout_groups(policy: UpstreamPolicy) -> Callable[[StatedVariant], int]:
    """Return a function for a variant's rollout group; others come last."""
    groups = {
        stage.name: stage.rollout.groups if stage.rollout else () for stage in policy.spec.stages
    }

    def find_group(variant: StatedVariant) -> int:
        selectors: Sequence[MatchableSelector] = groups.get(variant.stage, ())
        matching = (i for i, selector in enumerate(selectors) if matches(selector, variant.labels))
        return next(matching, len(selectors))

    return find_group
