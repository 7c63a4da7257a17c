"""Evaluation of a policy's stages: tallies, candidates and verdicts.

This is the part of the result that list, plan and explain share; what each variant may
do is derived from it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property

from fanout.api.gate_vocabulary import Action, OverridableGate, VariantState, Verdict
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates import gate_wording
from fanout.gates.active_decisions import (
    ActiveDecisions,
    combine_overrides,
    covers,
    spec_suspension_hold,
)
from fanout.gates.after_gate import (
    OPEN_GATE,
    AfterGate,
    UpstreamStage,
    evaluate_after,
    forward_verdicts,
)
from fanout.gates.approval_index import ApprovalIndex
from fanout.gates.candidate_choice import (
    NOTHING_PROMOTED,
    CandidateChoice,
    CandidatePromotion,
    RevisionAges,
    can_reach,
    choose_candidate,
    find_promoted,
    reachable_revisions,
    serialize_choice,
)
from fanout.gates.check_evaluation import RequiredChecks
from fanout.gates.evidence_index import EvidenceIndex
from fanout.gates.gate_facts import DraftFacts, PolicyFacts, VariantFacts
from fanout.gates.gate_rules import StageRule, sort_stages
from fanout.gates.gate_wording import append_reason
from fanout.gates.release_holds import PublicationWindows, SharedObjects
from fanout.gates.revision_history import RevisionHistory
from fanout.gates.rollback_pins import Pin, find_pin
from fanout.gates.stage_tally import StageTally, TalliedVariant, group_by_stage
from fanout.gates.stage_verdicts import StageVerdicts, compute_stage_verdicts
from fanout.gates.tally_builder import TallyBuilder

_GateKey = tuple[str, str, frozenset[OverridableGate]]


@dataclass
class GateEvaluation:
    """Tally, verdicts and candidate of each stage, by stage name."""

    policy_facts: PolicyFacts
    ages: RevisionAges
    stages: tuple[StageRule, ...]  # upstream stages first
    evidence: EvidenceIndex
    approvals: ApprovalIndex
    active_decisions: ActiveDecisions
    suspended: Hold | None  # the whole policy
    unstaged: tuple[VariantFacts, ...] = ()  # variants in no stage
    tallies: dict[str, StageTally] = field(default_factory=dict)
    verdicts: dict[str, StageVerdicts] = field(default_factory=dict)
    choices: dict[str, CandidateChoice] = field(default_factory=dict)
    promoted: dict[str, CandidatePromotion] = field(default_factory=dict)  # by decisions
    # Who can unblock each stage; filled in as stages are evaluated, upstream first.
    actors: dict[str, str] = field(default_factory=dict)
    # Memo of gates; cleared whenever a verdict or an actor that they rest on changes.
    _gates: dict[_GateKey, AfterGate] = field(default_factory=dict)
    _ready_at: dict[tuple[str, str], datetime | None] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        """Return the instant of the pass."""
        return self.policy_facts.now

    @property
    def variants(self) -> Iterator[TalliedVariant]:
        """Yield the variants of all stages."""
        return (variant for tally in self.tallies.values() for variant in tally.variants)

    @cached_property
    def windows(self) -> PublicationWindows:
        """Return the publication windows of the policy at this instant."""
        facts = self.policy_facts
        return PublicationWindows(
            facts.calendars, facts.now, has_unreadable_calendar=facts.has_unreadable_calendar
        )

    @cached_property
    def shared_objects(self) -> SharedObjects:
        """Return the readers of each cluster object, by stage."""
        return SharedObjects(self.stages, self.tallies)

    def candidate(self, stage: str) -> str:
        """Return the stage's candidate, "" if there is none."""
        return self.choices[stage].revision

    def lead(self, variant_facts: VariantFacts) -> str:
        """Return the revision to which a decision about the variant alone takes it, or ""."""
        promoted = self.promoted.get(variant_facts.stage, NOTHING_PROMOTED)
        candidate, publication = self.candidate(variant_facts.stage), variant_facts.published
        revision = promoted.by_variant.get(variant_facts.name, "")
        if (
            not revision
            and publication is not None
            and (variant_facts.name in promoted.ahead or promoted.stage)
            and self.ages.is_allowed(publication.revision)
            and self.ages.is_older(candidate, publication.revision)
        ):
            revision = publication.revision
        return revision if revision != candidate else ""

    def pin(self, stage_rule: StageRule, variant_name: str = "") -> Pin | None:
        """Return the pin in force for the stage, or for one variant in it, or None."""
        pin = find_pin(stage_rule, self.active_decisions.rollbacks, variant_name)
        if pin is None or not pin.until:
            return pin
        # The revision promoted since the rollback ends the pin once it may be taken.
        decisions = self.active_decisions.publish_decisions(
            stage_rule.name, variant_name, pin.until
        )
        gate = self.evaluate_gate(stage_rule, pin.until, combine_overrides(decisions))
        return None if gate.verdict is Verdict.PASSED else pin

    def stage_gate(self, stage_rule: StageRule, revision: str) -> AfterGate:
        """Evaluate `after` for a revision, with the overrides for the whole stage."""
        return self.evaluate_gate(
            stage_rule, revision, self.active_decisions.stage_overrides(stage_rule.name, revision)
        )

    def evaluate_gate(
        self, stage_rule: StageRule, revision: str, overrides: frozenset[OverridableGate]
    ) -> AfterGate:
        """Evaluate `after` of a stage for a revision, with exactly these overrides; memoized."""
        if stage_rule.after is None:
            return OPEN_GATE
        key = (stage_rule.name, revision, overrides)
        # The gate of a control-flow stage recurses into the stages before it. Without the memo a
        # diamond of stages would be evaluated once per path, which grows exponentially.
        if (gate := self._gates.get(key)) is None:
            upstream_stages = {
                name: self._find_upstream_stage(name, revision) for name in stage_rule.after.stages
            }
            gate = self._gates[key] = evaluate_after(
                stage_rule.after, revision, upstream_stages, self.now, overrides
            )
        return gate

    def apply_candidates(self) -> None:
        """Compute the verdicts again with the candidates known.

        Failures before publication fail the candidate, so they can be attributed only now.
        """
        required_checks = RequiredChecks(
            self.evidence, self.approvals, self.active_decisions, self.now
        )
        histories = _history_by_stage(self.policy_facts)
        # Memoized gates rest on verdicts that this loop replaces.
        self._gates.clear()
        self._ready_at.clear()
        for stage_rule in self.stages:
            candidate = self.candidate(stage_rule.name)
            for variant in self.tallies[stage_rule.name].variants:
                self._evaluate_required(stage_rule, candidate, variant, required_checks)
            self.verdicts[stage_rule.name] = self.compute_verdicts(stage_rule, histories, candidate)

    def record_actor(self, stage: str, actor: str) -> None:
        """Record who can unblock an evaluated stage; the gates of later stages name them."""
        self.actors[stage] = actor
        # The candidates are fixed by now, so the gates evaluated again keep their verdicts.
        self._gates.clear()  # memoized holds name the actors

    def _evaluate_required(
        self,
        stage_rule: StageRule,
        stage_candidate: str,
        variant: TalliedVariant,
        required_checks: RequiredChecks,
    ) -> None:
        variant_facts = variant.facts
        pin = self.pin(stage_rule, variant_facts.name)
        lead = self.lead(variant_facts) if pin is None else ""
        variant.leads = bool(lead)
        variant.candidate = candidate = pin.revision if pin else lead or stage_candidate
        variant.draft = draft = find_current_draft(variant_facts, candidate)
        if candidate != stage_candidate:
            if pin is not None and pin.decision is not None:
                # Its stage counts a variant that is rolled back alone as failed.
                decision = pin.decision
                sentence = append_reason(
                    f"rolled back to {pin.revision} by {decision.by}", decision.spec.reason
                )
                actor = f"{decision.by} (fanout withdraw {decision.name})"
                variant.rolled_back = Hold(Reason.PINNED, sentence, actor, decision.at)
            if lead and variant_facts.published is not None:
                # A fix of one variant ends no halt: what failed in it before it went ahead would
                # go on to the others.
                stage, name = stage_rule.name, variant_facts.name
                retried = self.active_decisions.retried_at(stage, name, stage_candidate)
                failures = (
                    (
                        it.name,
                        self.evidence.find_failure(stage, it.name, name, stage_candidate, retried),
                    )
                    for it in stage_rule.verification
                )
                for check, failure in failures:
                    if failure is not None:
                        sentence = gate_wording.describe_failed_check(check, failure.by)
                        hold = Hold(Reason.VERIFICATION_FAILED, sentence, since=failure.at)
                        variant.overtaken = hold
                        break
        # Before the verdicts are computed anew: a cleared failure must not fail the candidate.
        if draft is not None and variant.state is VariantState.FAILED:
            self.tallies[stage_rule.name].clear_failure(variant, draft)
        if draft is not None and stage_rule.requires:
            pending_publishes = self.active_decisions.pending_publishes(variant_facts, candidate)
            decisions = [
                decision for decision in pending_publishes if covers(decision, variant_facts, draft)
            ]
            variant.required, answers = required_checks.evaluate(
                stage_rule, variant_facts, draft, decisions
            )
            variant.answers += answers
        if variant_facts.failed is not None:
            variant.early_failure = variant_facts.failed
        # A rollback needs no new results of `requires`.
        elif variant.required and pin is None:
            failed = (it for it in variant.required if it.verdict is Verdict.FAILED)
            if (it := next(failed, None)) is not None:
                reason = Reason.REQUIRES_FAILED
                variant.early_failure = Hold(reason, it.message, it.who, it.at, it.until)

    def compute_verdicts(
        self,
        stage_rule: StageRule,
        histories: Mapping[str, Mapping[str, RevisionHistory]],
        candidate: str = "",
    ) -> StageVerdicts:
        """Compute the verdicts of a stage for every revision, after its upstream stages'."""
        if not stage_rule.control_flow:
            return compute_stage_verdicts(
                self.tallies[stage_rule.name], histories[stage_rule.name], self.now, candidate
            )
        upstream_names = stage_rule.after.stages if stage_rule.after else ()
        return forward_verdicts(
            stage_rule,
            lambda revision: self.stage_gate(stage_rule, revision),
            {name: self.verdicts[name] for name in upstream_names},
            histories[stage_rule.name],
            self.ages.allowed,
            self.now,
        )

    def _find_upstream_stage(self, stage: str, revision: str) -> UpstreamStage:
        """Return the state of a stage that is to take the revision before a later one does."""
        tally, verdicts = self.tallies[stage], self.verdicts[stage]
        stage_rule, actor = tally.stage_rule, self.actors.get(stage, "")
        # When time alone makes the stage ready with the revision; None if it is ready, or never.
        ready_at: datetime | None = None
        is_ready = verdicts.is_in_force(revision)
        if stage_rule.control_flow:
            gate = self.stage_gate(stage_rule, revision)
            if not is_ready:
                ready_at = gate.ready_again_at if gate.verdict is Verdict.PASSED else gate.next
            actor = gate.holds[0].who if gate.holds else actor
            return UpstreamStage(verdicts, gate.possible, actor, ready_at, gate.can_stay_ready)
        candidate = self.candidate(stage)
        if candidate != revision and (holds := self.stage_gate(stage_rule, revision).holds):
            actor = holds[0].who
        if not is_ready:
            key = (stage, revision)
            if key not in self._ready_at:
                early_failures = tally.early_failure_count(revision) if revision == candidate else 0
                self._ready_at[key] = tally.passes_at(revision, early_failures)
            ready_at = self._ready_at[key]
        pin = self.pin(stage_rule)
        can_be_ready = (pin is not None and pin.revision == revision) or can_reach(
            tally, verdicts, candidate, revision, self.ages
        )
        return UpstreamStage(verdicts, can_be_ready, actor, ready_at, can_be_ready)


