"""Actions and recorded status of one policy, computed from the steps of its variants.

Pure: the same steps give the same plan, byte for byte.
"""

from collections.abc import Iterable, Mapping, Sequence

from fanout.gates.record_facts import RecordPosition
from fanout.gates.revision_history import RevisionHistory
from fanout.plan.actions import ActionKind, Plan, PlanAction, RequestChange
from fanout.plan.changes.next_drafts import find_release_draft
from fanout.plan.changes.package_removal import removal_actions
from fanout.plan.changes.planned_sets import PolicyCleanup, set_actions
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.edits.merge_disputes import limit_lines, rejected_lines_of_draft
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.records.policy_status import (
    GrantLine,
    PreviousGrantLine,
    PreviousLocationLine,
    PublishedLine,
    RecordedStatus,
    VariantLine,
)
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.path_collisions import PackagePlace
from fanout.values import Value, field, replace

_ACTION_KINDS = {
    VariantStep.WRITE: ActionKind.WRITE_DRAFT,
    VariantStep.PUBLISH: ActionKind.PUBLISH,
    VariantStep.REMOVE: ActionKind.REMOVE_DRAFT,
}
_STEPS_OF_DRAFTS = (VariantStep.KEEP, VariantStep.WRITE, VariantStep.REMOVE)


class PolicyPlan(Value, kw_only=True):
    """Steps and actions of one policy, with its recorded status before and after them."""

    namespace: str
    name: str
    steps: tuple[DecidedVariant, ...]
    actions: tuple[PlanAction, ...]
    recorded: RecordedStatus
    planned: RecordedStatus  # status with the releases, recorded before any push
    # lines by variant, recorded after its push
    published: Mapping[str, VariantLine] = field(default_factory=dict)
    cleanup: PolicyCleanup = PolicyCleanup()
    request_changes: tuple[RequestChange, ...] = ()  # calls about its pull requests
    warnings: tuple[str, ...] = ()  # of templates of its pull requests


def plan_policy(
    namespace: str,
    name: str,
    steps: Sequence[DecidedVariant],
    recorded: RecordedStatus,
    history: Mapping[tuple[str, str], RevisionHistory],
    moment: RecordPosition,
    cleanup: PolicyCleanup,
) -> PolicyPlan:
    """Compute the actions of one policy and the status to record.

    `steps` are in the order of variants; `history` is keyed by (stage, revision) and is the
    one to record; `moment` has the time of the pass and the newest records.
    """
    lines, published, actions = _plan_variants(steps, recorded, moment)
    for removal in cleanup.removals:
        actions += removal_actions(removal)
    for planned_set in cleanup.sets:
        actions += set_actions(planned_set)
    record_action = build_record_action(namespace, name, steps)
    # Repositories that are forgotten or rediscovered.
    details = [f"that nothing of it is left in {it}" for it in sorted(cleanup.emptied)]
    details += ["that its records start empty"] if cleanup.rediscovered else []
    actions += [replace(record_action, detail=detail) for detail in details]
    # A repository stays on record until nothing of the policy is left in it:
    # otherwise drafts would be forgotten when the targets change to another
    # repository.
    written = {
        planned.rendered.observed.repository_state.identity
        for planned in steps
        if planned.step is VariantStep.WRITE
    }
    draft_repositories = (
        recorded.draft_repositories | written | cleanup.rediscovered
    ) - cleanup.emptied
    # A package that a pull request takes off the branch is removed when the branch is without it.
    due = {it.variant: it.due for it in cleanup.removals if it.due and not it.awaits_review}
    removed = {**recorded.removed, **due}
    # The commit of every revision in use, to detect tags that move.
    used_revisions = {
        planned.rendered.selected.revision: planned.rendered.selected.upstream_commit
        for planned in steps
        if planned.step in (VariantStep.WRITE, VariantStep.PUBLISH, VariantStep.ADOPT)
    }
    planned_status = replace(
        recorded,
        variants=lines,
        history=history,
        revisions={**recorded.revisions, **used_revisions},
        draft_repositories=draft_repositories,
        removed=removed,
    )
    # A variant written by hand is a stage of its own.
    for key in sorted(recorded.history.keys() | history.keys()):
        past, present = recorded.history.get(key), history.get(key)
        if past == present:
            continue
        stage, revision = key
        subject = f"variant {record_action.variant}" if record_action.variant else f"stage {stage}"
        is_past = present is not None and present.left is not None
        detail = (
            f"that {subject} has {'moved on from' if is_past else 'passed'} {revision}"
            if present is not None and present.passed is not None
            else f"that {subject} does not pass {revision} any more"
        )
        stage_name = "" if record_action.variant else stage
        actions.append(replace(record_action, stage=stage_name, revision=revision, detail=detail))
    return PolicyPlan(
        namespace=namespace,
        name=name,
        steps=tuple(steps),
        actions=tuple(actions),
        recorded=recorded,
        planned=planned_status,
        published=published,
        cleanup=cleanup,
    )


