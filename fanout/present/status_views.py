"""Policies, variants and repositories as they are shown in a cluster: objects with their statuses.

All instants are from records and commits, or of the object itself. The clock is not read, so that
two processes that observe the same write the same bytes.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.git_repository import Repository
from fanout.api.object_meta import KRMObject
from fanout.api.object_statuses import MAX_HOLDS
from fanout.api.promotion_policy import PromotionPolicy
from fanout.api.reasons import Reason
from fanout.api.results import Condition, Hold, build_ready, build_true
from fanout.api.view_base import ConditionStatus, dump_view, dump_views
from fanout.errors import FanoutError
from fanout.gates.evaluation_results import VariantState
from fanout.gates.gate_wording import describe_hold
from fanout.message_commands import MessageCommands, cluster_commands
from fanout.plan.written_objects import (
    PROGRESS_TYPES,
    ObjectName,
    TransitionTimes,
    WrittenObject,
)
from fanout.present.conditions import (
    add_progress,
    build_error_conditions,
    build_policy_conditions,
    build_variant_conditions,
    find_failed_variants,
    find_refusals,
    has_unusable_repository,
)
from fanout.present.conflict_views import draft_time
from fanout.present.enforcement_conditions import EnforcementReport, report_enforcement
from fanout.present.object_views import build_stages
from fanout.present.policy_entry import OrphanEntry, PolicyEntry, VariantEntry
from fanout.present.variant_content import build_content
from fanout.present.view_meta import Plain, format_time, without_none
from fanout.reconcile import reconcile_wording as wording
from fanout.reconcile.pass_results import PolicyResult
from fanout.reconcile.selection.policy_resolution import repository_key
from fanout.values import Value, replace

VARIANT_KIND = "PackageVariant"

# As in the schemas of the statuses: a status that exceeds a bound is refused as a whole.
_MAX_TEXT, _MAX_ENTRIES = 32_768, 1_000
_OF_OTHERS = frozenset(
    {
        Reason.AFTER_FAILED,
        Reason.AFTER_PENDING,
        Reason.BUDGET_EXHAUSTED,
        Reason.GROUP_AWAITS,
        Reason.HALTED,
        Reason.PROPAGATION_HELD,
    }
)
_MEANINGS: Mapping[str, str] = {it.value: it.meaning for it in Reason}
# For what no API server stored.
_UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class RepositoryReport(Value):
    """Findings of the pass over one policy about a repository that it uses."""

    failure: FanoutError | None
    enforcement: EnforcementReport | None


def summarize_repositories(policy_result: PolicyResult) -> Mapping[str, RepositoryReport]:
    """Return the findings about a policy's repositories, by key of the Repository."""
    uses: dict[str, RepositoryReport] = {}
    upstream = policy_result.resolved_policy.upstream
    # A policy that an error stopped may not have asked for its upstream.
    if upstream is not None and (policy_result.error is None or policy_result.upstream_failure):
        uses[repository_key(upstream)] = RepositoryReport(policy_result.upstream_failure, None)
    refusals = find_refusals(policy_result)
    for variant in policy_result.variants:
        key = repository_key(policy_result.resolved_policy.repositories[variant.spec.name])
        if key not in uses or (uses[key].enforcement is None and uses[key].failure is None):
            reports = report_enforcement([variant])
            state = variant.observed.repository_state
            failure = state.failure or refusals.get(state.identity)
            if key not in uses or reports or failure:
                uses[key] = RepositoryReport(failure, reports[0] if reports else None)
    return uses


def build_repository_status(
    repository: Repository, uses: Iterable[RepositoryReport]
) -> WrittenObject:
    """Return a Repository with its status; `uses` are those of all policies."""
    enforcement = None
    conditions = [build_ready(Reason.UNUSED, wording.UNUSED, is_ready=True)]
    for use in uses:
        if use.failure is not None:
            conditions = build_error_conditions(use.failure)
            break
        conditions = [build_ready(Reason.LISTED, wording.ANSWERED, is_ready=True)]
        enforcement = enforcement or use.enforcement
    if enforcement is not None:
        conditions.append(enforcement.as_condition())
    return _build_declared_status(repository, {"conditions": _complete(conditions, None)})


def build_promotion_status(promotion: PromotionPolicy) -> WrittenObject:
    """Return a PromotionPolicy with its status: it is in force as soon as it is valid."""
    ready = build_ready(Reason.READY, wording.IN_FORCE, is_ready=True)
    return _build_declared_status(promotion, {"conditions": _complete([ready], None)})


