"""Views that `fanout get` prints: stages, targets, drafts, variants, repositories."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from fanout.api.durations import format_instant
from fanout.api.gate_vocabulary import Verdict
from fanout.api.object_meta import API_VERSION
from fanout.api.output_views import (
    DraftView,
    DraftViewSpec,
    DraftViewStatus,
    StageView,
    StageViewSpec,
    TargetView,
    TargetViewSpec,
    TargetViewStatus,
)
from fanout.api.reasons import Reason
from fanout.api.results import Condition, Hold, StageResult, build_ready, build_true
from fanout.api.view_base import (
    ConditionStatus,
    DraftMeta,
    RequestView,
    ViewMeta,
    dump_view,
    dump_views,
    label_verdict,
)
from fanout.declared.declared_objects import DeclaredObjects
from fanout.errors import FanoutError
from fanout.gates.evaluation_results import VariantState
from fanout.gates.gate_wording import describe_hold
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.condition_times import (
    complete_conditions,
    policy_ready_since,
    published_since,
    ready_since,
    verdict_since,
)
from fanout.present.conflict_views import draft_time, find_undecided_keys
from fanout.present.decided_entry import DecidedEntry, list_decisions
from fanout.present.enforcement_conditions import (
    EnforcementReport,
    report_enforcement,
)
from fanout.present.policy_conditions import (
    build_policy_conditions,
    find_failed_variants,
    find_refusals,
)
from fanout.present.request_views import (
    find_request,
    group_requests_by_stage,
)
from fanout.present.variant_conditions import (
    build_conflict_conditions,
    find_undrafted_hold,
    is_carried_out,
)
from fanout.present.view_meta import (
    build_meta,
    fanout_labels,
    policy_labels,
    policy_name,
    stage_positions,
    variant_labels,
)
from fanout.reconcile import reconcile_wording as wording
from fanout.reconcile.edits.package_damage import (
    describe_edits,
    describe_faults,
    describe_leftover_draft,
)
from fanout.reconcile.execution.removal_execution import find_places
from fanout.reconcile.observation.moved_tags import describe_lost_tag, find_tag_problems
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.reconcile.removal.orphaned_variants import describe_orphans
from fanout.reconcile.selection.policy_resolution import repository_key, repository_place
from fanout.selection.target_selection import usable_repositories
from fanout.selection.variant_spec import TargetFailure
from fanout.values import replace

Plain = dict[str, Any]
_STATUS_BY_VERDICT: Mapping[Verdict, ConditionStatus] = {
    Verdict.PASSED: ConditionStatus.TRUE,
    Verdict.FAILED: ConditionStatus.FALSE,
    Verdict.PENDING: ConditionStatus.UNKNOWN,
}


def list_stages(pass_plan: PassPlan) -> list[StageView]:
    """Return a StageView for every stage of every evaluated policy."""
    return [view for policy_result in pass_plan.policies for view in build_stages(policy_result)]


def build_stages(policy_result: PolicyResult) -> list[StageView]:
    """Return a StageView for every stage of a policy; none if it was not evaluated."""
    conflicts = _count_conflicts(policy_result)
    published = _count_published(policy_result)
    first_published = _find_first_publications(policy_result)
    requests = group_requests_by_stage(policy_result.variants)
    stages = policy_result.decision.stages.values() if policy_result.decision else ()
    return [
        _build_stage(
            policy_result,
            it,
            conflicts[it.name],
            published.get(it.name, {}),
            first_published.get((it.name, it.candidate)),
            requests.get(it.name, ()),
        )
        for it in stages
    ]


def _count_conflicts(policy_result: PolicyResult) -> Counter[str]:
    """Return the number of undecided merge conflicts of each stage's drafts."""
    counts: Counter[str] = Counter()
    undecided = policy_result.undecided_conflicts
    for variant in policy_result.variants:
        counts[variant.spec.stage] += undecided.get(variant.spec.name, 0)
    return counts