def sort_actions(plan: PolicyPlan, stages: Sequence[str]) -> PolicyPlan:
    """Return the plan with its actions by kind, stage in the order of the policy, and variant."""
    kinds = list(ActionKind)
    positions = {name: position for position, name in enumerate(stages)}

    # By what alone identifies an action: a saved plan is compared byte for byte.
    def key(action: PlanAction) -> tuple[int, int, str, str, str]:
        # What is in no stage comes first.
        position = positions.get(action.stage, -1)
        return kinds.index(action.kind), position, action.stage, action.variant, action.ref

    return replace(plan, actions=tuple(sorted(plan.actions, key=key)))


def _plan_variants(
    steps: Sequence[DecidedVariant], recorded_status: RecordedStatus, moment: RecordPosition
) -> tuple[dict[str, VariantLine], dict[str, VariantLine], list[PlanAction]]:
    # Lines before the push, and those after it.
    lines = dict(recorded_status.variants)
    new_places = frozenset(
        (planned_step.rendered.observed.repository_state.identity, planned_step.rendered.spec.path)
        for planned_step in steps
        if planned_step.step is VariantStep.PUBLISH or planned_step.rendered.observed.is_unrecorded
    )
    published: dict[str, VariantLine] = {}
    actions: list[PlanAction] = []
    for planned in steps:
        variant = planned.rendered
        name = variant.spec.name
        recorded = recorded_status.variants.get(name)
        status_line = variant.observed.status_line
        needs_record = (
            planned.step not in _STEPS_OF_DRAFTS
            or variant.observed.is_unrecorded
            or status_line.grant
            or status_line.published
            or status_line.left
            or status_line.answers
            or planned.release
            or planned.answers
        )
        # A draft's branch has all data about it. Without this, every first draft of a
        # large fleet would cost a line in the records.
        if recorded is None and not needs_record:
            if planned.step is not VariantStep.KEEP:
                actions += _step_actions(planned)
            continue
        if (line := _line_before_push(planned, moment)) is not recorded:
            recorded = recorded or VariantLine(
                repository=variant.observed.repository_state.identity,
                path=variant.spec.path,
                orphan=line.orphan,
            )
            # Differences that no other action reports.
            answered = {(it.check, it.digest) for it in line.answers}
            details = [
                f"that check {it.check} of {name} has {it.verdict.value}"
                for it in line.answers
                if it not in recorded.answers
            ]
            details += [
                f"that check {it.check} of {name} must be answered again"
                for it in recorded.answers
                if (it.check, it.digest) not in answered
            ]
            publication, before = status_line.published, recorded.published
            if publication is not None and (publication.tag or publication.merge):
                is_recorded = before is not None and (
                    publication.tag == before.tag
                    if publication.tag
                    else publication.merge == before.merge
                )
                if not is_recorded:  # but read from the repository
                    witness = "its tag" if publication.tag else "the vendor branch"
                    revision = publication.revision
                    details.append(f"that {name} is published at {revision}, as {witness} shows")
            if line.place != recorded.place:
                location = f"{variant.spec.repository}:{variant.spec.path}"
                details.append(f"that {name} is at {location}, no longer at {recorded.path}")
            if line.orphan != recorded.orphan:
                details.append(f"the deletionPolicy of {name}")
            if recorded.stage not in ("", line.stage):
                stage = f"stage {line.stage}" if line.stage else "no stage"
                details.append(f"that {name} is in {stage} now")
            # A stage alone is no reason to write a line. Lines of older versions have none,
            # and the first pass of a new version would rewrite all of them.
            if details or replace(line, stage=recorded.stage) != recorded:
                lines[name] = line
            actions += [_build_action(ActionKind.RECORD, variant, detail) for detail in details]
        if planned.step is VariantStep.PUBLISH or variant.observed.is_unrecorded:
            published[name] = _line_after_push(line, planned, new_places, moment)
        actions += _step_actions(planned)
    return lines, published, actions


