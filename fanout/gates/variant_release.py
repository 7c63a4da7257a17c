"""Release and publication of variants: what each may do now, or what it waits for.

draft → released → (`requires` pass) proposed → published → (verification passes) ready,
or failed. A release is recorded for one digest and does not outlive the gate that
allowed it: until the variant is published, the gate must still be open (docs/concepts/rollouts.md).
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cached_property

from fanout.api.gate_vocabulary import OverridableGate, VariantState, Verdict
from fanout.api.reasons import AWAITS_APPROVERS, Reason
from fanout.api.results import CheckResult, Hold, VariantResult
from fanout.gates import gate_wording
from fanout.gates.active_decisions import combine_overrides, covers
from fanout.gates.after_gate import OPEN_GATE, AfterGate
from fanout.gates.candidate_choice import list_needed_overrides
from fanout.gates.gate_evaluation import GateEvaluation
from fanout.gates.gate_facts import DraftFacts, Grant, SetFacts
from fanout.gates.gate_rules import StageRule
from fanout.gates.gate_wording import append_reason
from fanout.gates.next_changes import expected_completion, next_change_of_waiting
from fanout.gates.record_facts import DecisionFacts, find_next
from fanout.gates.release_holds import (
    AutomaticPromotion,
    PropagationEvaluator,
    conflict_hold,
    not_covered_hold,
    unreviewed_hold,
)
from fanout.gates.rollback_pins import Pin
from fanout.gates.rollout_budget import RolloutBudget
from fanout.gates.stage_tally import StageTally, TalliedVariant, offline_hold
from fanout.values import replace

_NO_OVERRIDES: frozenset[OverridableGate] = frozenset()

_Wait = tuple[tuple[Hold, ...], tuple[CheckResult, ...], datetime | None]
"""Holds and checks of a variant that waits, and the next change by time."""


class StageReleaseEvaluator:
    """Evaluates the release of one stage's variants, in the order of release."""

    def __init__(self, evaluation: GateEvaluation, stage_rule: StageRule) -> None:
        self._evaluation = evaluation
        self._stage_rule = stage_rule
        # By overrides and revision: that of the stage, or of a variant that goes before it.
        self._gates: dict[tuple[frozenset[OverridableGate], str], AfterGate] = {}
        self._stage_holds: dict[tuple[frozenset[OverridableGate], str], tuple[Hold, ...]] = {}
        # By identity of the hold of automation: most drafts of a stage have one object.
        self._common_waits: dict[int, _Wait | None] = {}
        self._tally: StageTally = evaluation.tallies[stage_rule.name]
        self.candidate = evaluation.candidate(stage_rule.name)
        self.budget = RolloutBudget(self._tally, self.candidate)
        self.halted = self.budget.halted
        self.initial_aggregates = self.budget.aggregates  # as the pass begins
        self._automation = AutomaticPromotion(
            stage_rule,
            self.candidate,
            evaluation.verdicts[stage_rule.name],
            evaluation.ages,
            evaluation.policy_facts.sweep,
        )
        self.propagation = PropagationEvaluator(stage_rule, self.candidate)
        # The rollout of the candidate has begun and is not finished.
        self._is_under_way = not evaluation.verdicts[stage_rule.name].is_in_force(
            self.candidate
        ) and any(variant.released(self.candidate) for variant in self._tally.variants)
        # Instants at which time alone changes something about a variant: the stage waits for them.
        self.change_times: set[datetime] = set()
        # Instants at which a variant must be evaluated again, though nothing may come of it.
        self.check_times: set[datetime] = set()
        # Instants at which a check that passed, or an approval, expires. No gate opens then, so no
        # hold names them.
        self.expiry_times: set[datetime] = set()
        self.released: list[str] = []

    @cached_property
    def gate(self) -> AfterGate:
        """Return the gate of `after` for the candidate, for the stage as a whole."""
        # A rollback asks no upstream stage: they passed that revision when it was rolled out.
        if self._evaluation.pin(self._stage_rule) is not None:
            return OPEN_GATE
        return self._evaluation.stage_gate(self._stage_rule, self.candidate)

    def evaluate_variants(self) -> list[VariantResult]:
        """Evaluate all variants, in the order of names. Releases go by group, priority and name."""
        # The tally is sorted by name already; sorting again is skipped where neither group nor
        # priority is set.
        variants = self._tally.variants
        is_ranked = any(it.facts.group or it.facts.priority for it in variants)
        ordered = (
            sorted(variants, key=lambda it: (it.facts.group, -it.facts.priority, it.facts.name))
            if is_ranked
            else variants
        )
        evaluations = {variant.facts.name: self._evaluate_variant(variant) for variant in ordered}
        return [evaluations[variant.facts.name] for variant in variants]

    def _evaluate_variant(self, variant: TalliedVariant) -> VariantResult:
        """Evaluate one variant: its state, what this pass does, and all that blocks it."""
        if variant.next_change_at is not None:
            self.check_times.add(variant.next_change_at)
        self._note_check_times(variant.checks)  # of the publication
        variant_result = self._evaluate_state(variant)
        if variant_result.next is not None:
            self.change_times.add(variant_result.next)
        if variant.facts.offline and not any(
            it.reason == Reason.OFFLINE for it in variant_result.holds
        ):
            # Reported although it blocks nothing: it explains why an update may take long.
            offline_note = offline_hold(variant, released=True)
            variant_result = replace(variant_result, holds=(*variant_result.holds, offline_note))
        # A revert on the branch explains the state better than any gate, so it comes first.
        reverted = variant.facts.published.reverted if variant.facts.published else None
        if reverted is None or variant_result.state not in (
            VariantState.DRAFTED,
            VariantState.HELD,
        ):
            return variant_result
        other_holds = tuple(hold for hold in variant_result.holds if hold != reverted)
        return replace(
            variant_result, state=VariantState.HELD, holds=(reverted, *other_holds), next=None
        )

    def _evaluate_state(self, variant: TalliedVariant) -> VariantResult:
        """Evaluate a variant by what it has: a publication of the candidate, a draft, or neither.

        What stops it whatever its gates are (`_find_stop`), a skip, and an offline target come
        before the draft.
        """
        variant_facts, draft, candidate = variant.facts, variant.draft, variant.candidate
        stop = _find_stop(variant, candidate)
        publication = variant_facts.published
        # Beside the published candidate a draft has changed inputs; a stop keeps it from going on.
        if (variant.has(candidate) and (draft is None or stop)) or (publication and not candidate):
            # Changed inputs: the draft of a publication may still be there.
            is_drafted = publication and draft and draft.digest != publication.digest
            if (
                candidate
                and stop is not None
                and (stop[0], variant.state) == (VariantState.SUSPENDED, VariantState.READY)
                and (is_drafted or variant_facts.outdated)
            ):
                sentence = "its inputs have changed; the change is rolled out after the suspension"
                holds = (stop[1], replace(stop[1], message=sentence))
                return self._waiting_result(variant, stop[0], holds, variant.checks)
            return self._evaluate_published(variant, stop)
        # A publication is evaluated even while the variant is stopped, so its state stays visible.
        if stop is not None:
            return self._waiting_result(variant, stop[0], (stop[1],))
        skip = self._evaluation.active_decisions.skipped(
            self._stage_rule.name, variant_facts.name, candidate
        )
        if skip is not None:
            return self._waiting_result(variant, VariantState.SKIPPED, (_skip_hold(skip),))
        if variant_facts.offline and not variant.released(candidate):
            return self._waiting_result(variant, VariantState.HELD, (offline_hold(variant),))
        if draft is None:
            wait = self._undrafted_wait if not variant.leads else self._wait_for_draft(candidate)
            return self._build_result(variant, VariantState.DRAFTED, *wait)
        if variant.early_failure is not None:
            return self._waiting_result(
                variant, VariantState.FAILED, (variant.early_failure,), variant.required
            )
        if (common_wait := self._find_common_wait(variant, draft)) is not None:
            return self._build_result(variant, VariantState.DRAFTED, *common_wait)
        return self._evaluate_draft(variant, draft)

    def _evaluate_published(
        self, variant: TalliedVariant, stop: tuple[VariantState, Hold] | None
    ) -> VariantResult:
        """Evaluate a publication by the checks after it. `stop`: of `_find_stop`; only shown."""
        assert variant.state is not None
        state, holds = variant.state, (*variant.holds, *_unpassed_holds(variant.checks))
        if state is not VariantState.READY:
            skip = self._evaluation.active_decisions.skipped(
                self._stage_rule.name, variant.facts.name, self.candidate
            )
            # Nobody waits for the checks of a skipped variant, so they block nothing.
            if skip is not None:
                state, holds = VariantState.SKIPPED, (_skip_hold(skip),)
        if stop is not None:
            holds = (*holds, stop[1])
        if state is VariantState.SKIPPED:
            return self._waiting_result(variant, state, holds, variant.checks)
        next_change: datetime | None = None
        if state is not VariantState.READY or holds:
            # The end of a passed check's freshness is no timer: what has passed stays passed.
            pending_times = (it.until for it in variant.checks if it.verdict is not Verdict.PASSED)
            timers = [variant.next_change_at, *pending_times, *(it.until for it in holds)]
            next_change = find_next(timers, self._evaluation.now)
        return self._build_result(variant, state, holds, variant.checks, next_change)

    def _find_common_wait(self, variant: TalliedVariant, draft: DraftFacts) -> _Wait | None:
        """Return what a draft waits for that has nothing of its own to wait for, else None.

        It is what `_evaluate_draft` returns. Most drafts of a large stage are such, and wait for
        the stage's gate, the window or automation.
        """
        variant_facts = variant.facts
        if (
            self._is_decided
            or variant.required
            or variant_facts.grant is not None
            or variant_facts.dependency_holds
            or draft.conflict_count
        ):
            return None
        automation_hold = self._automation.blocked(variant, draft, None)
        if id(automation_hold) not in self._common_waits:
            holds = (*self._find_stage_holds(_NO_OVERRIDES, self.candidate), *self._window_holds)
            holds += (automation_hold,) if automation_hold is not None else ()
            gate = self._evaluate_gate(_NO_OVERRIDES, self.candidate)
            next_change = next_change_of_waiting(holds, (), gate, self._evaluation.now)
            # Without a hold the draft may be released, which is counted draft by draft.
            self._common_waits[id(automation_hold)] = (holds, (), next_change) if holds else None
        shared_objects = self._evaluation.shared_objects
        if shared_objects.find_hold(self._stage_rule.name, variant_facts, draft) is not None:
            return None
        return self._common_waits[id(automation_hold)]

    @cached_property
    def _is_decided(self) -> bool:
        """Return whether a decision or the spec promotes or rolls back any variant."""
        decisions = self._evaluation.active_decisions
        has_steps = bool(decisions.publishes) or decisions.rollbacks.has_any
        return has_steps or bool(self._stage_rule.pin)

    @cached_property
    def _window_holds(self) -> tuple[Hold, ...]:
        """Return the hold of a closed window, for what no decision lets through it.

        It is asked for by drafts, and only for them the stage is evaluated again when it opens.
        """
        windows = self._evaluation.windows
        closed = windows.closed_for_begun if self._is_under_way else windows.closed
        if closed is None:
            return ()
        self.check_times.update([closed.until] if closed.until is not None else [])
        return (closed,)

    def _evaluate_draft(self, variant: TalliedVariant, draft: DraftFacts) -> VariantResult:
        """Evaluate whether a draft is released, is proposed and may be published in this pass.

        Released, it keeps the slot of the budget that it takes; proposed, its required checks have
        passed as well.
        """
        variant_facts = variant.facts
        # Those about other drafts too, to name them in a hold.
        active_decisions, ages = self._evaluation.active_decisions, self._evaluation.ages
        pending_publishes = active_decisions.pending_publishes(variant_facts, draft.revision)
        decisions = [it for it in pending_publishes if covers(it, variant_facts, draft)]
        overrides = combine_overrides(decisions) if decisions else _NO_OVERRIDES
        pin = self._evaluation.pin(self._stage_rule, variant_facts.name)
        rollback = pin.decision if pin is not None else None
        grant = variant_facts.find_grant(draft)
        checks = variant.required
        if pin is not None:
            waived = "is not required again for a rollback to"
            checks = tuple(
                CheckResult(it.name, Verdict.PASSED, f"check {it.name} {waived} {pin.revision}")
                for it in checks
            )
        requirements_pass = all(it.verdict is Verdict.PASSED for it in checks)
        # A rollback publishes what the stage had before: nothing is merged, so nobody is asked.
        conflict = conflict_hold(draft, decisions) if pin is None else None
        blockers: tuple[Hold, ...] = (conflict,) if conflict is not None else ()
        blockers += self._closed_gates(variant, draft, overrides, pin)
        is_gate_open = not blockers
        # Neither automation nor a decision may take the step.
        automation_hold: Hold | None = None
        if rollback is None and decisions:
            automation_hold = unreviewed_hold(variant, draft, decisions)
        elif rollback is None:
            blocked = self._automation.blocked(variant, draft, pin)
            automation_hold = not_covered_hold(blocked, pending_publishes)
        blockers += (automation_hold,) if automation_hold is not None else ()
        release = False
        if not blockers and grant is not None:
            # Approvals mostly come after the release. Those that count are recorded with it before
            # anything is published: later nothing tells who was entitled then.
            release = requirements_pass and _is_outdated_grant(
                grant, decisions, checks, self._evaluation.now
            )
        elif not blockers:
            blockers = self._release_refusals(variant, draft, overrides, pin)
            release = not blockers
        # Counted at once: the next variant in the order sees the budget without this slot.
        if release and grant is None:
            self.budget.take(variant)
            self.released.append(variant.facts.name)
            self._started.add(variant.facts.name)
        self._note_check_times(checks)
        is_released = grant is not None or release
        state = VariantState.DRAFTED if conflict is None else VariantState.HELD
        # A conflict that appears after the release does not take the release back.
        if is_released:
            is_proposed = is_gate_open and requirements_pass
            state = VariantState.PROPOSED if is_proposed else VariantState.RELEASED
        holds = blockers if requirements_pass else (*blockers, *_unpassed_holds(checks))
        if is_released and draft.publish_hold is not None:
            # A person has declined the draft: what else it waits for is nobody's task.
            is_first = draft.publish_hold.reason == Reason.REQUEST_CLOSED
            holds = (draft.publish_hold, *holds) if is_first else (*holds, draft.publish_hold)
        gate = self._evaluate_gate(overrides, variant.candidate) if pin is None else None
        next_change = next_change_of_waiting(holds, checks, gate, self._evaluation.now)
        let_through = state is VariantState.PROPOSED and not blockers
        return VariantResult(
            name=variant.facts.name,
            stage=self._stage_rule.name,
            candidate=variant.candidate,
            state=state,
            release=release,
            released_by=self._find_releasers(decisions, pin, checks) if release else (),
            # Active decisions about newer revisions, which the step leaves active.
            waiting=tuple(
                sorted(
                    {
                        it.name
                        for revision in {it.revision for it in active_decisions.publishes}
                        if ages.is_older(variant.candidate, revision)
                        for it in active_decisions.pending_publishes(variant_facts, revision)
                    }
                )
            )
            if let_through
            else (),
            publish=let_through and draft.publish_hold is None,
            let_through=let_through,
            checks=checks,
            holds=holds,
            answers=variant.answers,
            next=next_change,
        )

    def _find_releasers(
        self, decisions: Sequence[DecisionFacts], pin: Pin | None, checks: Iterable[CheckResult]
    ) -> tuple[str, ...]:
        """Return `Kind/name` of the objects that let the variant be released.

        These are decisions of people, else a pin of the spec, else the PromotionPolicies; and the
        approvals by which required checks have passed.
        """
        if pin is not None and pin.decision is not None:
            decisions = [pin.decision]
        if decisions:
            promoters = [f"Decision/{it.name}" for it in decisions]
        elif pin is not None:
            promoters = [f"UpstreamPolicy/{self._evaluation.policy_facts.name}"]
        else:
            promoters = [f"PromotionPolicy/{it}" for it in self._stage_rule.automating_policies]
        return (*promoters, *_list_approvals(checks))

    def _closed_gates(
        self,
        variant: TalliedVariant,
        draft: DraftFacts,
        overrides: frozenset[OverridableGate],
        pin: Pin | None,
    ) -> tuple[Hold, ...]:
        holds: list[Hold] = []
        # A rollback waits for the window alone: its revision passed the other gates before.
        if pin is None:
            holds += self._find_stage_holds(overrides, variant.candidate)
            holds += variant.facts.dependency_holds
            self.check_times.update(it.until for it in variant.facts.dependency_holds if it.until)
            shared_hold = self._evaluation.shared_objects.find_hold(
                self._stage_rule.name, variant.facts, draft
            )
            if shared_hold is not None:
                holds.append(shared_hold)
        pin_overrides = pin.decision.spec.overrides if pin and pin.decision else ()
        if OverridableGate.WINDOW not in overrides and OverridableGate.WINDOW not in pin_overrides:
            holds += self._window_holds
        return tuple(holds)

    def _release_refusals(
        self,
        variant: TalliedVariant,
        draft: DraftFacts,
        overrides: frozenset[OverridableGate],
        pin: Pin | None,
    ) -> tuple[Hold, ...]:
        """List what keeps a variant without other holds from being released.

        That is a draft that it cannot join, the budget, the order of revisions, or `propagateWhen`.
        """
        if draft.release_hold is not None:
            return (draft.release_hold,)
        # A rollback goes at once: a budget would leave the bad revision in place.
        if pin is not None:
            return ()
        if self._evaluation.policy_facts.serialize:
            # A decision may take it past what is in flight: a fix must not wait behind what it
            # fixes (decision 0101).
            needed_overrides = list_needed_overrides(self._stage_rule)
            is_chosen = bool(needed_overrides) and needed_overrides <= overrides
            overtakes = is_chosen or OverridableGate.BUDGET in overrides
            serialize_hold = self._older_in_flight_hold
            if variant.state is VariantState.VERIFYING:
                sentence = "changed inputs wait until the published ones are ready or failed"
                publication = variant.facts.published
                if publication is not None and publication.revision != variant.candidate:
                    sentence = (
                        f"{variant.candidate} waits until the variant is ready or has failed at"
                        f" {publication.revision} (inFlight: Serialize)"
                    )
                actor, until = expected_completion([variant], gate_wording.REPORTER)
                serialize_hold = Hold(Reason.SERIALIZED, sentence, actor, until=until)
            if serialize_hold is not None and not overtakes:
                return (serialize_hold,)
        # Those that exchange places go in one step, or each would wait for the other for ever.
        set_facts = self._evaluation.policy_facts.sets.get(variant.facts.name, SetFacts())
        goes_along = not self._started.isdisjoint(set_facts.partners)
        refusal = None if goes_along else self.budget.find_refusal(variant)
        if variant.leads and refusal is not None and refusal.reason == Reason.GROUP_AWAITS:
            refusal = None  # it goes first
        if refusal is not None and (
            OverridableGate.BUDGET not in overrides or refusal.reason != Reason.BUDGET_EXHAUSTED
        ):
            return (refusal,)
        # Expressions last: they are the only step that may leave the process, and only variants for
        # which a slot is free need the answer.
        holds = self.propagation.evaluate(variant.facts, self.budget.variables_for(variant))
        if self.propagation.is_provisional:
            # Nothing is carried out while questions are open. Counting on as if the answer were
            # yes asks what comes next as well: in a few rounds, and not in one for each variant.
            self.budget.take(variant)
        return holds

    @cached_property
    def _started(self) -> set[str]:
        """Return the variants that are released and not published yet, as the pass begins."""
        return {it.facts.name for it in self._tally.variants if it.has_pending_grant}

    def _find_stage_holds(
        self, overrides: frozenset[OverridableGate], revision: str
    ) -> tuple[Hold, ...]:
        """Return the holds that are the same for all variants with these overrides."""
        key = (overrides, revision)
        if key not in self._stage_holds:
            # A stage halts for its candidate alone: another revision may be the one that mends it.
            is_halted = self.halted is not None and revision == self.candidate
            halted = (self.halted,) if is_halted else ()
            self._stage_holds[key] = (*self._evaluate_gate(overrides, revision).holds, *halted)
        return self._stage_holds[key]

    def _evaluate_gate(self, overrides: frozenset[OverridableGate], revision: str) -> AfterGate:
        key = (overrides, revision)
        if key not in self._gates:
            self._gates[key] = self._evaluation.evaluate_gate(self._stage_rule, revision, overrides)
        return self._gates[key]

    def _note_check_times(self, checks: Iterable[CheckResult]) -> None:
        for check in checks:
            if check.until is None:
                continue
            if check.verdict is Verdict.PASSED or check.reason in AWAITS_APPROVERS:
                self.expiry_times.add(check.until)
            else:
                self.check_times.add(check.until)

    def next_change(self) -> datetime | None:
        """Return the next instant at which time alone changes a gate or a variant, or None."""
        gates = (gate.next for gate in self._gates.values())
        return find_next([*self.change_times, *gates], self._evaluation.now)

    def _waiting_result(
        self,
        variant: TalliedVariant,
        state: VariantState,
        holds: tuple[Hold, ...],
        checks: tuple[CheckResult, ...] = (),
    ) -> VariantResult:
        next_change = next_change_of_waiting(holds, checks, None, self._evaluation.now)
        return self._build_result(variant, state, holds, checks, next_change)

    def _build_result(
        self,
        variant: TalliedVariant,
        state: VariantState,
        holds: tuple[Hold, ...],
        checks: tuple[CheckResult, ...],
        next_change: datetime | None,
    ) -> VariantResult:
        return VariantResult(
            name=variant.facts.name,
            stage=self._stage_rule.name,
            candidate=variant.candidate,
            state=state,
            checks=checks,
            holds=holds,
            answers=variant.answers,
            next=next_change,
        )

    @cached_property
    def _undrafted_wait(self) -> _Wait:
        """Return the holds, checks and next change common to all variants without a draft."""
        return self._wait_for_draft(self.candidate, self.gate)

    def _wait_for_draft(self, revision: str, gate: AfterGate | None = None) -> _Wait:
        no_draft_hold = Hold(
            Reason.NO_DRAFT,
            f"its draft for {revision} is missing or out of date",
            gate_wording.DRAFTS_AWAITED,
        )
        holds = (no_draft_hold, *(gate.holds if gate is not None else ()))
        return holds, (), next_change_of_waiting(holds, (), gate, self._evaluation.now)

    @cached_property
    def _older_in_flight_hold(self) -> Hold | None:
        """Return the hold for variants in flight at a revision older than the candidate.

        An older candidate would replace drafts that people may have approved, so that the stage
        keeps its own and waits.
        """
        ages, candidate = self._evaluation.ages, self.candidate
        in_flight = [
            (variant, publication.revision)
            for variant in self._tally.variants
            if variant.state is VariantState.VERIFYING
            and (publication := variant.facts.published)
            and ages.is_older(publication.revision, candidate)
        ]
        if not in_flight:
            return None
        first, revision = in_flight[0]
        sentence = (
            f"{first.facts.name} goes first (inFlight: Serialize): it is not ready at {revision}"
            " yet"
        )
        actor, until = expected_completion([it for it, _ in in_flight], gate_wording.REPORTER)
        return Hold(Reason.SERIALIZED, sentence, actor, until=until)