def _count_published(policy_result: PolicyResult) -> dict[str, Counter[str]]:
    """Return how many variants have each revision published, by stage."""
    counts: dict[str, Counter[str]] = {}
    for variant in policy_result.variants:
        if variant.observed.published is not None:
            by_revision = counts.setdefault(variant.spec.stage, Counter())
            by_revision[variant.observed.published.revision] += 1
    return counts


def _find_first_publications(policy_result: PolicyResult) -> dict[tuple[str, str], datetime]:
    """Return since when a variant has the revision published, by stage and revision."""
    first: dict[tuple[str, str], datetime] = {}
    for variant in policy_result.variants:
        published, at = variant.observed.published, published_since(variant)
        if published is not None and at is not None:
            key = (variant.spec.stage, published.revision)
            first[key] = min(published.since or at, first.get(key, at))
    return first


def _build_stage(
    policy_result: PolicyResult,
    stage: StageResult,
    conflicts: int,
    published: Mapping[str, int],
    first_published: datetime | None,
    requests: tuple[RequestView, ...],
) -> StageView:
    policy = policy_result.resolved_policy.name
    labels = {**policy_labels(policy_result), **fanout_labels(policy_result, stage.name)}
    return StageView(
        metadata=build_meta(
            policy_result, f"{policy}/{stage.name}" if stage.name else policy, labels
        ),
        spec=StageViewSpec(policy_name(policy_result), stage.name),
        status=replace(
            stage,
            state=policy_result.stage_state(stage.name),
            published=dict(published),
            published_since=first_published,
            conflicts=conflicts,
            requests=requests,
            conditions=_build_stage_conditions(policy_result, stage, conflicts),
        ),
    )


def list_targets(pass_plan: PassPlan, declared: DeclaredObjects) -> list[TargetView]:
    """Return a TargetView for every target, including failed ones and orphaned variants.

    An orphaned variant shows where its package or draft still is.
    """
    target_views: list[TargetView] = []
    for policy_result in pass_plan.policies:
        policy = policy_result.resolved_policy
        place_by_variant = dict(find_places(policy_result)) if policy_result.orphans else {}
        repository_by_name = usable_repositories(policy.namespace, declared.repositories)
        name_by_place = {
            repository_place(repository_by_name[name]): name
            for name in sorted(repository_by_name, reverse=True)  # of several the first
        }
        target_names = policy_result.target_names
        views = [_build_target(policy_result, it) for it in list_decisions(policy_result)]
        views += [
            _build_target_without_variant(policy_result, target_names, it, VariantState.FAILED)
            for it in policy.failures
        ]
        failures = describe_orphans(policy, policy_result.orphans, policy_result.removals)
        for orphan, failure in zip(policy_result.orphans, failures, strict=True):
            place, path = place_by_variant.get(orphan.name, ("", ""))
            orphan_view = _build_target_without_variant(
                policy_result,
                target_names,
                failure,
                VariantState.HELD,
                (name_by_place.get(place, place), path),
                orphan.stage,
                policy_result.removals.holds.get(orphan.name, ()),
            )
            views.append(orphan_view)
        positions = stage_positions(policy_result)
        target_views += sorted(views, key=lambda it: positions.get(it.spec.stage, len(positions)))
    return target_views


def list_drafts(pass_plan: PassPlan) -> list[DraftView]:
    """Return a DraftView for every open draft of a declared variant."""
    return [
        _build_draft_view(policy_result, entry, entry.variant.observed.draft)
        for policy_result in pass_plan.policies
        for entry in list_decisions(policy_result)
        if entry.variant.observed.draft is not None
    ]


def list_variants(pass_plan: PassPlan) -> list[Plain]:
    """Return every variant as a PackageVariant object with its status."""
    return [
        _build_variant(policy_result, entry)
        for policy_result in pass_plan.policies
        for entry in list_decisions(policy_result)
    ]


def list_policies(pass_plan: PassPlan) -> list[Plain]:
    """Return every UpstreamPolicy object with its status."""
    return [
        _build_policy(policy_result)
        for policy_result in pass_plan.policies
        if policy_result.resolved_policy.upstream_policy is not None
    ]


