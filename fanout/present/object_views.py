"""Views that `fanout get` prints: stages, targets, drafts, conflicts, variants, repositories."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

from fanout.api.gate_vocabulary import ConflictWinner, VariantState
from fanout.api.object_meta import API_VERSION
from fanout.api.object_statuses import (
    ListedDraft,
    ListedPolicyStatus,
    ListedPublication,
    ListedRepositoryStatus,
    ListedStage,
    ListedVariantStatus,
    PackageLocation,
)
from fanout.api.output_views import (
    ConflictView,
    ConflictViewSpec,
    ConflictViewStatus,
    DraftView,
    DraftViewSpec,
    DraftViewStatus,
    StageView,
    StageViewSpec,
    TargetView,
    TargetViewSpec,
)
from fanout.api.results import Hold, VariantResult, build_ready
from fanout.api.view_base import DraftMeta, ViewMeta, dump_view
from fanout.declared.declared_objects import DeclaredObjects
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.edits.merge_disputes import (
    ConflictOutcome,
    read_draft_outcomes,
    read_published_outcomes,
)
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.records.policy_status import PublishedLine
from fanout.plan.rendered_variant import RenderedVariant
from fanout.present.conditions import (
    RepositoryReport,
    build_policy_conditions,
    build_repository_conditions,
    build_stage_conditions,
    build_variant_conditions,
    complete_conditions,
    find_failed_variants,
    summarize_repositories,
)
from fanout.present.policy_entry import (
    Plain,
    PolicyEntry,
    VariantEntry,
    build_meta,
    draft_time,
    fanout_labels,
    list_requests,
    policy_labels,
    policy_name,
    variant_labels,
    variant_names,
    walk_policy,
    walk_variants,
)
from fanout.reconcile.execution.removal_execution import find_places
from fanout.reconcile.pass_results import PassPlan, PolicyResult
from fanout.reconcile.selection.policy_resolution import repository_key, repository_place
from fanout.selection.target_selection import usable_repositories
from fanout.selection.variant_spec import TargetFailure
from fanout.values import replace


def list_stages(pass_plan: PassPlan) -> list[StageView]:
    """Return a StageView for every stage of every evaluated policy."""
    return [view for item in pass_plan.policies for view in build_stages(walk_policy(item))]


def build_stages(entry: PolicyEntry) -> list[StageView]:
    """Return a StageView for every stage of a policy; none if it was not evaluated."""
    item, policy = entry.result, entry.result.resolved_policy.name
    views: list[StageView] = []
    for stage in entry.stages:
        labels = {**policy_labels(item), **fanout_labels(item, stage.name)}
        name = f"{policy}/{stage.name}" if stage.name else policy
        view = StageView(
            metadata=build_meta(item, name, labels),
            spec=StageViewSpec(policy_name(item), stage.name),
            status=replace(
                stage.result,
                state=stage.state,
                published=stage.published,
                published_since=stage.published_since,
                conflicts=stage.conflicts,
                requests=list_requests(stage.variants),
                conditions=build_stage_conditions(stage),
            ),
        )
        views.append(view)
    return views


def list_targets(pass_plan: PassPlan, declared: DeclaredObjects) -> list[TargetView]:
    """Return a TargetView for every target, including failed ones and orphaned variants.

    An orphaned variant shows where its package or draft still is.
    """
    target_views: list[TargetView] = []
    for entry in map(walk_policy, pass_plan.policies):
        policy = entry.result.resolved_policy
        place_by_variant = dict(find_places(entry.result)) if entry.orphans else {}
        repository_by_name = usable_repositories(policy.namespace, declared.repositories)
        name_by_place = {
            repository_place(repository_by_name[name]): name
            for name in sorted(repository_by_name, reverse=True)  # of several the first
        }
        views: list[TargetView] = []
        for row in entry.rows:
            spec, shown = row.variant.spec, row.shown
            view = TargetView(
                metadata=_build_target_meta(row.policy, spec.target, spec.stage, spec.repository),
                spec=TargetViewSpec(**variant_names(row)),
                status=replace(
                    shown, request=row.request, conditions=build_variant_conditions(row)
                ),
            )
            views.append(view)
        views += [
            _build_target_without_variant(entry, it, VariantState.FAILED) for it in policy.failures
        ]
        for orphan in entry.orphans:
            place, path = place_by_variant.get(orphan.locations.name, ("", ""))
            orphan_view = _build_target_without_variant(
                entry,
                orphan.failure,
                VariantState.HELD,
                (name_by_place.get(place, place), path),
                orphan.locations.stage,
                orphan.holds,
            )
            views.append(orphan_view)
        positions = {it.name: position for position, it in enumerate(entry.result.rules)}
        target_views += sorted(views, key=lambda it: positions.get(it.spec.stage, len(positions)))
    return target_views


def list_drafts(pass_plan: PassPlan) -> list[DraftView]:
    """Return a DraftView for every open draft of a declared variant."""
    views: list[DraftView] = []
    for entry in walk_variants(pass_plan):
        variant, decision, spec = entry.variant, entry.shown, entry.variant.spec
        if (draft := variant.observed.draft) is None:
            continue
        view = DraftView(
            metadata=DraftMeta(spec.name, spec.namespace, variant_labels(entry), draft_time(draft)),
            spec=DraftViewSpec(**variant_names(entry), branch=entry.draft_branch),
            status=DraftViewStatus(
                commit=draft.commit,
                tree=draft.tree or "",
                revision=draft.trailers.revision,
                digest=draft.trailers.digest,
                conflicts=entry.undecided,
                edited=draft.is_edited,
                current=variant.selected.has_current_draft,
                state=decision.state,
                request=entry.request,
                conditions=build_variant_conditions(entry),
                holds=decision.holds,
            ),
        )
        views.append(view)
    return views


def list_variants(pass_plan: PassPlan) -> list[Plain]:
    """Return every variant as a PackageVariant object with its status."""
    bodies: list[Plain] = []
    for entry in walk_variants(pass_plan):
        variant, decision, spec = entry.variant, entry.shown, entry.variant.spec
        observed, draft, published = variant.observed, variant.observed.draft, None
        locations = [it.location for it in observed.abandoned if not it.is_vacant]
        if (line := observed.published) is not None:
            home = observed.package_location if observed.is_moving else None
            published = ListedPublication(
                revision=line.revision,
                digest=line.digest,
                tree=line.tree,
                at=entry.published_since,
                commit=line.merge,
                tag=line.tag,
                out_of_band=line.out_of_band,
                repository=home.repository if home is not None else None,
                package=home.path if home is not None else None,
            )
        status = ListedVariantStatus(
            target=spec.target,
            target_name=entry.target_name,
            state=decision.state,
            candidate=decision.candidate,
            conditions=build_variant_conditions(entry),
            conflicts=find_undecided_keys(variant, entry.undecided),
            checks=decision.checks,
            published=published,
            left=tuple(PackageLocation(it.repository, it.path) for it in locations) or None,
            draft=ListedDraft(draft.trailers.revision, draft.tree or "", branch=entry.draft_branch)
            if draft is not None
            else None,
            request=entry.request,
        )
        body: Plain = {
            "apiVersion": API_VERSION,
            "kind": "PackageVariant",
            "metadata": {
                "name": spec.name,
                "namespace": spec.namespace,
                "labels": variant_labels(entry),
                "annotations": dict(spec.annotations),
            },
            "spec": {
                "upstream": {
                    "repository": spec.upstream_repository,
                    "package": spec.upstream_package,
                },
                "downstream": {"repository": spec.repository, "package": spec.path},
            },
            "status": dump_view(status),
        }
        if entry.policy.resolved_policy.upstream_policy is not None:
            body["spec"] |= {"policyRef": {"name": spec.policy}, "stage": spec.stage}
        bodies.append(body)
    return bodies


def list_policies(pass_plan: PassPlan) -> list[Plain]:
    """Return every UpstreamPolicy object with its status."""
    bodies: list[Plain] = []
    for item in pass_plan.policies:
        policy, decision = item.resolved_policy.upstream_policy, item.decision
        if policy is None:
            continue
        entry, observed = walk_policy(item), [it.observed for it in item.variants]
        status = ListedPolicyStatus(
            observed_generation=policy.metadata.generation or 0,
            conditions=build_policy_conditions(entry),
            variants=len(observed),
            failed_targets=len(item.resolved_policy.failures),
            failed_variants=len(find_failed_variants(item)),
            gone_variants=len(entry.orphans),
            edited_variants=sum(it.has_edits_in_force for it in observed),
            conflicts=sum(it.undecided for it in entry.variants),
            broken_variants=sum(bool(it.published_faults) for it in observed),
            stages=tuple(
                ListedStage(it.name, it.result.candidate, it.result.verdict) for it in entry.stages
            ),
            next=decision.next if decision else None,
        )
        body: Plain = policy.model_dump(mode="json", by_alias=True, exclude_unset=True)
        bodies.append({**body, "status": dump_view(status)})
    return bodies


def _build_target_without_variant(
    entry: PolicyEntry,
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
        metadata=_build_target_meta(entry.result, failure.target, stage, repository),
        spec=TargetViewSpec(
            policy_name(entry.result),
            failure.target,
            entry.target_names[failure.target],
            stage=stage,
            repository=repository,
            path=path,
        ),
        status=VariantResult(
            state=state,
            conditions=complete_conditions(
                [build_ready(failure.reason, failure.problem)], entry.result
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


def list_repositories(pass_plan: PassPlan, declared: DeclaredObjects) -> list[Plain]:
    """Return every Repository object with its listing result and variant count."""
    counts: Counter[str] = Counter()
    uses: dict[str, list[RepositoryReport]] = {}
    for policy_result in pass_plan.policies:
        policy = policy_result.resolved_policy
        counts.update(
            repository_key(policy.repositories[it.spec.name]) for it in policy_result.variants
        )
        if policy.upstream is not None:
            # One that was not listed is an upstream all the same, and comes before the failures of
            # variants: a repository to publish to does not hide one of them.
            report = RepositoryReport(policy_result.upstream_failure)
            uses.setdefault(repository_key(policy.upstream), []).insert(0, report)
        for key, report in summarize_repositories(policy_result).items():
            uses.setdefault(key, []).append(report)
    bodies: list[Plain] = []
    for repository in declared.repositories:
        body: Plain = repository.model_dump(mode="json", by_alias=True, exclude_unset=True)
        key = repository_key(repository)
        reports = uses.get(key, ())
        # A list shows what is not enforced beside a failure, too.
        conditions = build_repository_conditions(reports)[:1]
        conditions += [it.enforcement.as_condition() for it in reports if it.enforcement][:1]
        status = ListedRepositoryStatus(counts[key], tuple(conditions) if reports else None)
        bodies.append({**body, "status": dump_view(status)})
    return bodies


_LABELS: Mapping[ConflictWinner, Literal["Upstream", "Local"]] = {
    ConflictWinner.UPSTREAM: "Upstream",
    ConflictWinner.LOCAL: "Local",
}


def list_conflicts(pass_plan: PassPlan) -> list[ConflictView]:
    """Return a ConflictView for every merge conflict of open drafts and of what is published.

    Of a conflict that both have at the same revision, the draft's is listed: it comes later.
    """
    views: list[ConflictView] = []
    for entry in walk_variants(pass_plan):
        observed = entry.variant.observed
        draft, published = find_release_draft(entry.variant), observed.published
        drafted: set[tuple[str, str]] = set()
        if draft is not None:
            for outcome in read_draft_outcomes(draft, observed.choices, entry.undecided):
                drafted.add((draft.trailers.revision, outcome.key))
                views.append(_build_view(entry, outcome, draft))
        if published is not None:
            views += [
                _build_view(entry, outcome, published)
                for outcome in read_published_outcomes(published.rejected)
                if (published.revision, outcome.key) not in drafted
            ]
    return views


def find_undecided_keys(variant: RenderedVariant, undecided: int) -> tuple[str, ...]:
    """Return the keys of the conflicts that hold the variant's draft; `undecided`: their number."""
    draft = find_release_draft(variant) if undecided else None
    if draft is None:
        return ()
    outcomes = read_draft_outcomes(draft, variant.observed.choices, undecided)
    return tuple(it.key for it in outcomes if not it.is_decided)


def _build_view(
    entry: VariantEntry, outcome: ConflictOutcome, source: OpenDraft | PublishedLine
) -> ConflictView:
    spec = entry.variant.spec
    if isinstance(source, OpenDraft):
        revision, since = source.trailers.revision, draft_time(source)
    else:
        # A publication that is not on record yet has the time of this pass.
        revision, since = source.revision, entry.published_since
    name = f"{spec.name}/{revision}/{outcome.key}"
    return ConflictView(
        metadata=ViewMeta(name, spec.namespace, variant_labels(entry)),
        spec=ConflictViewSpec(
            **variant_names(entry),
            key=outcome.key,
            file=outcome.file,
            object=outcome.object,
            field=outcome.field_path,
        ),
        status=ConflictViewStatus(
            place="Draft" if isinstance(source, OpenDraft) else "Published",
            revision=revision,
            in_force="Edited" if outcome.is_edited else _LABELS[outcome.winner],
            decided=outcome.is_decided,
            base=outcome.values.get("base"),
            upstream=outcome.values.get("upstream"),
            local=outcome.values.get("local"),
            since=since,
            message=outcome.line,
        ),
    )
