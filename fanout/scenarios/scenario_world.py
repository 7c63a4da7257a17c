"""Policy, settings and state of a scenario, from which the facts of an instant are built.

The policy is named in the declared objects, or stated in the scenario. Where a sweep observes
repositories and records, the state keeps what the scenario states, what has happened since and what
was carried out. Drafts follow the candidates, as they do after a pass.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Any

from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import ObjectMeta
from fanout.api.package_variant import RevisionRule, Upstream
from fanout.api.promotion_policy import (
    AutoPromotion,
    PromotionPolicy,
    PromotionPolicySpec,
    normalize_person,
)
from fanout.api.reasons import Reason
from fanout.api.results import CheckAnswer, Hold
from fanout.api.scenario import Scenario, StatedDraft, StatedHold, StatedVariant
from fanout.api.upstream_policy import InFlight, TargetEntry, UpstreamPolicy, UpstreamPolicySpec
from fanout.gates.gate_evaluation import find_leads, find_rollbacks
from fanout.gates.gate_facts import (
    CheckReading,
    DraftFacts,
    Grant,
    PolicyEvaluation,
    PolicyFacts,
    Publication,
    VariantFacts,
)
from fanout.gates.gate_rules import PropagationCondition
from fanout.gates.record_facts import RecordFacts
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.evidence.record_times import effective_records, records_ahead
from fanout.plan.gates.gate_records import build_gate_records
from fanout.plan.gates.stage_rules import (
    build_calendars,
    build_stage_rules,
    governing_promotions,
)
from fanout.plan.records.policy_records import RecordEntry, active_records
from fanout.values import Value, replace


class ScenarioPolicy(Value):
    """The policy of a scenario and the PromotionPolicies that govern it."""

    policy: UpstreamPolicy
    promotions: tuple[PromotionPolicy, ...]


def find_policy(
    scenario: Scenario, policies: Iterable[UpstreamPolicy], promotions: Iterable[PromotionPolicy]
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
    policy_spec = UpstreamPolicySpec(
        # No gate reads upstream or targets.
        upstream=Upstream(
            repository="stated", package="stated", revision=RevisionRule(latest=True)
        ),
        targets=(TargetEntry(),),
        stages=spec.stages,
        in_flight=spec.in_flight or InFlight.SUPERSEDE,
    )
    return ScenarioPolicy(
        UpstreamPolicy(metadata=own_metadata, spec=policy_spec),
        (PromotionPolicy(metadata=own_metadata, spec=promotion_spec),),
    )


def build_first_facts(
    scenario: Scenario,
    scenario_policy: ScenarioPolicy,
    compile_condition: Callable[[str], PropagationCondition],
) -> PolicyFacts:
    """Build the facts of a scenario in which nothing has happened yet.

    `compile_condition` is as in `build_stage_rules`.
    """
    policy, promotions = scenario_policy.policy, scenario_policy.promotions
    rules = build_stage_rules(policy, promotions, compile_condition)
    return PolicyFacts(
        name=policy.metadata.name,
        stages=tuple(
            replace(rule, automatic=rule.automatic and not scenario.spec.unread) for rule in rules
        ),
        variants=(),
        revisions=(),
        records=RecordFacts(),
        history={},
        now=scenario.spec.resolve_instant(None),
        suspended=policy.spec.suspend or scenario.spec.suspend,
        serialize=policy.spec.in_flight is InFlight.SERIALIZE,
        # Automation publishes in sweeps alone only where a schedule may say so.
        sweep=scenario.spec.sweep
        or not (scenario.spec.unread or any(it.spec.schedule for it in promotions)),
        has_unreadable_calendar=scenario.spec.unread,
        calendars=build_calendars(promotions),
    )


class ScenarioAnswer(Value, kw_only=True):
    """Answer of one check about a variant, or of all after publication if unnamed."""

    variant: str
    at: datetime
    status: Verdict
    check: str = ""
    message: str = ""
    # revision or commit observed by a machine; "": the one in question
    observed_revision: str = ""


@dataclass(slots=True)
class ScenarioVariant:
    """Present state of one variant of a scenario."""

    _: KW_ONLY
    name: str
    stated: StatedVariant
    group: int = 0
    published: Publication | None = None
    draft: DraftFacts | None = None
    grant: Grant | None = None
    # the scenario's statement about the draft, until it is replaced
    stated_draft: StatedDraft | None = None
    stated_release: datetime | None = None  # stated release of its draft
    offline: bool = False
    removed: datetime | None = None
    input_changes: int = 0  # number of changes of its inputs
    missing_revision: str = ""  # rollback target that it never had
    # by revision, the last of each
    publications: dict[str, Publication] = field(default_factory=dict)
    # by check and digest
    readings: dict[tuple[str, str], CheckReading] = field(default_factory=dict)
    # answers about drafts that do not exist yet
    pending_answers: list[ScenarioAnswer] = field(default_factory=list)
    answers: tuple[CheckAnswer, ...] = ()

    def digest_of(self, revision: str) -> str:
        """Return the digest of the revision with the present inputs, where none is stated."""
        if self.input_changes:
            return f"{revision}+{self.input_changes}"
        earlier = self.publications.get(revision)
        return earlier.digest if earlier is not None else revision

    def tree_of(self, digest: str) -> str:
        """Return the tree of a rendering with this digest."""
        return f"{self.name}@{digest}"

    def build_draft(self, revision: str) -> DraftFacts:
        """Build an up-to-date draft of the revision."""
        digest = self.digest_of(revision)
        return DraftFacts(revision, digest, self.tree_of(digest))

    def build_stated_draft(self, stated: StatedDraft, candidate: str) -> DraftFacts:
        """Build the draft that the scenario states."""
        revision = stated.revision or candidate
        digest = stated.digest or self.digest_of(revision)
        return DraftFacts(
            revision=revision,
            digest=digest,
            tree=stated.tree or self.tree_of(digest),
            current=stated.current,
            conflict_count=stated.disputed,
            adopts=stated.adopts,
            moves=stated.moves,
            reads=stated.reads,
            commits=frozenset(stated.commits),
            authors=frozenset(map(normalize_person, stated.authors)),
            has_commits=bool(stated.authors),
        )

    def update_draft(self, candidate: str, now: datetime) -> None:
        """Bring the draft up to date with the candidate of its stage."""
        draft = self.draft
        if not self.stated.drafted or not candidate or (draft is not None and not draft.current):
            return
        if draft is None and self.stated_draft is not None:
            self.draft = replace(self.build_stated_draft(self.stated_draft, candidate), written=now)
        elif draft is None or draft.revision != candidate:
            self.stated_draft = None
            self.draft = replace(self.build_draft(candidate), written=now)
        published = self.published
        if self.stated_draft is None and published is not None and self.draft is not None:
            draft_identity = (self.draft.revision, self.draft.digest)
            if (published.revision, published.digest) == draft_identity:
                self.draft = None

    def apply_stated_release(self) -> None:
        """Apply the stated release to the present draft."""
        if self.stated_release is not None and self.draft is not None:
            self.grant = Grant(self.draft.revision, self.draft.digest, self.stated_release)
            self.stated_release = None

    def roll_back(self, revision: str) -> None:
        """Make the earlier publication of the revision, unchanged, the draft."""
        earlier, published = self.publications.get(revision), self.published
        self.missing_revision = "" if earlier is not None else revision
        self.draft = None
        if earlier is not None and (published is None or published.digest != earlier.digest):
            identity = earlier.revision, earlier.digest, earlier.tree
            self.draft = DraftFacts(*identity, reads=earlier.reads)

    def change_inputs(self) -> None:
        """Change the inputs, which makes the draft stale."""
        self.input_changes += 1
        self.stated_draft = self.draft = None

    def publish(self, published: Publication) -> None:
        """Put a publication in force; the same revision keeps its instant `since`."""
        if (previous := self.published) is not None and previous.revision == published.revision:
            published = replace(published, since=previous.since or previous.at)
        self.published = self.publications[published.revision] = published

    def revert(self) -> None:
        """Mark the publication as taken off its branch by hand."""
        if self.published is not None:
            sentence = f"{self.published.revision} was removed from the branch"
            hold = Hold(Reason.EDITED_DOWNSTREAM, sentence, "any promoter (fanout promote)")
            self.published = replace(self.published, reverted=hold)

    def state_release(self, at: datetime) -> None:
        """Let the next draft be released at an instant."""
        self.stated_release = at

    def draft_of(self, revision: str) -> DraftFacts:
        """Return the draft of the revision, present or expected."""
        if self.draft is not None and self.draft.revision == revision:
            return self.draft
        if (stated := self.stated_draft) is not None and stated.revision in (None, revision):
            return self.build_stated_draft(stated, revision)
        return self.build_draft(revision)


@dataclass(slots=True)
class ScenarioWorld:
    """Present state of everything that the scenario states."""

    _: KW_ONLY
    first_facts: PolicyFacts  # before anything has happened
    upstream: Mapping[str, Any]  # variables of `propagateWhen`
    variants: dict[str, ScenarioVariant] = field(default_factory=dict)
    revisions: list[str] = field(default_factory=list)
    records: list[RecordEntry] = field(default_factory=list)
    history: Mapping[tuple[str, str], RevisionHistory] = field(default_factory=dict)
    _seen_ahead: set[str] = field(default_factory=set)

    def gate_records(self, now: datetime) -> RecordFacts:
        """Return the records that count by `now`; those dated ahead begin to count as it passes."""
        self._seen_ahead |= {it.name for it in records_ahead(self.records, now)}
        effective = effective_records(self.records, now, self._seen_ahead)
        return build_gate_records(active_records(effective), now)

    def build_facts(self, now: datetime) -> PolicyFacts:
        """Build the facts that the policy evaluator reads."""
        return replace(
            self.first_facts,
            variants=tuple(map(self._build_variant_facts, self.variants.values())),
            revisions=tuple(self.revisions),
            records=self.gate_records(now),
            history=self.history,
            now=now,
        )

    def apply_stated_drafts(self, now: datetime) -> None:
        """Create the drafts whose revision is stated, and apply their stated releases.

        This comes before candidates are selected: a released draft holds its slot and may keep
        its revision.
        """
        for variant in self.variants.values():
            stated = variant.stated_draft
            if variant.draft is None and stated is not None and stated.revision:
                draft = variant.build_stated_draft(stated, stated.revision)
                variant.draft = replace(draft, written=now)
                variant.apply_stated_release()

    def update_drafts(
        self, candidates: Mapping[str, str], now: datetime, *, is_past: bool = False
    ) -> None:
        """Bring all drafts up to date with the candidates of their stages.

        A draft stated with its revision is so at the scenario's `now`: no pass of the past
        replaces it, though a newer revision may be stated too.
        """
        facts = self.build_facts(now)
        pins, leads = find_rollbacks(facts), find_leads(facts)
        for variant in self.variants.values():
            pin = pins.get(variant.name)
            variant.missing_revision = ""
            variant.apply_stated_release()
            stated = variant.stated_draft
            if pin is not None:
                variant.roll_back(pin.revision)
            elif not (is_past and stated is not None and stated.revision is not None):
                candidate = candidates.get(variant.stated.stage, "")
                variant.update_draft(leads.get(variant.name, candidate), now)
            variant.apply_stated_release()

    def carry_out(self, decision: PolicyEvaluation, now: datetime) -> tuple[str, ...]:
        """Record releases and publish what is allowed; return the names of published variants."""
        published: list[str] = []
        last_evidence = self.gate_records(now).position(now).last_evidence
        for name, variant_decision in decision.variants.items():
            variant = self.variants[name]
            if (draft := variant.draft) is None:
                continue
            if variant_decision.release:
                released_by = variant_decision.released_by
                variant.grant = Grant(draft.revision, draft.digest, now, released_by)
            if variant_decision.publish:
                publication = Publication(
                    draft.revision,
                    draft.digest,
                    draft.tree,
                    now,
                    reads=draft.reads,
                    last_evidence=last_evidence,
                    waiting=frozenset(variant_decision.waiting),
                )
                variant.publish(publication)
                variant.draft = variant.grant = variant.stated_draft = None
                published.append(name)
        return tuple(published)

    def record_decision(self, decision: PolicyEvaluation) -> None:
        """Keep what the recorded status keeps of a pass."""
        self.history = decision.history
        for name, variant_decision in decision.variants.items():
            self.variants[name].answers = variant_decision.answers

    def draft_trees(
        self, stage: str, variants: Sequence[str], revision: str
    ) -> tuple[str, ...] | None:
        """Return the trees of the drafts of a revision, as an approver would see them.

        Without `variants`, those of a stage except drafts with undecided conflicts; None if
        that leaves none of them.
        """
        selected = [
            variant
            for variant in self.variants.values()
            if (variant.name in variants if variants else stage in ("", variant.stated.stage))
        ]
        drafts = (variant.draft_of(revision) for variant in selected)
        trees = tuple(draft.tree for draft in drafts if variants or not draft.conflict_count)
        return None if selected and not trees else trees

    def _build_variant_facts(self, variant: ScenarioVariant) -> VariantFacts:
        stated = variant.stated
        hold = _build_hold(stated.held, Reason.PATH_TAKEN)
        if variant.missing_revision:
            revision = variant.missing_revision
            sentence = f"it was never published at {revision}, the revision of the rollback"
            hold = Hold(Reason.NEVER_PUBLISHED, sentence, "the author of the rollback")
        return VariantFacts(
            name=variant.name,
            stage=stated.stage,
            target=str(stated.target.get("kind", "Target")) + f"/{variant.name}",
            priority=stated.priority,
            group=variant.group,
            published=variant.published,
            draft=variant.draft,
            grant=variant.grant,
            suspended=stated.suspended,
            offline=variant.offline,
            readings=tuple(variant.readings.values()),
            answers=variant.answers,
            dependency_holds=tuple(
                Hold(Reason.DEPENDENCY_PENDING, "not ready")
                for it in stated.depends_on
                if not it.ready
            ),
            variables={
                "target": stated.target,
                "variant": {
                    "name": variant.name,
                    "labels": dict(stated.labels),
                    "stage": stated.stage,
                    "priority": stated.priority,
                    "target": variant.name,
                },
                "upstream": self.upstream,
            },
            held=hold,
            failed=_build_hold(stated.broken, Reason.RENDER_FAILED),
            removed=variant.removed,
        )


def _build_hold(stated: StatedHold | None, otherwise: Reason) -> Hold | None:
    return Hold(stated.reason or otherwise, stated.message, stated.who) if stated else None