def _build_policy(policy_result: PolicyResult) -> Plain:
    policy, decision = policy_result.resolved_policy.upstream_policy, policy_result.decision
    assert policy is not None, "asked of policies only"
    body: Plain = policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
    body["status"] = {
        "observedGeneration": policy.metadata.generation or 0,
        "conditions": dump_views(
            complete_conditions(
                build_policy_conditions(policy_result, decision.holds if decision else ()),
                policy_result,
                policy_ready_since(policy_result),
            )
        ),
        "variants": len(policy_result.variants),
        "failedTargets": len(policy_result.resolved_policy.failures),
        "failedVariants": len(find_failed_variants(policy_result)),
        "goneVariants": len(policy_result.orphans),
        "editedVariants": sum(
            variant.observed.has_edits_in_force for variant in policy_result.variants
        ),
        "conflicts": sum(policy_result.undecided_conflicts.values()),
        "brokenVariants": sum(
            bool(variant.observed.published_faults) for variant in policy_result.variants
        ),
        "stages": [
            {"name": name, "candidate": stage.candidate, "verdict": label_verdict(stage.verdict)}
            for name, stage in (decision.stages.items() if decision else ())
        ],
    }
    if decision and decision.next:
        body["status"]["next"] = format_instant(decision.next)
    return body


def _build_variant(policy_result: PolicyResult, entry: DecidedEntry) -> Plain:
    variant, decision, spec = entry.variant, entry.decision, entry.variant.spec
    request = find_request(variant.observed)
    body: Plain = {
        "apiVersion": API_VERSION,
        "kind": "PackageVariant",
        "metadata": {
            "name": spec.name,
            "namespace": spec.namespace,
            "labels": variant_labels(policy_result, variant),
            "annotations": dict(spec.annotations),
        },
        "spec": {
            "upstream": {"repository": spec.upstream_repository, "package": spec.upstream_package},
            "downstream": {"repository": spec.repository, "package": spec.path},
        },
        "status": {
            "target": spec.target,
            "targetName": entry.target_name,
            "state": decision.state.value,
            "candidate": decision.candidate,
            "conditions": dump_views(build_variant_conditions(policy_result, entry)),
            "conflicts": list(find_undecided_keys(variant, entry.undecided)),
            "checks": [
                {
                    "name": check.name,
                    "verdict": label_verdict(check.verdict),
                    "message": check.message,
                }
                for check in decision.checks
            ],
            **_list_packages(variant.observed),
            **({"request": dump_view(request)} if request is not None else {}),
        },
    }
    if policy_result.resolved_policy.upstream_policy is not None:
        body["spec"] |= {"policyRef": {"name": spec.policy}, "stage": spec.stage}
    return body


def _list_packages(observed: ObservedVariant) -> Plain:
    """Return what is published, what a move left behind, and the open draft."""
    packages: Plain = {}
    if (published := observed.published) is not None:
        packages["published"] = {
            "revision": published.revision,
            "digest": published.digest,
            "tree": published.tree,
            **({} if observed.is_unrecorded else {"at": format_instant(published.at)}),
            "commit": published.merge,
            "tag": published.tag,
            "outOfBand": published.out_of_band,
        }
    if observed.is_moving:
        home = observed.package_location
        packages["published"] |= {"repository": home.repository, "package": home.path}
    places = [leaving.location for leaving in observed.abandoned if not leaving.is_vacant]
    if places:
        packages["left"] = [{"repository": it.repository, "package": it.path} for it in places]
    if observed.draft is not None:
        packages["draft"] = {
            "branch": observed.draft_ref.removeprefix("refs/heads/"),
            "revision": observed.draft.trailers.revision,
            "tree": observed.draft.tree or "",
        }
    return packages