def _is_outdated_grant(
    grant: Grant, decisions: Iterable[DecisionFacts], checks: Iterable[CheckResult], now: datetime
) -> bool:
    """Return whether the grant is older than the statements that the publication rests on.

    It may come from a decision that was withdrawn since. Publications are dated by their
    grants, so a new grant is given with the publication: it is dated by what people stated,
    not before it. A grant that names other approvals than those that count now is outdated too.
    """
    if grant.by is not None:
        approvals = {it for it in grant.by if it.startswith("Approval/")}
        if approvals != {*_list_approvals(checks)}:
            return True
    statement_times = [
        *(decision.at for decision in decisions),
        *(check.at for check in checks if check.at is not None),
    ]
    # By a clock that runs ahead, a statement may be later than any grant of this pass.
    return grant.at < min(max(statement_times, default=grant.at), now)


def _list_approvals(checks: Iterable[CheckResult]) -> tuple[str, ...]:
    """Return `Approval/name` of the approvals by which the required checks have passed."""
    return tuple(dict.fromkeys(f"Approval/{name}" for it in checks for name in it.approvals))


def _find_stop(variant: TalliedVariant, candidate: str) -> tuple[VariantState, Hold] | None:
    """Return the state and hold that stop the variant whatever its gates are, or None."""
    variant_facts = variant.facts
    # Suspension first: a person decided it, and it explains why nothing else is tried.
    if variant.suspended is not None:
        return VariantState.SUSPENDED, variant.suspended
    if variant_facts.failed is not None:
        return VariantState.FAILED, variant_facts.failed
    if variant_facts.held is not None:
        return VariantState.HELD, variant_facts.held
    if not candidate:
        return VariantState.HELD, Hold(
            Reason.NO_REVISION, gate_wording.NO_REVISION, gate_wording.AUTHOR_OF_REVISION
        )
    return None


def _skip_hold(decision: DecisionFacts) -> Hold:
    return Hold(
        Reason.SKIPPED,
        append_reason(f"skipped for {decision.revision} by {decision.by}", decision.spec.reason),
        gate_wording.ANY_PROMOTER_RETRY,
        decision.at,
    )


def _unpassed_holds(checks: Iterable[CheckResult]) -> tuple[Hold, ...]:
    return tuple(
        [
            Hold(check.reason, check.message, check.who, check.at, check.until)
            for check in checks
            if check.verdict is not Verdict.PASSED
        ]
    )