def start_evaluation(policy_facts: PolicyFacts) -> GateEvaluation:
    """Tally every stage and choose its candidate, upstream stages first.

    Nothing rendered is read; `apply_candidates` does the rest once drafts are known.
    """
    now = policy_facts.now
    active_decisions = ActiveDecisions(policy_facts.records.decisions, now, policy_facts.variants)
    suspended = active_decisions.find_suspension("policy")
    if suspended is None and policy_facts.suspended:
        suspended = spec_suspension_hold("the policy", gate_wording.AUTHOR)
    evidence = EvidenceIndex(policy_facts.records.evidence, now)
    tally_builder = TallyBuilder(evidence, active_decisions, suspended, now)
    groups, unstaged = group_by_stage(
        policy_facts.variants, {stage_rule.name: stage_rule for stage_rule in policy_facts.stages}
    )
    evaluation = GateEvaluation(
        policy_facts,
        RevisionAges(policy_facts.revisions),
        sort_stages(policy_facts.stages),
        evidence,
        ApprovalIndex(
            policy_facts.records.approvals,
            policy_facts.stages,
            now,
            active_decisions,
            policy_facts.records.requested_changes,
        ),
        active_decisions,
        suspended,
        tuple(unstaged),
    )
    # All tallies come first: with `inFlight: Serialize` a stage asks those of the stages after it.
    for stage_rule in evaluation.stages:
        evaluation.tallies[stage_rule.name] = tally_builder.build(
            stage_rule, groups[stage_rule.name]
        )
    histories = _history_by_stage(policy_facts)
    # Upstream first: the candidate of a stage depends on the verdicts of the stages before it.
    for stage_rule in evaluation.stages:
        evaluation.verdicts[stage_rule.name] = evaluation.compute_verdicts(stage_rule, histories)
        evaluation.choices[stage_rule.name] = _choose_candidate(evaluation, stage_rule)
    return evaluation