def build_variant_conditions(
    policy_result: PolicyResult, entry: DecidedEntry
) -> tuple[Condition, ...]:
    """Build the conditions of a variant: Ready, and those that are true beside it."""
    variant, decision = entry.variant, entry.decision
    hold = find_undrafted_hold(decision) or next(iter(decision.holds), None)
    published, state = variant.observed.published, decision.state.value
    message = f"it is {state}"
    if decision.state is VariantState.READY and published is not None:
        message = wording.describe_ready_variant(published.revision)
    conditions = [
        build_ready(
            hold.reason if hold else state,
            describe_hold(hold) if hold else message,
            is_ready=is_carried_out(decision),
        )
    ]
    for name, reason, text in _find_conditions(variant, entry.undecided):
        at = _find_condition_time(name, variant)
        conditions.append(Condition(name, ConditionStatus.TRUE, reason, text, at))
    return complete_conditions(conditions, policy_result, ready_since(variant, decision))


def _find_condition_time(name: str, variant: RenderedVariant) -> datetime | None:
    """Return the instant of what a true condition beside Ready is about, if it is on record."""
    draft = variant.observed.draft
    match name:
        case "MergeConflict" if draft is not None:
            return draft_time(draft)
        case "ConflictsDecided" if draft is None:
            return published_since(variant)
        case "OutOfBand":
            return published_since(variant)
        case _:
            return None


def _build_stage_conditions(
    policy_result: PolicyResult, stage: StageResult, conflicts: int
) -> tuple[Condition, ...]:
    """Return the condition Passed, about the candidate, and those that are true beside it."""
    hold = stage.holds[0] if stage.holds else None
    label = label_verdict(stage.verdict)
    message = f"{stage.candidate or 'no candidate'}: {label}"
    conditions = [
        Condition(
            "Passed",
            _STATUS_BY_VERDICT[stage.verdict],
            hold.reason if hold else label,
            describe_hold(hold) if hold else message,
        )
    ]
    if conflicts:
        message = wording.describe_stage_conflicts(conflicts)
        conditions.append(build_true(Reason.MERGE_CONFLICT, message))
    return complete_conditions(conditions, policy_result, verdict_since(policy_result, stage))


def _find_conditions(variant: RenderedVariant, undecided: int) -> Iterator[tuple[str, str, str]]:
    """Yield type, reason and message of each true condition beside Ready."""
    observed = variant.observed
    if observed.published is not None and observed.published.out_of_band:
        yield "OutOfBand", "OutOfBand", wording.MERGED_EARLY
    yield from build_conflict_conditions(variant, undecided)
    if observed.has_edits_in_force:
        yield "Edited", "EditedDownstream", describe_edits(observed)
    if observed.revert_hold is not None:
        yield "Reverted", observed.revert_hold.reason, observed.revert_hold.message
    for reason, sentence in _find_tag_problems(variant).items():
        yield reason, reason, sentence
    if leftover_draft := describe_leftover_draft(variant):
        yield "DraftLeft", Reason.DELETION_REFUSED, leftover_draft
    if observed.published_faults:
        yield "Broken", Reason.PACKAGE_BROKEN, describe_faults(observed)


def _find_tag_problems(variant: RenderedVariant) -> dict[str, str]:
    """Return problems of upstream tag and publication tag, one sentence per reason."""
    sentence_by_reason: dict[str, str] = {}
    if variant.observed.missing_tag:
        sentence_by_reason[Reason.TAG_MISSING] = describe_lost_tag(variant.observed)
    for reason, sentence in find_tag_problems(variant.observed):
        # Several tags may be missing, and a condition type may occur only once in a status.
        sentence_by_reason[reason] = "; ".join(
            filter(None, (sentence_by_reason.get(reason), sentence))
        )
    return sentence_by_reason


def _build_target(policy_result: PolicyResult, entry: DecidedEntry) -> TargetView:
    spec, decision = entry.variant.spec, entry.decision
    return TargetView(
        metadata=_build_target_meta(policy_result, spec.target, spec.stage, spec.repository),
        spec=TargetViewSpec(
            policy_name(policy_result),
            spec.target,
            entry.target_name,
            spec.name,
            spec.stage,
            spec.repository,
            spec.path,
        ),
        status=TargetViewStatus(
            decision.state.value,
            find_request(entry.variant.observed),
            build_variant_conditions(policy_result, entry),
            decision.holds,
        ),
    )