def build_broken_status(
    name: ObjectName, metadata: Mapping[str, Any], problems: Iterable[str]
) -> WrittenObject:
    """Return an object that is declared with errors, with all of them in its status."""
    ready = build_ready(Reason.INVALID_OBJECT, "\n".join(problems))
    conditions = [ready, replace(ready, type="Stalled", status=ConditionStatus.TRUE)]
    status = finish_status({"conditions": dump_views(conditions)}, name.namespace)
    return WrittenObject(name, status, generation=metadata.get("generation") or 0)


def with_declaration(
    item: WrittenObject, metadata: Mapping[str, Any], observed_at: datetime | None, request: str
) -> WrittenObject:
    """Return an object with when it was created, and which request for a pass was handled.

    `metadata`: of its declaration. `observed_at`: instant of the last pass, None if there was
    none. `request`: value of the annotation that was handled, "" if there was none.
    """
    created = metadata.get("creationTimestamp") or format_instant(_UNKNOWN_TIME)
    item = replace(item, times=TransitionTimes(created, format_time(observed_at) or ""))
    if not request:
        return item
    return replace(item, status={**item.status, "lastHandledReconcileAt": request})


def build_policy_status(entry: PolicyEntry, problem: FanoutError | None = None) -> WrittenObject:
    """Return an UpstreamPolicy with its status; `problem`: one that all policies have."""
    policy_result, decision = entry.result, entry.result.decision
    policy = policy_result.resolved_policy.upstream_policy
    assert policy is not None, "asked of policies only"
    conditions = add_progress(
        build_policy_conditions(entry),
        has_failed=bool(
            policy_result.resolved_policy.failures or find_failed_variants(policy_result)
        )
        or has_unusable_repository(policy_result.variants),
    )
    conditions += _build_suspension(decision.holds if decision else ())
    if problem is not None:
        conditions.append(build_true(problem.reason, str(problem)))
    if outdated := policy_result.policy_state.outdated:
        message = wording.describe_outdated_records(outdated)
        conditions.append(build_true(Reason.RECORDS_UNREADABLE, message))
    conditions.sort(key=lambda it: it.type not in PROGRESS_TYPES)
    counts: dict[str, int] = {}
    stages = build_stages(entry)
    for stage in stages:
        for state, number in stage.status.counts.items():
            counts[state] = counts.get(state, 0) + number
    status = {
        "conditions": _complete(conditions, None),
        "stages": [{"name": it.spec.stage, **dump_view(it.status)} for it in stages],
        "counts": counts,
        "next": format_time(decision.next) if decision else None,
    }
    return _build_declared_status(policy, without_none(status))


def _build_suspension(holds: Iterable[Hold]) -> list[Condition]:
    """Return the condition Suspended of a policy that its spec or a person suspends."""
    return [
        replace(build_true(Reason.SUSPENDED, describe_hold(it)), last_transition_time=it.since)
        for it in holds
        if it.reason == Reason.SUSPENDED
    ][:1]


def build_variant_status(policy_result: PolicyResult, entry: VariantEntry) -> WrittenObject:
    """Return a PackageVariant with its status, and with its content if a policy makes it."""
    entry = _without_progress_of_others(policy_result, entry)
    variant, decision, observed = entry.variant, entry.shown, entry.variant.observed
    draft, published = observed.draft, observed.published
    # Without an instant on record, the state is as old as the commit that it is about.
    since = (draft_time(draft) if draft is not None else None) or entry.published_since
    conditions = add_progress(
        build_variant_conditions(policy_result, entry),
        has_failed=decision.state is VariantState.FAILED or has_unusable_repository([variant]),
    )
    subject = published or (draft.trailers if draft is not None else None)
    status = {
        "conditions": _complete(conditions, since or _policy_time(policy_result)),
        "state": decision.state.value,
        "stage": variant.spec.stage or None,
        "revision": subject.revision if subject is not None else None,
        "digest": subject.digest if subject is not None else None,
        "draft": None
        if draft is None
        else without_none(
            {
                "revision": draft.trailers.revision or None,
                "branch": observed.draft_ref.removeprefix("refs/heads/"),
                "commit": draft.commit,
                "tree": draft.tree,
            }
        ),
        "published": None
        if published is None
        else _build_published(published.revision, published.tag, published.merge),
        "holds": dump_views(decision.holds[:MAX_HOLDS]),
        "moreHolds": max(len(decision.holds) - MAX_HOLDS, 0),
        "next": format_time(decision.next),
    }
    package_variant = policy_result.resolved_policy.package_variant
    if package_variant is not None:
        return _build_declared_status(package_variant, without_none(status))
    return WrittenObject(
        ObjectName(VARIANT_KIND, variant.spec.namespace, variant.spec.name),
        finish_status(without_none(status), variant.spec.namespace),
        content=build_content(policy_result, variant),
    )