def find_current_draft(variant_facts: VariantFacts, candidate: str) -> DraftFacts | None:
    """Return the variant's draft if it renders the candidate and is not published, or None."""
    draft, publication = variant_facts.draft, variant_facts.published
    if draft is None or not draft.current or draft.revision != candidate:
        return None
    in_force = publication is not None and (publication.revision, publication.digest) == (
        draft.revision,
        draft.digest,
    )
    # A move or a revert leaves revision and digest equal although the package must be written
    # again.
    needs_publication = draft.moves or (
        publication is not None and publication.reverted is not None
    )
    return None if in_force and not needs_publication else draft


def _choose_candidate(evaluation: GateEvaluation, stage_rule: StageRule) -> CandidateChoice:
    if (pin := find_pin(stage_rule, evaluation.active_decisions.rollbacks)) is not None:
        revision = pin.revision if evaluation.pin(stage_rule) is not None else pin.until
        eligible = tuple(filter(None, dict.fromkeys([revision, pin.until])))
        return CandidateChoice(revision, evaluation.ages.newer_than(revision), eligible)
    tally, verdicts = evaluation.tallies[stage_rule.name], evaluation.verdicts[stage_rule.name]

    def gate_of(revision: str) -> AfterGate:
        return evaluation.stage_gate(stage_rule, revision)

    ages = evaluation.ages
    reachable = reachable_revisions(tally, verdicts, ages)
    promoted = find_promoted(tally, evaluation.active_decisions, reachable, ages)
    choice = choose_candidate(tally, verdicts, gate_of, evaluation.approvals, ages, promoted.leads)
    if stage_rule.after is None:
        # A Publish of an older revision than its choice overrides nothing there, and waits.
        promoted = promoted.newer_than(choice.revision, ages)
    evaluation.promoted[stage_rule.name] = promoted
    if promoted.stage:
        newer = ages.newer_than(promoted.stage)
        return CandidateChoice(promoted.stage, newer, (promoted.stage, *newer))
    if not evaluation.policy_facts.serialize:
        return choice
    downstream_soaks = [
        (it.after.soak_time, evaluation.tallies[it.name])
        for it in evaluation.stages
        if it.after is not None and stage_rule.name in it.after.stages
    ]
    return serialize_choice(
        choice, tally, verdicts, gate_of, downstream_soaks, evaluation.ages, evaluation.now
    )