def _build_target_without_variant(
    policy_result: PolicyResult,
    target_names: Mapping[str, str],
    failure: TargetFailure,
    state: VariantState,
    location: tuple[str, str] = ("", ""),
    stage: str = "",
    removal_holds: Iterable[Hold] = (),
) -> TargetView:
    """Build the view of a target without a variant, or of an orphaned variant.

    `location`: repository and path of what remains of it; `stage`: its last recorded stage.
    """
    repository, path = location
    return TargetView(
        metadata=_build_target_meta(policy_result, failure.target, stage, repository),
        spec=TargetViewSpec(
            policy_name(policy_result),
            failure.target,
            target_names[failure.target],
            stage=stage,
            repository=repository,
            path=path,
        ),
        status=TargetViewStatus(
            state.value,
            conditions=complete_conditions(
                [build_ready(failure.reason, failure.problem)], policy_result
            ),
            holds=(Hold(failure.reason, failure.problem), *removal_holds),
        ),
    )


def _build_target_meta(
    policy_result: PolicyResult, target: str, stage: str, repository: str
) -> ViewMeta:
    labels = policy_result.resolved_policy.labels_by_target.get(target, {})
    return build_meta(
        policy_result, target, {**labels, **fanout_labels(policy_result, stage, repository)}
    )


def _build_draft_view(
    policy_result: PolicyResult, entry: DecidedEntry, draft: OpenDraft
) -> DraftView:
    variant, decision, spec = entry.variant, entry.decision, entry.variant.spec
    meta = build_meta(policy_result, spec.name, variant_labels(policy_result, variant))
    return DraftView(
        metadata=DraftMeta(meta.name, meta.namespace, meta.labels, draft_time(draft)),
        spec=DraftViewSpec(
            policy=policy_name(policy_result),
            target=spec.target,
            target_name=entry.target_name,
            variant=spec.name,
            stage=spec.stage,
            repository=spec.repository,
            path=spec.path,
            branch=variant.observed.draft_ref.removeprefix("refs/heads/"),
        ),
        status=DraftViewStatus(
            commit=draft.commit,
            tree=draft.tree or "",
            revision=draft.trailers.revision,
            digest=draft.trailers.digest,
            conflicts=entry.undecided,
            edited=draft.is_edited,
            current=variant.selected.has_current_draft,
            state=decision.state.value,
            request=find_request(variant.observed),
            conditions=build_variant_conditions(policy_result, entry),
            holds=decision.holds,
        ),
    )


def list_repositories(pass_plan: PassPlan, declared: DeclaredObjects) -> list[Plain]:
    """Return every Repository object with its listing result and variant count."""
    reports: dict[str, EnforcementReport] = {}
    # None: its listing brought no failure.
    failures: dict[str, FanoutError | None] = {}
    counts: Counter[str] = Counter()
    for policy_result in pass_plan.policies:
        upstream = policy_result.resolved_policy.upstream
        if upstream is not None:
            failures[repository_key(upstream)] = policy_result.upstream_failure
    # Failures of all upstreams come first: a variant's repository does not hide one of them.
    for policy_result in pass_plan.policies:
        refusals = find_refusals(policy_result)
        for variant in policy_result.variants:
            key = repository_key(policy_result.resolved_policy.repositories[variant.spec.name])
            counts[key] += 1
            if failures.get(key) is None:
                state = variant.observed.repository_state
                failures[key] = state.failure or refusals.get(state.identity)
            if key not in reports and (enforcement := report_enforcement([variant])):
                reports[key] = enforcement[0]
    bodies: list[Plain] = []
    for repository in declared.repositories:
        body: Plain = repository.model_dump(mode="json", by_alias=True, exclude_unset=True)
        key = repository_key(repository)
        body["status"] = {"variants": counts[key]}
        if key in failures:
            conditions = [build_ready(Reason.LISTED, wording.ANSWERED, is_ready=True)]
            if failure := failures[key]:
                conditions = [build_ready(failure.reason, str(failure))]
            if key in reports:
                conditions.append(reports[key].as_condition())
            body["status"]["conditions"] = dump_views(conditions)
        bodies.append(body)
    return bodies