def build_record_action(namespace: str, name: str, steps: Sequence[DecidedVariant]) -> PlanAction:
    """Return a record action of the policy, or of the variant written by hand, without detail."""
    is_hand_written = any(not planned.rendered.spec.policy for planned in steps)
    policy, variant = ("", name) if is_hand_written else (name, "")
    return PlanAction(kind=ActionKind.RECORD, namespace=namespace, policy=policy, variant=variant)


def join_plans(plans: Iterable[PolicyPlan], further_actions: Iterable[PlanAction] = ()) -> Plan:
    """Join the actions of all policies of a pass, and those of no policy, into one plan."""
    return Plan((*(action for plan in plans for action in plan.actions), *further_actions))


def _line_before_push(planned: DecidedVariant, moment: RecordPosition) -> VariantLine:
    variant, line = planned.rendered, planned.rendered.observed.status_line
    if line.stage != variant.spec.stage:
        line = replace(line, stage=variant.spec.stage)
    if planned.step is VariantStep.ADOPT:
        # Of changed inputs that render to the published bytes.
        inputs, content, observed = variant.selected.inputs, variant.draft_content, variant.observed
        assert inputs is not None, "a rendered variant has inputs"
        assert content is not None, "an adopted variant is rendered"
        assert variant.rendering is not None, "an adopted variant is rendered"
        # A reverted publication is not in force any more, so its clocks do not go on.
        last = observed.published if observed.reverted_publication is None else None
        revision = variant.selected.revision
        same_revision = last is not None and last.revision == revision
        published = PublishedLine(
            revision=revision,
            commit=variant.selected.upstream_commit,
            digest=inputs.digest,
            tree=content.tree,
            at=last.at if last and same_revision else moment.now,
            merge=last.merge if last else observed.repository_state.head,
            tag=last.tag if last else "",
            out_of_band=last is not None and same_revision and last.out_of_band,
            pristine=variant.rendering.tree,
            reads=inputs.object_versions,
            heard=last.heard if last and same_revision else moment.last_evidence,
            since=last.in_force_since(revision) if last else None,
            rejected=last.rejected if last and same_revision else (),
            waiting=last.waiting if last else (),
        )
        line = replace(line, grant=None, published=published)
    if planned.release:
        draft, former = find_release_draft(variant), variant.observed.status_line.grant
        assert draft is not None, "only a draft is released"
        place = (variant.observed.repository_state.identity, variant.spec.path)
        grant = GrantLine(
            revision=draft.trailers.revision,
            commit=draft.trailers.commit,
            digest=draft.trailers.digest,
            tree=draft.tree or "",
            at=moment.now,
            by=planned.evaluation.released_by if planned.evaluation else (),
            reads=_draft_reads(variant, draft),
            rejected=limit_lines(rejected_lines_of_draft(draft)),
            records=moment.last_record,
            since=(former.since or former.at)
            if former is not None and former.revision == draft.trailers.revision
            else None,
        )
        if variant.observed.status_line.place != place:
            grant = replace(grant, repository=place[0], path=place[1])
        # Without a push there is no earlier draft that people could still merge.
        previous, rendering = None, variant.observed.drafted_rendering
        if (
            planned.step is VariantStep.WRITE
            and former is not None
            and rendering is not None
            and former.tree != grant.tree
            and variant.observed.status_line.granted_place == place
        ):
            previous = PreviousGrantLine(grant=former, rendering=rendering)
        line = replace(line, grant=grant, previous_grant=previous)
    return line if line.answers == planned.answers else replace(line, answers=planned.answers)


def _draft_reads(variant: RenderedVariant, draft: OpenDraft) -> Mapping[str, str]:
    """Return the cluster objects that the draft depends on; known only if it is current."""
    is_current = variant.selected.has_current_draft or not draft.commit
    if variant.selected.inputs is None or not is_current:
        return {}
    return variant.selected.inputs.object_versions


