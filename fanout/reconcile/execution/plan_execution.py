"""Execution of a plan: record releases, push every repository, record the results.

The order of effects is the fence (docs/concepts/sweeps-and-plans.md). After a crash at any point
the next pass continues: what was pushed shows in Git, and what was not is planned again. A lost
race is a Conflict and is observed again, never forced.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from fanout.api.reasons import Reason
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import Bug, Conflict, FanoutError, InvalidInput
from fanout.plan.actions import ActionKind, ActionResult, PlanAction, undone_result
from fanout.plan.changes.policy_plan import PolicyPlan
from fanout.plan.changes.repository_changes import (
    last_publication_commit,
    last_publication_tag,
    next_publication_tag,
)
from fanout.plan.decided_variant import VariantStep
from fanout.plan.observation.observed_request import RequestState
from fanout.plan.observation.repository_state import PushedChange, url_of_remote
from fanout.plan.pull_requests.request_holds import HOLD_LABEL
from fanout.plan.pull_requests.request_records import apply_result
from fanout.plan.push_refusals import is_refusal, note_refusal, word_refusal
from fanout.plan.records.policy_records import RecordsKey, StatusChange
from fanout.plan.records.policy_status import (
    RecordedStatus,
    RefusedPushLine,
    RequestKey,
    RequestLine,
    StatusLines,
    VariantLine,
    changed_lines,
)
from fanout.reconcile.edits.edit_detection import find_lost_tags
from fanout.reconcile.execution.repository_pushes import PushResults, push_changes, write_traces
from fanout.reconcile.pass_results import PassPlan, PassReport
from fanout.reconcile.pass_scope import PassMode, PassSubject, subject_of
from fanout.reconcile.policy_isolation import (
    PolicyErrors,
    with_policy_errors,
    without_failed_policies,
)
from fanout.reconcile.pull_requests.request_execution import RequestOutcome, execute_requests
from fanout.reconcile.reconciler import Reconciler
from fanout.reconcile.world import World
from fanout.retries import retry_conflicts
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import replace

_PUSHED_KINDS = (
    ActionKind.WRITE_DRAFT,
    ActionKind.DRAFT_REMOVAL,
    ActionKind.PUBLISH,
    ActionKind.REMOVE_PACKAGE,
    ActionKind.REMOVE_DRAFT,
)
_REQUEST_KINDS = (
    ActionKind.OPEN_REQUEST,
    ActionKind.UPDATE_REQUEST,
    ActionKind.CLOSE_REQUEST,
    ActionKind.SET_STATUS,
    ActionKind.MERGE_REQUEST,
)
# A branch that nobody needs any more may stay.
_UNPUSHED_STEPS = (VariantStep.KEEP, VariantStep.MERGE, VariantStep.REMOVE)
_MAX_FURTHER_PASSES = 8
_FINAL_KINDS = {ActionKind.RELEASE, *_PUSHED_KINDS, ActionKind.MERGE_REQUEST} - {
    ActionKind.WRITE_DRAFT
}
Confirmation = Callable[[PassPlan, DeclaredObjects], DeclaredObjects | None]
"""Returns what is declared now if a plan is not to be executed on what was declared, else None."""
RequestOutcomes = Mapping[tuple[str, str], RequestOutcome]
"""By key of the remote and full ref of the head branch."""


def run_pass(
    world: World,
    reconciler: Reconciler,
    declared: DeclaredObjects,
    now: datetime,
    mode: PassMode,
    confirm: Confirmation | None = None,
) -> PassReport:
    """Observe, plan and execute; repeat when records, or what is declared, moved meanwhile.

    What was done before a repetition is among the outcomes. `confirm`: asked right before the plan
    is executed. A repository whose push loses a race is reported as that repository's outcome, and
    the next pass observes it again.
    Raises Conflict when records, or what is declared, keep changing for half a minute.
    """
    report, declared = _plan_and_execute(world, reconciler, declared, now, mode, confirm)
    return finish_pass(world, reconciler, declared, mode, report, confirm)


def is_final(pass_plan: PassPlan) -> bool:
    """Return whether a plan publishes or removes something, which nobody can take back."""
    return any(action.kind in _FINAL_KINDS for action in pass_plan.plan.actions)


def _plan_and_execute(
    world: World,
    reconciler: Reconciler,
    declared: DeclaredObjects,
    now: datetime,
    mode: PassMode,
    confirm: Confirmation | None,
) -> tuple[PassReport, DeclaredObjects]:
    """Return the report of a pass, and what was declared when its plan was made last."""
    done_outcomes: list[ActionResult] = []

    def attempt() -> PassReport:
        nonlocal declared
        pass_plan = reconciler.plan_pass(declared, now, mode)
        present = confirm(pass_plan, declared) if confirm is not None else None
        if present is not None:
            declared = present
            raise Conflict(
                "what is declared changed during the pass", reason=str(Reason.REMOTE_MOVED)
            )
        report = execute_plan(world, pass_plan)
        if report.lost_race is not None:
            done_outcomes.extend(it for it in report.outcomes if it.is_done)
            raise report.lost_race
        return report

    report = retry_conflicts(attempt)
    return replace(report, outcomes=(*done_outcomes, *report.outcomes)), declared


def finish_pass(
    world: World,
    reconciler: Reconciler,
    declared: DeclaredObjects,
    mode: PassMode,
    report: PassReport,
    confirm: Confirmation | None = None,
) -> PassReport:
    """Make further passes over the policies that the pass left half done, if any.

    One whose pull requests or sets of removals it merged: the next pass finds the merges in Git, as
    it finds those of people, tags and records them, and writes what follows from them. And one of
    which a repository took a part, as long as it takes more; in rounds that is for a later one.
    Their outcomes are added to those of the report.
    """
    subjects = _find_partly_pushed(world, report) | {
        subject_of(it.action) for it in report.outcomes if it.is_done and it.action.merges_branch
    }
    for _ in range(_MAX_FURTHER_PASSES):
        if not subjects:
            break
        now, following = report.pass_plan.now, replace(mode, subjects=subjects)
        later, _ = _plan_and_execute(world, reconciler, declared, now, following, confirm)
        # Failures of what the later pass has tried again are dropped.
        repeated = {_action_key(it.action) for it in later.outcomes}
        done = report.outcomes
        earlier = [it for it in done if it.is_done or _action_key(it.action) not in repeated]
        warnings = (*report.warnings, *later.warnings)
        pass_plan = replace(report.pass_plan, snapshot=None)
        report = PassReport(pass_plan, (*earlier, *later.outcomes), warnings)
        subjects = _find_partly_pushed(world, later)
    return report


def _find_partly_pushed(world: World, report: PassReport) -> frozenset[PassSubject]:
    """Return the policies of which another pass may push more at once."""
    return frozenset(PassSubject(*it) for it in report.partly_pushed if not world.makes_rounds)


def _action_key(action: PlanAction) -> tuple[str, ...]:
    return (action.kind, action.namespace, action.policy, action.variant, action.ref, action.path)


def execute_plan(world: World, pass_plan: PassPlan) -> PassReport:
    """Execute the plan of a pass.

    Raises Conflict, before anything is pushed, when records moved. A policy whose releases cannot
    be recorded is stopped before anything of it is pushed.
    """
    # Traces of records are written before anything else is pushed.
    with world.counters.times.phase("writing"):
        errors = write_traces(world, [it for result in pass_plan.policies for it in result.traces])
    if errors:
        policies = pass_plan.policies
        results = (replace(it, trace_errors=errors) if it.traces else it for it in policies)
        pass_plan = replace(pass_plan, policies=tuple(results))
    if not pass_plan.plan:
        return PassReport(pass_plan)
    # While its records wait, a policy neither publishes nor removes. A release that is on record
    # already writes no status, so its publication would not be refused there.
    final = {subject_of(action) for action in pass_plan.plan.actions if action.kind in _FINAL_KINDS}
    holds: dict[tuple[str, str], FanoutError] = {}
    for policy in (it.resolved_policy for it in pass_plan.policies):
        hold = world.records.find_hold(policy.records_key)
        if hold is not None and policy.subject in final:
            holds[policy.subject] = hold
    pass_plan = without_failed_policies(pass_plan, holds)
    heads = {it.resolved_policy.records_key: it.policy_state.head for it in pass_plan.policies}
    releases = [(it, it.recorded, it.planned) for it in pass_plan.plans]
    # Before any push: a release that was pushed but not recorded would not count against its
    # stage's budget if the process ended in between.
    recorded_heads, unrecorded_errors = _record_differences(world, pass_plan, heads, releases)
    pass_plan = without_failed_policies(pass_plan, unrecorded_errors)
    with world.counters.times.phase("writing"):
        pushes = push_changes(world, pass_plan)
    request_changes = [change for plan in pass_plan.plans for change in plan.request_changes]
    request_changes += pass_plan.other_statuses
    with world.counters.times.phase("requests"):
        request_outcomes = execute_requests(
            world.forges, request_changes, pushes.find_of_ref, pass_plan.now
        )
    # Plans that neither published nor removed anything, have no requests, and of which no push was
    # refused, are left out.
    settled_plans, unsettled_errors = [], {}
    for plan in pass_plan.plans:
        has_requests = plan.request_changes or plan.planned.requests
        is_refused = pushes.has_refusals or plan.planned.refused_pushes
        if plan.published or plan.cleanup.removals or has_requests or is_refused:
            status = run_isolated(partial(_settle, plan, pushes, request_outcomes, pass_plan.now))
            if isinstance(status, FanoutError):  # the next pass finds it in the repositories
                unsettled_errors[plan.namespace, plan.name] = status
            else:
                settled_plans.append((plan, plan.planned, status))
    outcomes = tuple(_yield_outcomes(pass_plan, pushes, request_outcomes))
    lost_race: Conflict | None = None
    unwritten_errors: PolicyErrors = {}
    try:
        # The swap expects the heads that the first write left, so another writer in between makes
        # this one fail; the next pass then derives the same from the repositories.
        _, unwritten_errors = _record_differences(
            world, pass_plan, {**heads, **recorded_heads}, settled_plans
        )
    except Conflict as error:
        lost_race = error
    pass_plan = with_policy_errors(pass_plan, {**unsettled_errors, **unwritten_errors})
    warnings = tuple(_yield_warnings(request_outcomes))
    return PassReport(pass_plan, outcomes, warnings, lost_race, pushes.untried)


def _yield_warnings(request_outcomes: RequestOutcomes) -> Iterator[str]:
    for (key, _), outcome in sorted(request_outcomes.items()):
        url = url_of_remote(key)
        if outcome.unknown_reviewers:
            yield f"{url}: cannot request a review from {', '.join(outcome.unknown_reviewers)}"
        if outcome.hold_label_error is not None:
            yield (
                f"{url}: cannot create the label {HOLD_LABEL}, which holds pull requests:"
                f" {outcome.hold_label_error}; or create it by hand"
            )


def _record_differences(
    world: World,
    pass_plan: PassPlan,
    heads: Mapping[RecordsKey, str],
    differences: Sequence[tuple[PolicyPlan, RecordedStatus, RecordedStatus]],
) -> tuple[Mapping[RecordsKey, str], PolicyErrors]:
    """Write the status changes of all policies in one push, or each alone if one cannot be made.

    Returns the new heads by key, and the errors of policies whose status could not be
    written. Raises Conflict when records moved, Unavailable or Denied when they cannot be
    reached.
    """
    if pass_plan.has_outdated_records:
        # Nothing was released. What is known of drafts is derived again from repositories.
        return {}, {}
    policies = (it.resolved_policy for it in pass_plan.policies)
    keys = {it.subject: it.records_key for it in policies}
    lines_by_key: dict[RecordsKey, StatusLines] = {}
    for plan, previous_status, new_status in differences:
        lines_by_key.setdefault(keys[plan.namespace, plan.name], {}).update(
            changed_lines(previous_status, new_status)
        )
    changed = lines_by_key.items()
    status_changes = {key: StatusChange(heads[key], lines) for key, lines in changed if lines}
    if not status_changes:
        return {}, {}
    put, at = world.records.put_status, pass_plan.now
    new_heads: dict[RecordsKey, str] = {}
    errors_by_key: dict[RecordsKey, FanoutError] = {}
    with world.counters.times.phase("records"):
        joint_result = run_isolated(partial(put, status_changes, at))
        if not isinstance(joint_result, FanoutError):
            return joint_result, {}
        # A lost race or an unreachable remote concerns all policies alike; only a malformed change
        # is one policy's own fault. The fence of a budget is the swap of its own policy state, so
        # separate pushes are as safe.
        if not isinstance(joint_result, Bug | InvalidInput):
            raise joint_result
        for key, change in status_changes.items():
            single_result = run_isolated(partial(put, {key: change}, at))
            if isinstance(single_result, FanoutError):
                errors_by_key[key] = single_result
            else:
                new_heads |= single_result
    affected_policies = {(plan.namespace, plan.name) for plan, _, _ in differences}
    return new_heads, {
        it: errors_by_key[keys[it]] for it in sorted(affected_policies) if keys[it] in errors_by_key
    }


def _settle(
    plan: PolicyPlan, pushes: PushResults, request_outcomes: RequestOutcomes, now: datetime
) -> RecordedStatus:
    """Return the status with what was published, removed or requested, where that succeeded."""
    status_lines = dict(plan.planned.variants)
    published_names = set()  # their lines about earlier removals are obsolete
    for step in plan.steps:
        variant = step.rendered
        planned_line = plan.published.get(variant.spec.name)
        # None if its repository was not pushed to.
        push_result = pushes.find(
            variant.observed.repository_state.remote.key, plan.namespace, variant.spec.name
        )
        line = status_lines.get(variant.spec.name)
        # Where a push failed, people may have merged the earlier draft, which the next pass finds.
        is_pushed = isinstance(push_result, PushedChange)
        if is_pushed and line is not None and line.previous_grant is not None:
            status_lines[variant.spec.name] = replace(line, previous_grant=None)
        if (
            planned_line is None
            or planned_line.published is None
            or isinstance(push_result, FanoutError)
        ):
            continue  # a failed push is seen again by the next pass
        state = variant.observed.repository_state
        merge_commit = planned_line.published.merge
        tag = variant.observed.tag or next_publication_tag(variant)
        if step.step is VariantStep.PUBLISH and push_result is not None:
            tag = tag if tag in push_result.refs else last_publication_tag(variant)
            merge_commit = push_result.refs.get(tag) or last_publication_commit(variant)
        published = replace(
            planned_line.published,
            merge=merge_commit,
            tag=tag.removeprefix("refs/tags/") if state.pushes_tags or tag in state.refs else "",
            lost_tags=find_lost_tags(variant.observed, tag),
        )
        status_lines[variant.spec.name] = replace(planned_line, published=published)
        published_names.add(variant.spec.name)
    for removal in plan.cleanup.removals:
        name, failed = removal.variant, False
        for package in removal.packages:
            observed = package.repository_state
            key = observed.remote.key if observed is not None else ""
            if isinstance(pushes.find(key, plan.namespace, name), FanoutError):
                failed = True
            elif removal.due is None and package.left_line and not package.awaits_review:
                kept_lines = (it for it in status_lines[name].left if it != package.left_line)
                status_lines[name] = replace(status_lines[name], left=tuple(kept_lines))
        # A variant may have locations in several repositories: it stays on record until all of them
        # are cleared, or its remainder would be forgotten.
        if removal.due is not None and not failed and not removal.awaits_review:
            status_lines.pop(name, None)
    removed = plan.planned.removed.items()
    removed_at = {name: at for name, at in removed if name not in published_names}
    begun = {(it.repository, it.head_ref) for it in plan.request_changes if it.opening is not None}
    return replace(
        plan.planned,
        variants=status_lines,
        removed=removed_at,
        openings={key: at for key, at in plan.planned.openings.items() if key not in begun},
        requests=_settle_requests(plan, status_lines, request_outcomes),
        refused_pushes=_settle_refusals(plan, pushes, now),
    )


def _settle_refusals(
    plan: PolicyPlan, pushes: PushResults, now: datetime
) -> Mapping[str, RefusedPushLine]:
    """Return the lines about refused pushes after those of the pass."""
    if not pushes.has_refusals and not plan.planned.refused_pushes:
        return plan.planned.refused_pushes
    pushed = [
        (step.rendered.spec.name, step.rendered.observed.repository_state)
        for step in plan.steps
        if step.step not in _UNPUSHED_STEPS
    ]
    packages = (it for _, it in plan.cleanup.packages)
    pushed += [(it.variant, it.repository_state) for it in packages if it.repository_state]
    results = [
        (name, state, pushes.find(state.remote.key, plan.namespace, name)) for name, state in pushed
    ]
    taken = {name for name, _, result in results if isinstance(result, PushedChange)}
    lines = {name: it for name, it in plan.planned.refused_pushes.items() if name not in taken}
    for name, state, result in results:
        if isinstance(result, FanoutError) and is_refusal(result):
            line = plan.planned.refused_pushes.get(name)
            message = word_refusal(result, pushes.names[state.remote.key], plan.namespace)
            lines[name] = note_refusal(line, state.identity, message, now)
    return lines


def _settle_requests(
    plan: PolicyPlan, status_lines: Mapping[str, VariantLine], request_outcomes: RequestOutcomes
) -> Mapping[RequestKey, RequestLine]:
    """Return the lines about pull requests after the calls of the pass."""
    lines = dict(plan.planned.requests)
    for change in plan.request_changes:
        outcome = request_outcomes.get((change.remote.key, change.head_ref))
        if outcome is not None and outcome.line is not None:
            key = change.repository, change.head_ref
            line = apply_result(lines.get(key), outcome.line)
            lines.pop(key, None)
            if line is not None:
                lines[key] = line
    observed = [it.rendered.observed for it in plan.steps]
    granted = {
        (it.repository_state.identity, it.draft_ref)
        for it in observed
        if (line_of_variant := status_lines.get(it.spec.name)) is not None
        and line_of_variant.grant is not None
        and (it.draft is not None or it.drafted_rendering is not None)
    }
    states = [it.repository_state for it in observed]
    states += [it.state for it in plan.cleanup.sets]
    merged = {
        (state.identity, ref): facts.request.number
        for state in states
        if state.forge is not None
        for ref, facts in state.forge.requests.items()
        if facts.request.state is RequestState.MERGED
    }
    # A merged request is over when its publications are on record: until then some draft of it
    # belongs to a variant whose release has led to none.
    return {
        key: line
        for key, line in lines.items()
        if key in granted or (line.state != RequestState.MERGED and merged.get(key) != line.number)
    }


def _yield_outcomes(
    pass_plan: PassPlan, pushes: PushResults, request_outcomes: RequestOutcomes
) -> Iterator[ActionResult]:
    # The keys of the remotes of all actions, by namespace and name of the Repository.
    acted_on = {action.repository for action in pass_plan.plan.actions}
    remotes = {
        (plan.namespace, repository): repository_state.remote.key
        for plan in pass_plan.plans
        for repository, repository_state in (
            *(
                (step.rendered.spec.repository, step.rendered.observed.repository_state)
                for step in plan.steps
                if step.rendered.selected.observed.spec.repository in acted_on
            ),
            *((it.repository, it.repository_state) for _, it in plan.cleanup.packages),
            *((draft.repository, draft.state) for draft in plan.cleanup.sets),
        )
        if repository_state is not None
    }
    for item in pass_plan.other_statuses:
        remotes |= {(it.namespace, it.repository): item.remote.key for it in item.actions}
    for action in pass_plan.plan.actions:
        remote = remotes.get((action.namespace, action.repository), "")
        outcome = run_isolated(partial(_build_outcome, action, remote, pushes, request_outcomes))
        yield undone_result(action, outcome) if isinstance(outcome, FanoutError) else outcome


def _build_outcome(
    action: PlanAction, remote: str, pushes: PushResults, request_outcomes: RequestOutcomes
) -> ActionResult:
    result: PushedChange | FanoutError | None = None
    if action.kind in _PUSHED_KINDS:
        # A set of removals is about several variants, and named by its branch.
        result = pushes.find(remote, action.namespace, action.variant or action.ref)
        assert result is not None, "what is pushed is in a change"
        # A branch that loses one of its packages is written, and not removed.
        if (
            action.kind is ActionKind.REMOVE_DRAFT
            and isinstance(result, PushedChange)
            and action.ref not in result.refs
        ):
            result = result.removal_error
    elif action.kind in _REQUEST_KINDS:
        result = request_outcomes[remote, action.ref].errors.get(action.kind)
    if not isinstance(result, FanoutError):
        return ActionResult(action, is_done=True)
    return undone_result(action, result)
