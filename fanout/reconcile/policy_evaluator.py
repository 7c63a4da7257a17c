"""Evaluation of one policy: revisions, variants, renderings, gate decisions, plan."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain, starmap
from operator import attrgetter

from fanout.api.gate_vocabulary import VariantState
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError, RateLimited
from fanout.gates.gate_evaluation import find_leads, find_rollbacks
from fanout.gates.gate_evaluator import choose_candidates, find_ready, find_suspended
from fanout.gates.gate_facts import PolicyFacts
from fanout.gates.gate_rules import find_approvals
from fanout.gates.removal_gate import closed_window_hold
from fanout.plan.changes.move_cleanup import (
    CleanupPermission,
    list_drafted_leftovers,
    plan_move_cleanup,
    remaining_holds,
)
from fanout.plan.changes.next_drafts import find_due_drafts
from fanout.plan.changes.package_removal import DraftIndex
from fanout.plan.changes.planned_sets import PolicyCleanup, SetOwner, plan_removal_sets
from fanout.plan.changes.policy_plan import PolicyPlan, plan_policy, sort_actions
from fanout.plan.commit_statement import NO_VALUE
from fanout.plan.decided_variant import DecidedVariant, VariantStep, plan_step
from fanout.plan.evidence.record_times import (
    correct_status,
    effective_records,
    records_ahead,
    restore_recorded_times,
    with_draft_times,
)
from fanout.plan.evidence.review_approvals import (
    find_requested_changes,
    find_review_approvals,
    index_removal_approvals,
)
from fanout.plan.gates.gate_records import build_gate_records, with_removals, with_reviews
from fanout.plan.gates.variant_facts import build_policy_facts, build_set_facts, facts_after_pass
from fanout.plan.pull_requests.merge_holds import find_retry_time
from fanout.plan.pull_requests.merged_drafts import (
    facts_before_merges,
    find_person_merges,
    judge_merges,
)
from fanout.plan.pull_requests.removal_requests import RemovalReviews
from fanout.plan.pull_requests.request_holds import (
    RequestHoldInputs,
    mark_declined,
    read_request_settings,
)
from fanout.plan.push_refusals import find_standing, show_refusals, with_standing
from fanout.plan.records.policy_records import active_records
from fanout.plan.records.policy_status import RecordedStatus
from fanout.plan.records.trace_changes import build_trace_actions, find_due_traces, find_last_stop
from fanout.plan.rendered_variant import without_candidate
from fanout.plan.variant_observation import with_waiting_decisions
from fanout.reconcile.draft_rendering import DraftRenderer
from fanout.reconcile.edits.edit_detection import DownstreamEditDetector, mark_lost_tags
from fanout.reconcile.memo.policy_memo import PolicyMemo
from fanout.reconcile.observation.evidence_observer import ANSWER_PAUSE, CheckProber, match_evidence
from fanout.reconcile.observation.upstream_packages import (
    find_revisions,
    find_unusable,
    get_upstream_tag,
)
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.pass_scope import PassMode
from fanout.reconcile.policy_isolation import stop_policy
from fanout.reconcile.policy_phases import (
    DecidedPolicy,
    ObservedPolicy,
    PolicyInputs,
    RenderedPolicy,
    SelectedPolicy,
)
from fanout.reconcile.pull_requests.request_planner import RequestPlanner
from fanout.reconcile.records.lost_records import (
    RecordBaseline,
    count_other_branches,
    find_bootstrap_repositories,
    refuse_lost_policy_state,
    refuse_lost_traces,
    refuse_missing_records,
    refuse_rewound_branch,
)
from fanout.reconcile.removal.merged_removals import with_merged_removals
from fanout.reconcile.removal.orphaned_variants import (
    add_removal_hold,
    find_confirmed_trees,
    find_orphans,
    plan_removals,
    read_confirmations,
)
from fanout.reconcile.selection.propagation_conditions import PropagationConditions
from fanout.reconcile.variant_observer import VariantObserver
from fanout.reconcile.world import World
from fanout.telemetry.error_isolation import BARRIER
from fanout.values import Value, replace


class PolicyEvaluator(Value, kw_only=True):
    """Evaluates policies one after the other at one moment."""

    world: World
    declared: DeclaredObjects
    mode: PassMode
    now: datetime
    renderer: DraftRenderer
    prober: CheckProber
    edit_detector: DownstreamEditDetector
    conditions: PropagationConditions
    policy_memo: PolicyMemo
    request_planner: RequestPlanner

    def evaluate_changed(self, inputs: PolicyInputs) -> tuple[PolicyResult, PolicyPlan | None]:
        """Evaluate the policy, or return its memoized result if its inputs are unchanged."""
        publish = self.mode.publish
        memoized = self.policy_memo.find_result(inputs, self.now, publish=publish)
        if memoized is not None:
            return memoized, None
        with self.world.counters.times.phase("judging"):
            result, plan = self.evaluate(inputs)
        self.world.counters.add("judged")
        # When the policy is evaluated again, although nothing of it may have changed.
        states = inputs.path_ownership.own_states
        failures = (it.forge.failure for it in states if it.forge is not None)
        is_unanswered = inputs.resolved_policy.key in self.prober.unanswered
        instants = (
            *(it.until for it in failures if isinstance(it, RateLimited)),
            find_retry_time(result.status.requests.values(), self.now),
            inputs.budget.retry_at if inputs.budget is not None else None,
            self.now + ANSWER_PAUSE if is_unanswered else None,
        )
        listing = inputs.upstream_listing
        result = replace(
            result,
            retry_at=min(filter(None, instants), default=None),
            upstream_failure=listing if isinstance(listing, FanoutError) else None,
            template_warnings=plan.warnings if plan is not None else (),
        )
        self.policy_memo.store(inputs, result, plan, publish=publish)
        # Errors of the policy itself name its field; the file and line are known here.
        declaration, error = inputs.resolved_policy.declaration, result.error
        if declaration is not None and error is not None:
            where = error.where
            if not where.file and where.object == declaration.identity:
                error.where = self.declared.where(declaration, where.field)
        return result, plan

    def evaluate(self, inputs: PolicyInputs) -> tuple[PolicyResult, PolicyPlan | None]:
        """Return the result of the policy in this pass, and its plan.

        The plan is None if an error stops the policy as a whole; the error is in the result.
        """
        resolved_policy, policy_state = inputs.resolved_policy, inputs.policy_state
        status, corrected = RecordedStatus(), inputs
        plan: PolicyPlan | None = None
        try:
            with BARRIER:
                policy_state.check_readable()
                status = correct_status(policy_state.status, self.now)
                # Clocks of machines differ. Corrected before anything is derived: a record counts
                # from no earlier than the record before it, and one dated ahead does not redate
                # those after it.
                records_ahead_before = policy_state.status.records_ahead
                records = effective_records(policy_state.records, self.now, records_ahead_before)
                corrected = replace(inputs, policy_state=replace(policy_state, records=records))
                # Checked before any error of the policy is raised: decisions on restored, older
                # records must never be made, whatever else is wrong.
                if policy_state.head:
                    refuse_rewound_branch(corrected)
                if resolved_policy.error is not None:
                    raise resolved_policy.error
                revisions: Mapping[str, str] = {}
                if not resolved_policy.is_being_deleted:
                    revisions = find_revisions(resolved_policy, inputs.listings, status)
                status_after_merges = with_merged_removals(corrected, status, self.now)
                observed = self._observe_variants(corrected, status_after_merges, revisions)
                decided = self._decide_gates(
                    self.renderer.render_drafts(
                        self._select_candidates(observed), self.mode.draft_limit
                    )
                )
                # A stage without verification passes when this pass publishes it. The gates are
                # asked for candidates once more, because drafts of the next stage follow in the
                # same pass.
                result, plan = self._plan_actions(self._draft_next_candidates(decided))
                # A record that an earlier pass found ahead stays so for as long as it exists.
                ahead = {it.name for it in records_ahead(records, self.now)}
                ahead |= records_ahead_before & {it.name for it in records}
                # Recording the removals that requests have merged is part of the plan.
                plan = restore_recorded_times(
                    replace(plan, recorded=status), policy_state.status, status, frozenset(ahead)
                )
        except FanoutError as error:
            result, plan = self._stopped_result(corrected, status, error), None
        # No trace of records that are incomplete or were put back.
        is_incomplete = policy_state.failure or policy_state.unreadable or policy_state.outdated
        baseline = RecordBaseline.build(inputs, self.world.setup, self.now)
        if is_incomplete or policy_state.rewound or any(baseline.find_lost_traces(inputs)):
            return result, plan
        records_key, ownership = resolved_policy.records_key, inputs.path_ownership
        last_stop = find_last_stop(policy_state.records)
        if traces := find_due_traces(ownership.own_states, records_key, last_stop):
            names = {it.key: name for name, it in ownership.states_by_repository.items()}
            actions = build_trace_actions(traces, records_key, names, self.world.setup.install)
            result = replace(result, traces=traces, trace_actions=actions)
        return result, plan

    def _stopped_result(
        self, inputs: PolicyInputs, status: RecordedStatus, error: FanoutError
    ) -> PolicyResult:
        """Return the result of a stopped policy, with its recorded and observed state."""
        try:
            with BARRIER:
                variants = self._build_variant_observer(inputs, status).observe_variants()
                orphans = find_orphans(
                    inputs.resolved_policy, status, inputs.path_ownership.own_states
                )
        except FanoutError:  # the repositories cannot be read either
            variants, orphans = (), ()
        result = PolicyResult(
            resolved_policy=inputs.resolved_policy,
            policy_state=inputs.policy_state,
            status=status,
            variants=tuple(map(without_candidate, variants)),
            rules=inputs.build_rules(self.conditions.get_condition),
            repository_states=inputs.path_ownership.own_states,
            orphans=orphans,
        )
        return stop_policy(result, error)

    def _observe_variants(
        self, inputs: PolicyInputs, status: RecordedStatus, revisions: Mapping[str, str]
    ) -> ObservedPolicy:
        """Observe all variants and the evidence about them, and check the records.

        Raises what stops the policy: records that are missing or older than a repository shows.
        """
        resolved_policy = inputs.resolved_policy
        variant_observer = self._build_variant_observer(inputs, status)
        with self.world.counters.times.phase("opening"):
            variants = mark_lost_tags(
                resolved_policy, variant_observer.observe_variants(), inputs.upstream_listing
            )
        with count_other_branches(inputs.policy_state):
            bootstrap_repositories = frozenset[str]()
            if not inputs.policy_state.head:
                if self.world.setup.new_records:
                    bootstrap_repositories = find_bootstrap_repositories(
                        inputs, variants, self.world.git, self.world.setup.install
                    )
                else:
                    refuse_lost_policy_state(inputs, variants, self.world.git)
            refuse_missing_records(inputs, variants)
            # By observed heads: repositories may show no trace of the lost records.
            refuse_rewound_branch(inputs)
            refuse_lost_traces(inputs, variant_observer.record_baseline)
        gate_records = with_removals(
            build_gate_records(inputs.own_records, self.now), status.removed
        )
        variants = mark_declined(variants, status, gate_records.decisions)
        variants = with_waiting_decisions(variants, gate_records.decisions, tuple(revisions))
        rules = inputs.build_rules(self.conditions.get_condition)
        gate_records = with_reviews(
            gate_records,
            find_review_approvals(variants, rules),
            find_requested_changes(variants, rules),
        )
        evidence = match_evidence(
            frozenset(filter(None, (it.spec.commit for it in gate_records.evidence))),
            variants,
            self.world.git,
            self.prober.read_checks(resolved_policy, variants, inputs.budget),
        )
        return ObservedPolicy(
            inputs=inputs,
            status=status,
            revisions=revisions,
            variants=variants,
            evidence=evidence,
            gate_inputs=inputs.build_gate_inputs(status, revisions, gate_records, rules, self.now),
            bootstrap_repositories=bootstrap_repositories,
            emptied_repositories=variant_observer.find_emptied_repositories(),
        )

    def _select_candidates(self, observed: ObservedPolicy) -> SelectedPolicy:
        """Select the candidate of each variant, or the revision to which it is pinned."""
        find_problem = partial(self.renderer.find_problem, observed)
        variant_memo = self.policy_memo.variant_memo(observed.resolved_policy.key)
        # The gates are asked twice: candidates and pins follow from variants without a candidate,
        # and the decision needs the drafts of the selected candidates. Tags of candidates, and of
        # what would follow them, alone are checked, so leaving some out may reveal others.
        while True:
            facts = build_policy_facts(
                observed.gate_inputs,
                observed.variants,
                observed.evidence,
                variant_memo.preliminary_facts,
            )
            candidates = choose_candidates(facts)
            if not (unusable := find_unusable(facts, candidates.values(), find_problem)):
                break
            observed = observed.leave_out(unusable)
        pins = find_rollbacks(facts)
        variants = self.renderer.choose_candidates(
            observed, observed.variants, candidates, find_leads(facts), pins
        )
        variant_memo.store_selected(variants, self.declared.objects.stamp)
        return SelectedPolicy(observed, variants, pins, find_suspended(facts))

    def _decide_gates(self, rendered: RenderedPolicy) -> DecidedPolicy:
        """Decide for each variant whether it may be released and published."""
        observed = rendered.selected.observed
        facts = build_policy_facts(
            observed.gate_inputs,
            rendered.variants,
            observed.evidence,
            self.policy_memo.variant_memo(observed.resolved_policy.key).gate_facts,
        )
        # Not of the memo: they last for this pass only.
        sets = build_set_facts(
            rendered.variants,
            RequestHoldInputs(
                settings=read_request_settings(observed.inputs.promotions),
                lines=observed.status.requests,
                now=self.now,
            ),
        )
        facts = replace(facts, sets=sets)
        budget = observed.inputs.budget
        decision = self.conditions.decide(facts, budget)
        if merges := find_person_merges(rendered.variants, observed.status):
            # The merges by people are judged by the gates of this pass.
            before = self.conditions.decide(facts_before_merges(facts, merges), budget)
            variants = judge_merges(rendered.variants, merges, before)
            rendered = RenderedPolicy(rendered.selected, variants)
        return DecidedPolicy(rendered, facts, decision, rendered.variants)

    def _draft_next_candidates(self, decided: DecidedPolicy) -> DecidedPolicy:
        """Render drafts of candidates that become due once this pass has published.

        Drafts are up to date after one pass.
        """
        decision = decided.decision
        # Most passes end here, so the facts after publication are computed only when needed.
        if not self.mode.publish or not any(it.publish for it in decision.variants.values()):
            return decided
        # What a forge merges is published when the next pass finds it.
        if any(it.observed.repository_state.forge for it in decided.rendered.variants):
            return decided
        facts = facts_after_pass(decided.facts, decision)
        candidates = {
            stage: revision
            for stage, revision in choose_candidates(facts).items()
            if stage not in decision.stages or decision.stages[stage].candidate != revision
        }
        suspended, results = VariantState.SUSPENDED, decision.variants.values()
        busy = {it.name for it in results if it.publish or it.state is suspended}
        variants = [
            it.observed
            for it in decided.rendered.variants
            if it.spec.stage in candidates and it.spec.name not in busy
        ]
        if (limit := self.mode.draft_limit) is not None:
            number = sum(it.draft_content is not None for it in decided.rendered.variants)
            variants = limit.rank(variants)[: max(limit.number - number, 0)]
        if not variants:
            return decided
        pins = decided.rendered.selected.pins
        selected = self.renderer.choose_candidates(
            decided.observed, variants, candidates, find_leads(facts), pins
        )
        due, budget = find_due_drafts(selected), decided.observed.inputs.budget
        by_name = {it.spec.name: it for it in self.renderer.render_due(selected, due, budget)}
        drafted = tuple(by_name.get(it.spec.name, it) for it in decided.rendered.variants)
        return replace(decided, drafted=drafted)

    def _plan_actions(self, decided: DecidedPolicy) -> tuple[PolicyResult, PolicyPlan]:
        """Plan the step of each variant, what is cleaned up, and what is recorded."""
        observed, decision, facts = decided.observed, decided.decision, decided.facts
        inputs, status = observed.inputs, observed.status
        resolved_policy = inputs.resolved_policy
        steps = [
            plan_step(it, decision.variants[it.spec.name], facts, publish=self.mode.publish)
            for it in decided.drafted
        ]
        repository_states = inputs.path_ownership.own_states
        reviews = RemovalReviews(
            owner=SetOwner(
                self.world.setup.install, resolved_policy.namespace, resolved_policy.name
            ),
            lines=status.requests,
            decisions=facts.records.decisions,
            stage_rules=facts.stages,
            approvals=index_removal_approvals(
                facts.records, repository_states, facts.stages, self.now
            ),
        )
        departing_steps = self._find_departing_steps(inputs, steps, facts, reviews)
        orphans = find_orphans(resolved_policy, status, repository_states)
        removals = plan_removals(
            inputs, status, orphans, facts, reviews, self.world.git, publish=self.mode.publish
        )
        states_by_repository = inputs.path_ownership.states_by_repository
        leftovers = chain.from_iterable(starmap(list_drafted_leftovers, departing_steps))
        removal_sets = plan_removal_sets(
            reviews.owner, states_by_repository, [*removals.drafted, *leftovers]
        )
        cleanup = PolicyCleanup(
            removals=(
                *filter(attrgetter("packages"), starmap(plan_move_cleanup, departing_steps)),
                *removals.due,
            ),
            emptied=observed.emptied_repositories,
            rediscovered=observed.bootstrap_repositories,
            sets=tuple(reviews.complete_plans(removal_sets)),
        )
        refused_pushes = find_standing(status.refused_pushes, steps, {it.name for it in orphans})
        decision = show_refusals(decision, refused_pushes, steps)
        result = PolicyResult(
            resolved_policy=resolved_policy,
            policy_state=inputs.policy_state,
            status=status,
            revisions=observed.usable_revisions,
            unusable_tags={
                revision: f"tag {get_upstream_tag(resolved_policy, revision)} of"
                f" {resolved_policy.declared_upstream.metadata.name} cannot be used and is left"
                f" out: {problem}"
                for revision, problem in observed.unusable.items()
            },
            variants=decided.rendered.variants,
            rules=facts.stages,
            facts=facts,
            decision=add_removal_hold(decision, removals),
            repository_states=repository_states,
            publishing=frozenset(
                it.rendered.spec.name
                for it in steps
                if it.step in (VariantStep.PUBLISH, VariantStep.MERGE)
            ),
            remaining_leftovers={
                step.rendered.spec.name: tuple(remaining_holds(step.rendered, permission))
                for step, permission in departing_steps
            },
            orphans=orphans,
            removals=removals.evaluation,
            removal_sets=cleanup.sets,
            refused_pushes=refused_pushes,
        )
        return result, with_standing(self._plan_policy(decided, steps, cleanup), refused_pushes)

    def _plan_policy(
        self, decided: DecidedPolicy, steps: Sequence[DecidedVariant], cleanup: PolicyCleanup
    ) -> PolicyPlan:
        """Compute the actions of the policy and the status to record."""
        observed, facts, inputs = decided.observed, decided.facts, decided.observed.inputs
        resolved_policy, records = inputs.resolved_policy, inputs.policy_state.records
        plan = plan_policy(
            resolved_policy.namespace,
            resolved_policy.name,
            steps,
            observed.status,
            inputs.merge_history(observed.status, decided.decision),
            # Publications name the newest record in a trailer, by which later passes detect records
            # that were restored from an older copy.
            replace(
                facts.records.position(self.now),
                last_record=records[-1].name if records else NO_VALUE,
            ),
            cleanup,
        )
        plan = with_draft_times(plan, facts.stages, self.now)
        plan = self.request_planner.add_requests(plan, decided)
        return sort_actions(plan, [it.name for it in facts.stages])

    def _build_variant_observer(
        self, inputs: PolicyInputs, status: RecordedStatus
    ) -> VariantObserver:
        return VariantObserver(
            git=self.world.git,
            install=self.world.setup.install,
            now=self.now,
            resolved_policy=inputs.resolved_policy,
            status=status,
            path_ownership=inputs.path_ownership,
            resolutions=inputs.read_resolutions(self.now),
            edit_detector=self.edit_detector,
            variant_memo=self.policy_memo.variant_memo(inputs.resolved_policy.key),
            record_baseline=RecordBaseline.build(inputs, self.world.setup, self.now),
        )

    def _find_departing_steps(
        self,
        inputs: PolicyInputs,
        steps: Sequence[DecidedVariant],
        facts: PolicyFacts,
        reviews: RemovalReviews,
    ) -> list[tuple[DecidedVariant, CleanupPermission]]:
        """Return the steps of variants with leftovers, each with its cleanup conditions."""
        observed = ((it, it.rendered.observed) for it in steps)
        steps = [step for step, it in observed if it.misplaced_drafts or it.abandoned]
        if not steps:
            return []
        ready, suspended = find_ready(facts), find_suspended(facts)
        window_hold = closed_window_hold(
            facts.calendars, facts.now, has_unreadable_calendar=facts.has_unreadable_calendar
        )
        confirmations = read_confirmations(active_records(inputs.policy_state.records))
        drafts = {it.key: DraftIndex.build(it) for it in inputs.path_ownership.own_states}
        return [
            (
                step,
                CleanupPermission(
                    is_publishing=self.mode.publish,
                    is_ready=step.rendered.spec.name in ready,
                    is_automatic=any(
                        it.automatic and it.name == step.rendered.spec.stage for it in facts.stages
                    ),
                    automation_acts=inputs.is_sweep,
                    window_hold=window_hold,
                    keeps_package=inputs.resolved_policy.orphans_packages,
                    confirmed_trees=find_confirmed_trees(step.rendered.observed, confirmations),
                    needs_approvals=bool(find_approvals(facts.stages, step.rendered.spec.stage)),
                    drafts=drafts,
                    review_holds=reviews.find_leftover_holds(step.rendered),
                ),
            )
            for step in steps
            if step.rendered.spec.name not in suspended
        ]