def _history_by_stage(policy_facts: PolicyFacts) -> Mapping[str, dict[str, RevisionHistory]]:
    """Group the history by stage; stages that were removed from the policy are dropped."""
    histories: dict[str, dict[str, RevisionHistory]] = {
        stage_rule.name: {} for stage_rule in policy_facts.stages
    }
    for (stage, revision), history in policy_facts.history.items():
        if stage in histories:
            histories[stage][revision] = history
    return histories


def find_leads(policy_facts: PolicyFacts) -> dict[str, str]:
    """Find the revisions that variants take, or keep, ahead of their stage, by variant."""
    if not any(it.spec.action is Action.PUBLISH for it in policy_facts.records.decisions):
        return {}
    evaluation = start_evaluation(policy_facts)
    leads = {it.facts.name: evaluation.lead(it.facts) for it in evaluation.variants}
    return {name: revision for name, revision in leads.items() if revision}


def find_rollbacks(policy_facts: PolicyFacts) -> dict[str, Pin]:
    """Find the pins of the variants that go back to an earlier publication, by variant."""
    has_rollback = any(it.spec.action is Action.ROLLBACK for it in policy_facts.records.decisions)
    if not has_rollback and not any(stage_rule.pin for stage_rule in policy_facts.stages):
        return {}
    evaluation = start_evaluation(policy_facts)
    stage_rules = {stage_rule.name: stage_rule for stage_rule in policy_facts.stages}
    pins = {
        it.name: evaluation.pin(stage_rules[it.stage], it.name)
        for it in policy_facts.variants
        if it.stage in stage_rules
    }
    return {name: pin for name, pin in pins.items() if pin is not None}