def _line_after_push(
    line: VariantLine,
    planned: DecidedVariant,
    new_places: frozenset[PackagePlace],
    moment: RecordPosition,
) -> VariantLine:
    """Return the variant's line with its publication, remembering the places it has left.

    A place in `new_places`, taken by another variant in the same push, is not remembered:
    the package of this variant is not there any more. The merge commit of a publication that is
    made is filled in after the push.
    """
    variant = planned.rendered
    published, recorded = variant.observed.published, variant.observed.status_line.published
    if planned.step is VariantStep.PUBLISH:
        draft = variant.observed.draft
        assert draft is not None, "only a standing draft is published"
        published = PublishedLine(
            revision=draft.trailers.revision,
            commit=draft.trailers.commit,
            digest=draft.trailers.digest,
            tree=draft.tree or "",
            at=moment.now,
            pristine=draft.trailers.rendered,
            reads=_draft_reads(variant, draft),
            heard=moment.last_evidence,
            since=published.in_force_since(draft.trailers.revision) if published else None,
            rejected=limit_lines(rejected_lines_of_draft(draft)),
            waiting=planned.evaluation.waiting if planned.evaluation else (),
        )
    elif published is not None:
        since = recorded.in_force_since(published.revision) if recorded is not None else None
        published = replace(
            published, reads=variant.selected.cluster_reads, heard=moment.last_evidence, since=since
        )
    abandoned = [place for place in line.left if place.place not in new_places]
    previous = variant.observed.previous
    if (
        previous is not None
        and line.place not in new_places
        and previous.path_state.tree is not None
    ):
        # The tree that the draft was written onto. An edit made at the old place since
        # then is not in it, and must keep the old package from being removed.
        taken_tree = (
            variant.observed.draft.trailers.onto
            if variant.observed.draft is not None
            else previous.path_state.tree
        )
        place, last = (previous.repository_state.identity, previous.path), line.published
        is_there = last is not None and line.place == place
        tag, merge = (last.tag, last.merge) if last is not None and is_there else ("", "")
        abandoned.append(PreviousLocationLine(*place, taken_tree, tag, merge))
    return VariantLine(
        repository=variant.observed.repository_state.identity,
        path=variant.spec.path,
        published=published,
        left=tuple(abandoned),
        orphan=line.orphan,
        stage=variant.spec.stage,
    )


def _step_actions(planned: DecidedVariant) -> list[PlanAction]:
    variant, step = planned.rendered, planned.step
    actions = [_build_action(ActionKind.RELEASE, variant)] if planned.release else []
    if step in _ACTION_KINDS:
        reason = ""
        if step is VariantStep.REMOVE and variant.selected.is_in_force:
            reason = "what it proposes is published already"
        elif step is VariantStep.REMOVE:
            reason = "it is not released any more"
        actions.append(_build_action(_ACTION_KINDS[step], variant, reason))
    if variant.observed.is_unrecorded and variant.observed.published is not None:
        detail = f"that {variant.spec.name} is published at {variant.observed.published.revision}"
        actions.append(_build_action(ActionKind.RECORD, variant, detail))
    elif step is VariantStep.ADOPT:
        revision = variant.selected.revision
        detail = f"that {variant.spec.name} is at {revision} with its present inputs already"
        actions.append(_build_action(ActionKind.RECORD, variant, detail))
    has_merged_draft = variant.observed.draft is not None and not variant.observed.keeps_draft
    if has_merged_draft and step in (VariantStep.SETTLE, VariantStep.ADOPT):
        detail = "its content is on the branch"
        actions.append(_build_action(ActionKind.REMOVE_DRAFT, variant, detail))
    return actions


def _build_action(kind: ActionKind, variant: RenderedVariant, detail: str = "") -> PlanAction:
    spec, draft = variant.spec, variant.observed.draft
    return PlanAction(
        kind=kind,
        namespace=spec.namespace,
        policy=spec.policy,
        stage=spec.stage,
        variant=spec.name,
        repository=spec.repository,
        path=spec.path,
        revision=variant.selected.revision,
        digest=variant.selected.inputs.digest if variant.selected.inputs else "",
        tree=variant.draft_content.tree
        if variant.draft_content
        else (draft.tree or "" if draft else ""),
        ref=variant.observed.draft_ref if kind is not ActionKind.RECORD else "",
        expected=draft.commit if draft and kind is not ActionKind.RECORD else "",
        detail=detail,
    )
