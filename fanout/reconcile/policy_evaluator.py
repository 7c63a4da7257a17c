"""Evaluation of one policy: revisions, cases, renderings, gate decisions, plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.api.upstream_policy import InFlight
from fanout.errors import FanoutError, InvalidInput
from fanout.gates.evaluation_results import PolicyEvaluation, VariantState
from fanout.gates.gate_evaluation import find_rollbacks
from fanout.gates.gate_evaluator import choose_candidates, find_ready, find_suspended
from fanout.gates.gate_facts import PolicyFacts, RevisionHistory
from fanout.gates.gate_rules import HAND_WRITTEN, StageRule
from fanout.gates.record_facts import RecordFacts
from fanout.gates.removal_gate import closed_window_hold
from fanout.gates.rollback_pins import Pin
from fanout.gates.timestamps import is_from_the_future
from fanout.plan.decided_variant import DecidedVariant, VariantStep, plan_step
from fanout.plan.draft_trailers import NO_VALUE
from fanout.plan.edits.merge_disputes import read_resolutions
from fanout.plan.evidence.record_times import (
    correct_status,
    effective_records,
    records_ahead,
    restore_recorded_times,
    stages_with_reports,
    with_draft_times,
)
from fanout.plan.gate_inputs.policy_facts import (
    GateInputs,
    build_gate_records,
    build_policy_facts,
    build_preliminary_facts,
    facts_after_pass,
    with_removals,
)
from fanout.plan.gate_inputs.stage_rule_builder import (
    build_calendars,
    build_hand_written_rule,
    build_stage_rules,
    finishing_calendars,
)
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.policy_plan import PolicyPlan, plan_policy
from fanout.plan.records.policy_records import (
    PolicyRecords,
    RecordEntry,
    active_records,
    last_acceptance,
)
from fanout.plan.records.policy_status import RecordedStatus
from fanout.plan.removal.move_cleanup import (
    CleanupPermission,
    PolicyCleanup,
    cleanup_items,
    hold_back_moves,
    remaining_holds,
)
from fanout.plan.rendered_variant import RenderedVariant, without_candidate
from fanout.ports import GitStore
from fanout.reconcile.case_builder import CaseBuilder
from fanout.reconcile.edits.edit_detection import DownstreamEditDetector
from fanout.reconcile.evidence.check_probes import CheckProber
from fanout.reconcile.evidence.evidence_matching import match_evidence
from fanout.reconcile.memo.case_memo import CaseMemo, CaseMemos
from fanout.reconcile.observation.repository_listing import orphans_packages
from fanout.reconcile.observation.upstream_packages import find_revisions, mark_lost_tags
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.policy_inputs import PolicyInputs
from fanout.reconcile.policy_isolation import stop_policy
from fanout.reconcile.records.record_integrity import (
    RecordBaseline,
    find_bootstrap_repositories,
    refuse_lost_policy_state,
    refuse_missing_records,
    refuse_rewound_branch,
)
from fanout.reconcile.removal.orphaned_variants import (
    RemovalInputs,
    add_removal_hold,
    find_orphans,
    plan_removals,
)
from fanout.reconcile.rendering.draft_rendering import DraftRenderer
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.reconcile.selection.propagation_conditions import PropagationConditions
from fanout.reconcile.variant_dependencies import build_variant_details, policy_key
from fanout.reconcile.world import Setup
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import frozen, replace

StageHistories = Mapping[tuple[str, str], RevisionHistory]


@frozen
class PolicyEvaluator:
    """Evaluates policies one after the other at one moment."""

    git: GitStore
    renderer: DraftRenderer
    prober: CheckProber
    setup: Setup
    now: datetime
    publish: bool
    edit_detector: DownstreamEditDetector
    conditions: PropagationConditions
    case_memos: CaseMemos

    def evaluate(self, inputs: PolicyInputs) -> tuple[PolicyResult, PolicyPlan | None]:
        """Return the result of the policy in this pass, and its plan.

        The plan is None if an error stops the policy as a whole; the error is in the result.
        """
        status = RecordedStatus()
        try:
            with BARRIER:
                recorded_status = _read_recorded_status(inputs, self._case_memo(inputs))
                status = correct_status(recorded_status, self.now)
                # Clocks of machines differ. Corrected before anything is derived: a record counts
                # from no earlier than the record before it, and one dated ahead does not redate
                # those after it.
                inputs = replace(
                    inputs,
                    policy_state=_date_records(inputs.policy_state, self.now, recorded_status),
                )
                # Checked before any error of the policy is raised: decisions on restored, older
                # records must never be made, whatever else is wrong.
                if inputs.policy_state.head:
                    refuse_rewound_branch(
                        _format_title(inputs.resolved_policy), inputs.policy_state.rewound
                    )
                if inputs.resolved_policy.error is not None:
                    raise inputs.resolved_policy.error
                allowed_revisions = find_revisions(
                    inputs.resolved_policy, inputs.listings, status.revisions
                )
                result, plan = self._evaluate(inputs, status, allowed_revisions)
                return result, restore_recorded_times(
                    plan,
                    recorded_status,
                    status,
                    _find_records_ahead(inputs.policy_state, self.now, recorded_status),
                )
        except FanoutError as error:
            return self._stopped_result(inputs, status, error), None

    def _stopped_result(
        self, inputs: PolicyInputs, status: RecordedStatus, error: FanoutError
    ) -> PolicyResult:
        """Return the result of a stopped policy, with its recorded and observed state."""
        try:
            with BARRIER:
                cases = self._build_case_builder(inputs, status).build_cases()
                orphans = find_orphans(
                    inputs.resolved_policy, status, inputs.path_ownership.repository_states.values()
                )
        except FanoutError:  # the repositories cannot be read either
            cases, orphans = (), ()
        return PolicyResult(
            inputs.resolved_policy,
            inputs.policy_state,
            status=status,
            cases=tuple(without_candidate(case) for case in cases),
            rules=self._build_rules(inputs),
            decision=stop_policy(
                self._build_rules(inputs), (case.spec for case in cases), status, error
            ),
            repository_states=tuple(inputs.path_ownership.repository_states.values()),
            orphans=orphans,
            error=error,
        )

    def _evaluate(
        self, inputs: PolicyInputs, status: RecordedStatus, allowed_revisions: Mapping[str, str]
    ) -> tuple[PolicyResult, PolicyPlan]:
        resolved_policy = inputs.resolved_policy
        case_builder = self._build_case_builder(inputs, status)
        with self.renderer.counters.times.phase("opening"):
            cases = mark_lost_tags(resolved_policy, case_builder.build_cases(), inputs.listings)
        bootstrap_repositories = self._check_bootstrap(inputs, cases)
        refuse_missing_records(_format_title(resolved_policy), inputs.policy_state, cases)
        # By observed heads: repositories may show no trace of the lost records.
        refuse_rewound_branch(_format_title(resolved_policy), inputs.policy_state.rewound)
        gate_records = with_removals(
            build_gate_records(_find_own_records(inputs), self.now), status.removed
        )
        check_readings = self.prober.read_checks(resolved_policy, cases)
        evidence_by_variant = match_evidence(
            (it.commit for it in gate_records.evidence if it.commit),
            cases,
            self.git,
            check_readings,
        )
        pending_input = self._build_pending_input(inputs, status, allowed_revisions, gate_records)
        case_memo = self._case_memo(inputs)
        # Gate facts are built twice: candidates and pins follow from cases without a candidate, and
        # the decision needs the drafts of the chosen candidates.
        preliminary_facts = build_preliminary_facts(
            pending_input, cases, evidence_by_variant, case_memo.preliminary_facts
        )
        pins = find_rollbacks(preliminary_facts)
        selected = self.renderer.choose_candidates(
            resolved_policy,
            cases,
            choose_candidates(preliminary_facts),
            allowed_revisions,
            pins,
            case_memo,
        )
        rendered = self.renderer.render_due(selected, find_suspended(preliminary_facts))
        gate_facts = build_policy_facts(
            pending_input, rendered, evidence_by_variant, case_memo.gate_facts
        )
        decision = self.conditions.decide(gate_facts)
        held_variants = hold_back_moves(rendered, decision)
        # Variants that exchange paths publish together or not at all, which only the first decision
        # reveals. If one has to wait, the gates decide again with that hold among the facts.
        if held_variants:
            gate_facts = build_policy_facts(pending_input, held_variants, evidence_by_variant)
            decision, rendered = self.conditions.decide(gate_facts), held_variants
        drafted_cases = self._draft_next_candidates(
            inputs, rendered, gate_facts, decision, allowed_revisions, pins
        )
        steps = [
            plan_step(case, decision.variants[case.spec.name], publish=self.publish)
            for case in drafted_cases
        ]
        stage_history = _merge_history(resolved_policy, status, decision)
        repository_states = tuple(inputs.path_ownership.repository_states.values())
        departing_steps = self._find_departing_steps(inputs, steps, gate_facts)
        cleanup_steps = tuple(
            it for step, leave in departing_steps for it in cleanup_items(step, leave)
        )
        orphans = find_orphans(resolved_policy, status, repository_states)
        removal_inputs = RemovalInputs(
            gate_facts,
            active_records(inputs.policy_state.records),
            inputs.removal_doubt,
            is_publishing=self.publish,
        )
        removals, removal_plans = plan_removals(
            resolved_policy, status, inputs.path_ownership, orphans, removal_inputs
        )
        leftovers = PolicyCleanup(
            cleanup_steps,
            removal_plans,
            case_builder.find_emptied_repositories(),
            bootstrap_repositories,
        )
        # Publications name the newest record in a trailer, by which later passes detect records
        # that were restored from an older copy.
        newest_record = (
            inputs.policy_state.records[-1].name if inputs.policy_state.records else NO_VALUE
        )
        moment = replace(gate_records.position(self.now), last_record=newest_record)
        plan = plan_policy(
            resolved_policy.namespace,
            resolved_policy.name,
            steps,
            status,
            stage_history,
            moment,
            leftovers,
        )
        plan = with_draft_times(plan, stages_with_reports(pending_input.rules), self.now)
        result = PolicyResult(
            resolved_policy=resolved_policy,
            policy_state=inputs.policy_state,
            status=status,
            revisions=allowed_revisions,
            cases=rendered,
            rules=pending_input.rules,
            facts=gate_facts,
            decision=add_removal_hold(decision, removals),
            repository_states=repository_states,
            publishing=frozenset(
                it.rendered.spec.name for it in steps if it.step is VariantStep.PUBLISH
            ),
            remaining_leftovers={
                step.rendered.spec.name: tuple(remaining_holds(step.rendered, leave))
                for step, leave in departing_steps
            },
            orphans=orphans,
            removals=removals,
        )
        return result, plan

    def _build_pending_input(
        self,
        inputs: PolicyInputs,
        status: RecordedStatus,
        allowed_revisions: Mapping[str, str],
        gate_records: RecordFacts,
    ) -> GateInputs:
        """Build the inputs of the gates that no repository state contributes to."""
        resolved_policy = inputs.resolved_policy
        return GateInputs(
            name=resolved_policy.name,
            rules=self._build_rules(inputs),
            revisions=tuple(allowed_revisions),
            records=gate_records,
            history=_read_history(resolved_policy, status),
            now=self.now,
            suspended=resolved_policy.upstream_policy.spec.suspend
            if resolved_policy.upstream_policy
            else False,
            automation_acts=inputs.is_sweep,
            resolutions=read_resolutions(_find_applicable_records(inputs, self.now)),
            serialize=_is_serialized(resolved_policy),
            calendars=build_calendars(inputs.promotions),
            finishing_calendars=finishing_calendars(inputs.promotions),
            calendars_incomplete=not inputs.all_promotions_read,
            last_evidence=gate_records.position(self.now).last_evidence,
            draft_lines=status.drafts,
            attributes=build_variant_details(resolved_policy, inputs.depends_on),
        )

    def _build_rules(self, inputs: PolicyInputs) -> tuple[StageRule, ...]:
        resolved_policy = inputs.resolved_policy
        if resolved_policy.upstream_policy is not None:
            rules = build_stage_rules(
                resolved_policy.upstream_policy, inputs.promotions, self.conditions.get_condition
            )
        else:
            rules = (build_hand_written_rule(resolved_policy.name, inputs.promotions),)
        # Fail closed: an unreadable object may restrict this policy.
        return tuple(
            replace(rule, automatic=rule.automatic and inputs.all_promotions_read) for rule in rules
        )

    def _check_bootstrap(
        self, inputs: PolicyInputs, cases: Sequence[ObservedVariant]
    ) -> frozenset[str]:
        """Return repositories with earlier activity that a bootstrap must record.

        Raises InvalidInput if the policy has no records, shows activity, and no bootstrap is
        allowed.
        """
        if inputs.policy_state.head:
            return frozenset()
        activity_inputs = (
            inputs.resolved_policy,
            inputs.path_ownership.repository_states,
            cases,
            self.git,
        )
        if self.setup.new_records:
            return find_bootstrap_repositories(*activity_inputs, self.setup.install)
        refuse_lost_policy_state(*activity_inputs)
        return frozenset()

    def _build_case_builder(self, inputs: PolicyInputs, status: RecordedStatus) -> CaseBuilder:
        return CaseBuilder(
            git=self.git,
            install=self.setup.install,
            now=self.now,
            resolved_policy=inputs.resolved_policy,
            status=status,
            path_ownership=inputs.path_ownership,
            resolutions=read_resolutions(_find_applicable_records(inputs, self.now)),
            edit_detector=self.edit_detector,
            case_memo=self._case_memo(inputs),
            record_baseline=self._build_record_baseline(inputs),
        )

    def _build_record_baseline(self, inputs: PolicyInputs) -> RecordBaseline:
        decision = last_acceptance(_find_own_records(inputs))
        record_names = {record.name for record in inputs.policy_state.records}
        if self.setup.new_records:
            return RecordBaseline(record_names, self.now, self.now)
        return RecordBaseline(record_names, decision.at if decision is not None else None, self.now)

    def _case_memo(self, inputs: PolicyInputs) -> CaseMemo:
        return self.case_memos.for_policy(policy_key(inputs.resolved_policy))

    def _find_departing_steps(
        self, inputs: PolicyInputs, steps: Sequence[DecidedVariant], gate_facts: PolicyFacts
    ) -> list[tuple[DecidedVariant, CleanupPermission]]:
        """Return the steps of variants with leftovers, each with its cleanup conditions."""
        moved_steps = [
            step
            for step in steps
            if step.rendered.observed.misplaced_drafts or step.rendered.observed.abandoned
        ]
        if not moved_steps:
            return []
        automatic_stages = {rule.name for rule in gate_facts.stages if rule.automatic}
        ready_variants, suspended_variants = find_ready(gate_facts), find_suspended(gate_facts)
        closed_hold = closed_window_hold(
            gate_facts.calendars,
            gate_facts.now,
            has_unreadable_calendar=gate_facts.has_unreadable_calendar,
        )
        return [
            (
                step,
                CleanupPermission(
                    is_publishing=self.publish,
                    is_ready=step.rendered.spec.name in ready_variants,
                    is_automatic=step.rendered.spec.stage in automatic_stages,
                    automation_acts=inputs.is_sweep,
                    window_hold=closed_hold,
                    keeps_package=orphans_packages(inputs.resolved_policy),
                ),
            )
            for step in moved_steps
            if step.rendered.spec.name not in suspended_variants
        ]

    def _draft_next_candidates(
        self,
        inputs: PolicyInputs,
        cases: tuple[RenderedVariant, ...],
        gate_facts: PolicyFacts,
        decision: PolicyEvaluation,
        allowed_revisions: Mapping[str, str],
        pins: Mapping[str, Pin],
    ) -> tuple[RenderedVariant, ...]:
        """Return the cases with the drafts that become due once this pass has published.

        A stage without verification passes when it is published; the drafts of the next stage
        follow in the same pass (design §3: drafts are up to date after one pass).
        """
        # Most passes end here, so the facts after publication are computed only when needed.
        if not self.publish or not any(
            variant_decision.publish for variant_decision in decision.variants.values()
        ):
            return cases
        next_candidates = choose_candidates(facts_after_pass(gate_facts, decision))
        present_candidates = {name: stage.candidate for name, stage in decision.stages.items()}
        advanced_stages = {
            name
            for name, revision in next_candidates.items()
            if present_candidates.get(name) != revision
        }
        busy_variants = {
            name
            for name, variant_decision in decision.variants.items()
            if variant_decision.publish or variant_decision.state is VariantState.SUSPENDED
        }
        variants_to_draft = {
            case.spec.name
            for case in cases
            if case.spec.stage in advanced_stages and case.spec.name not in busy_variants
        }
        if not variants_to_draft:
            return cases
        return tuple(
            self._draft_again(inputs, case, next_candidates, allowed_revisions, pins)
            if case.spec.name in variants_to_draft
            else case
            for case in cases
        )

    def _draft_again(
        self,
        inputs: PolicyInputs,
        case: RenderedVariant,
        next_candidates: Mapping[str, str],
        allowed_revisions: Mapping[str, str],
        pins: Mapping[str, Pin],
    ) -> RenderedVariant:
        [chosen_case] = self.renderer.choose_candidates(
            inputs.resolved_policy,
            [case.observed],
            next_candidates,
            allowed_revisions,
            pins,
            CaseMemo(),
        )
        [rendered_case] = self.renderer.render_due([chosen_case])
        return rendered_case


def _read_recorded_status(inputs: PolicyInputs, case_memo: CaseMemo) -> RecordedStatus:
    """Return the recorded status. Fails closed: unreadable records hold the policy.

    Raises InvalidInput for unreadable records or lines, and the failure of reading them.
    """
    if inputs.policy_state.failure is not None:
        raise inputs.policy_state.failure
    if inputs.policy_state.unreadable:
        raise InvalidInput(inputs.policy_state.unreadable[0], reason="RecordUnreadable")
    try:
        return case_memo.read_status(inputs.policy_state.status)
    except ValueError as error:
        raise InvalidInput(
            f"the status on record has a line that cannot be understood: {error}",
            reason="RecordUnreadable",
            remedy="use the newer fanout that wrote it, or restore the line from the commit before",
        ) from error


# Hand-written variants of a namespace share one records branch, each under its own name.


def _format_title(resolved_policy: ResolvedPolicy) -> str:
    return f"{resolved_policy.namespace}/{resolved_policy.name}"


def _date_records(
    policy_state: PolicyRecords, now: datetime, recorded_status: RecordedStatus
) -> PolicyRecords:
    return replace(
        policy_state,
        records=effective_records(policy_state.records, now, recorded_status.records_ahead),
    )


def _find_records_ahead(
    policy_state: PolicyRecords, now: datetime, recorded_status: RecordedStatus
) -> frozenset[str]:
    """Return names of the records that this or an earlier pass found dated in the future."""
    names = {record.name for record in records_ahead(policy_state.records, now)}
    if not recorded_status.records_ahead:
        return frozenset(names)
    return frozenset(
        names | (recorded_status.records_ahead & {record.name for record in policy_state.records})
    )


def _find_applicable_records(inputs: PolicyInputs, now: datetime) -> Sequence[RecordEntry]:
    """Return the records of the policy that are not dated in the future."""
    return [
        record for record in _find_own_records(inputs) if not is_from_the_future(record.at, now)
    ]


def _find_own_records(inputs: PolicyInputs) -> Sequence[RecordEntry]:
    own_records = active_records(inputs.policy_state.records)
    if inputs.resolved_policy.upstream_policy is not None:
        return own_records
    name = inputs.resolved_policy.name
    return [record for record in own_records if name in record.spec.get("variants", ())]


def _read_history(resolved_policy: ResolvedPolicy, status: RecordedStatus) -> StageHistories:
    if resolved_policy.upstream_policy is not None:
        return status.history
    histories = status.history.items()
    return {
        (HAND_WRITTEN, rev): stage_history
        for (name, rev), stage_history in histories
        if name == resolved_policy.name
    }


def _merge_history(
    resolved_policy: ResolvedPolicy, status: RecordedStatus, decision: PolicyEvaluation
) -> StageHistories:
    if resolved_policy.upstream_policy is not None:
        return decision.history
    other_histories = {
        key: stage_history
        for key, stage_history in status.history.items()
        if key[0] != resolved_policy.name
    }
    return other_histories | {
        (resolved_policy.name, rev): stage_history
        for (_, rev), stage_history in decision.history.items()
    }


def _is_serialized(resolved_policy: ResolvedPolicy) -> bool:
    return (
        resolved_policy.upstream_policy is not None
        and resolved_policy.upstream_policy.spec.in_flight is InFlight.SERIALIZE
    )