def _build_published(revision: str, tag: str, commit: str) -> Plain:
    return without_none(
        {"revision": revision or None, "tag": tag or None, "commit": commit or None}
    )


def _without_progress_of_others(policy_result: PolicyResult, entry: VariantEntry) -> VariantEntry:
    """Return the entry with holds that stay the same while other variants make progress.

    Thousands of variants wait for the same slot or group. Each that gets one would change the
    sentence of all the others; the status of the stage has it.
    """
    decision = entry.shown
    is_waiting = any(it.reason in _OF_OTHERS for it in decision.holds)
    if not is_waiting or policy_result.resolved_policy.upstream_policy is None:
        return entry
    place = f"stage {decision.stage} of UpstreamPolicy {policy_result.resolved_policy.name}"
    holds = tuple(
        Hold(it.reason, f"{_MEANINGS[it.reason]}; see the status of {place}")
        if it.reason in _OF_OTHERS
        else it
        for it in decision.holds
    )
    return replace(entry, shown=replace(decision, holds=holds, next=None))


def build_stopped_status(entry: PolicyEntry) -> WrittenObject:
    """Return a hand-written PackageVariant that an error stops, with its status."""
    package_variant = entry.result.resolved_policy.package_variant
    assert package_variant is not None, "asked of hand-written variants only"
    status = {
        "conditions": _complete(build_policy_conditions(entry), None),
        "state": VariantState.HELD.value,
    }
    return _build_declared_status(package_variant, status)


def build_orphan_status(policy_result: PolicyResult, entry: OrphanEntry) -> WrittenObject:
    """Return a variant whose target is gone and whose package is not removed yet."""
    orphan, holds = entry.locations, entry.holds
    # On record: without a target nothing of it is observed but where it is.
    published = orphan.status_line.published if orphan.status_line is not None else None
    ready = build_ready(holds[0].reason if holds else Reason.TARGET_GONE, entry.failure.problem)
    since = next((it.since for it in holds if it.since), None) or _policy_time(policy_result)
    status = {
        "conditions": _complete(add_progress([ready]), since),
        "state": VariantState.HELD.value,
        "stage": orphan.stage or None,
        "revision": published.revision if published is not None else None,
        "digest": published.digest if published is not None else None,
        "published": None
        if published is None
        else _build_published(published.revision, published.tag, published.merge),
        "holds": dump_views(holds[:MAX_HOLDS]),
        "moreHolds": max(len(holds) - MAX_HOLDS, 0),
    }
    object_name = ObjectName(VARIANT_KIND, policy_result.resolved_policy.namespace, orphan.name)
    return WrittenObject(object_name, finish_status(without_none(status), object_name.namespace))


def _build_declared_status(item: KRMObject, status: Plain) -> WrittenObject:
    meta = item.metadata
    name = ObjectName(item.kind, meta.namespace, meta.name)
    return WrittenObject(
        name, finish_status(status, meta.namespace), generation=meta.generation or 0
    )


def _complete(conditions: Iterable[Condition], since: datetime | None) -> list[Plain]:
    """Return the conditions as statuses have them.

    `since`: instant of those that have none of their own; None: it is on no record.
    """
    return [
        dump_view(
            replace(
                it,
                last_transition_time=it.last_transition_time or since,
                observed_generation=None,
            )
        )
        for it in conditions
    ]


def _policy_time(policy_result: PolicyResult) -> datetime | None:
    """Return when the policy of a variant was created; None: the variant is declared itself."""
    policy = policy_result.resolved_policy.upstream_policy
    if policy is None:
        return None
    return policy.metadata.creation_timestamp or _UNKNOWN_TIME


def finish_status(status: Plain, namespace: str) -> Plain:
    """Return a status with commands for people of the namespace, within the schema's bounds."""
    finished: Plain = _limit(status, cluster_commands(namespace))
    return finished


def _limit(value: Any, commands: MessageCommands) -> Any:
    """Return plain data within the bounds of the schema: what is longer is cut."""
    if isinstance(value, str):
        return commands.complete_text(value)[:_MAX_TEXT]
    if isinstance(value, dict):
        return {key: _limit(value[key], commands) for key in list(value)[:_MAX_ENTRIES]}
    if isinstance(value, list):
        return [_limit(it, commands) for it in value[:_MAX_ENTRIES]]
    return value
