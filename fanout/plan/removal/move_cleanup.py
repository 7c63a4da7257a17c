"""Cleanup after moves, and moves that have to wait for one another.

A draft at the old place is removed when nothing of it can be lost; the old package when
the variant is ready at its new place and automation may act there (design §6: "the old
path goes when the new one is ready"; "the automation switch binds it"). Variants that
exchange places move in one push, so each is somewhere at any time. A draft in another
repository whose commits the new draft has taken is removed before that is published:
its branch is the only sign that they are in it.
"""

from collections.abc import Iterator, Mapping, Sequence

from fanout.api.commit_trailers import Trailer
from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.gate_wording import NEXT_SWEEP, REMOVAL_SWEEP_AWAITED
from fanout.plan.actions import ActionKind, PlanAction
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.moves.move_locations import AbandonedLocation, MisplacedDraft
from fanout.plan.observation.repository_state import ObservedPath, OpenDraft, PublicationMerge
from fanout.plan.observed_variant import missing_branch_hold
from fanout.plan.records.policy_status import PreviousLocationLine
from fanout.plan.removal.removal_drafts import (
    BRANCH_REASONS,
    DraftedRemoval,
    RemovalDraftPlan,
    describe_removing,
    is_reviewed,
)
from fanout.plan.removal.removal_plan import VariantRemoval
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value, field, replace


class CleanupItem(ObservedPath, kw_only=True):
    """One draft or package to remove from a place where the variant was, or was to be."""

    spec: VariantSpec
    open_draft: OpenDraft | None = None
    left_place: PreviousLocationLine | None = None
    # the package leaves the branch; else it stays, or is gone already
    removes_package: bool = False
    # so does its pristine rendering; else that is somebody else's by now
    drops_rendering: bool = False


class PolicyCleanup(Value):
    """Cleanup of one policy after moves and removals.

    `emptied` and `rediscovered` are the repositories that the policy stops, or starts again, to
    observe.
    """

    items: tuple[CleanupItem, ...] = ()
    removals: tuple[VariantRemoval, ...] = ()
    emptied: frozenset[str] = frozenset()
    rediscovered: frozenset[str] = frozenset()  # after records were lost
    removal_drafts: tuple[RemovalDraftPlan, ...] = ()  # those there are, and those written


class CleanupPermission(Value, kw_only=True):
    """Permission to remove a variant's old package: readiness, automation and windows."""

    is_publishing: bool = True  # False: the pass only updates drafts
    is_ready: bool = False
    is_automatic: bool = False
    automation_acts: bool = True  # automation acts in this pass
    window_hold: Hold | None = None  # closed windows
    keeps_package: bool = False  # the package stays, unmanaged
    # A person's decision since the move: edited trees that may go; None: there is none.
    confirmed_trees: frozenset[str] | None = None
    needs_approvals: bool = False  # the variant's stage requires approvals of a change
    # Of branches that remove packages, because of what people did with them, or have yet to do.
    review_holds: Mapping[PackagePlace, Hold] = field(default_factory=dict)


def cleanup_items(planned: DecidedVariant, permission: CleanupPermission) -> Iterator[CleanupItem]:
    """Yield what this pass removes for one variant that moved."""
    variant = planned.rendered
    # While the variant's own place cannot be used, nothing shows what has arrived
    # there.
    if variant.observed.obstacle is not None:
        return
    for misplaced in variant.observed.misplaced_drafts:
        if _is_edit_kept(planned, misplaced):
            yield CleanupItem(
                spec=variant.spec,
                repository_state=misplaced.repository_state,
                repository=misplaced.repository,
                path=misplaced.path,
                open_draft=misplaced.draft,
            )
    is_automatic = (
        permission.is_automatic and permission.automation_acts and permission.window_hold is None
    )
    for abandoned in variant.observed.abandoned:
        if not abandoned.location.repository_state.head:
            continue  # its package may be on a branch of another name
        # An edit made after the move is not at the new place and would be lost.
        may_remove = abandoned.is_vacant or (
            permission.is_ready and is_automatic and not abandoned.is_edited
        )
        if permission.is_publishing and may_remove and not _moves_back(variant, abandoned):
            location = abandoned.location
            removes_package = not abandoned.is_vacant and not permission.keeps_package
            if removes_package and _is_reviewed(abandoned, permission):
                continue  # by a branch, and settled when that is merged
            yield CleanupItem(
                spec=variant.spec,
                repository_state=location.repository_state,
                repository=location.repository,
                path=location.path,
                left_place=abandoned.left_place,
                removes_package=removes_package,
                drops_rendering=not abandoned.has_other_owner,
            )


def _is_edit_kept(planned: DecidedVariant, misplaced: MisplacedDraft) -> bool:
    """Return whether the edits in the misplaced draft are in the draft at the new place.

    Two repositories are two pushes, either of which may fail; so a draft that takes over
    commits of another repository must be seen there first.
    """
    variant = planned.rendered
    if planned.step is VariantStep.WRITE:
        return (
            not misplaced.draft.has_edits
            or misplaced.repository_state.identity == variant.observed.repository_state.identity
        )
    if variant.observed.draft is not None:
        return misplaced.is_contained_in(variant.observed.draft)
    return variant.selected.is_in_force and not misplaced.draft.has_edits


def _moves_back(variant: RenderedVariant, abandoned: AbandonedLocation) -> bool:
    return abandoned.left_place.place == (
        variant.observed.repository_state.identity,
        variant.spec.path,
    )


def _is_reviewed(abandoned: AbandonedLocation, permission: CleanupPermission) -> bool:
    state = abandoned.location.repository_state
    return is_reviewed(state, needs_approvals=permission.needs_approvals)


def drafted_leftovers(
    planned: DecidedVariant, permission: CleanupPermission
) -> Iterator[DraftedRemoval]:
    """Yield the old packages of one variant that go by a branch which people review.

    One with a hold stays on a branch that removes it already.
    """
    variant = planned.rendered
    is_confirmed = permission.confirmed_trees is not None
    # A PromotionPolicy that cannot be read switches automation off, and closes the window.
    is_wanted = permission.is_automatic or is_confirmed or permission.window_hold is not None
    if variant.observed.obstacle is not None or permission.keeps_package or not is_wanted:
        return
    for abandoned in variant.observed.abandoned:
        tree = abandoned.location.path_state.tree
        if (
            not _is_reviewed(abandoned, permission)
            or abandoned.is_vacant
            or tree is None
            or _moves_back(variant, abandoned)
            or (abandoned.is_edited and tree not in (permission.confirmed_trees or ()))
        ):
            continue
        removal = draft_leftover(variant.spec, abandoned)
        yield replace(removal, hold=_leftover_hold(variant, abandoned, permission))


def draft_leftover(spec: VariantSpec, abandoned: AbandonedLocation) -> DraftedRemoval:
    """Return the removal by a branch of an old package, which is there."""
    location = abandoned.location
    return DraftedRemoval(
        variant=spec.name,
        stage=spec.stage,
        repository=location.repository,
        repository_state=location.repository_state,
        path=location.path,
        tree=location.path_state.tree or "",
        reason=f"its variant is {spec.path} in {spec.repository} now",
    )


def _leftover_hold(
    variant: RenderedVariant, abandoned: AbandonedLocation, permission: CleanupPermission
) -> Hold | None:
    """Return why an old package does not join a branch in this pass, or None."""
    review_hold = permission.review_holds.get(abandoned.left_place.place)
    if review_hold is not None and review_hold.reason not in BRANCH_REASONS:
        return review_hold
    is_confirmed = permission.confirmed_trees is not None
    if permission.window_hold is not None:
        return permission.window_hold
    if not permission.is_ready and not is_confirmed:
        name = variant.spec.name
        sentence = f"{abandoned.location.path} is removed when {name} is ready at its new path"
        return Hold(Reason.PLACE_LEFT, sentence)
    if not permission.is_publishing or not (permission.automation_acts or is_confirmed):
        return Hold(Reason.SWEEP_AWAITED, REMOVAL_SWEEP_AWAITED, NEXT_SWEEP)
    return None


def remaining_holds(variant: RenderedVariant, permission: CleanupPermission) -> Iterator[Hold]:
    """Yield a hold with its remedy for each old package that is not removed."""
    spec = variant.spec
    command = " ".join(word for word in ("fanout remove", spec.policy, spec.name) if word)
    for abandoned in variant.observed.abandoned:
        location = f"{abandoned.location.repository}:{abandoned.location.path}"
        state = abandoned.location.repository_state
        if not state.head and not _moves_back(variant, abandoned):
            yield missing_branch_hold(state, abandoned.location.repository, is_published=True)
            continue
        if abandoned.is_vacant or _moves_back(variant, abandoned):
            continue
        removing = (
            describe_removing(state, it.ref)
            for it in state.removal_sets
            if abandoned.location.path in it.removed_trees
        )
        branch = next(removing, "")
        review_hold = permission.review_holds.get(abandoned.left_place.place)
        if review_hold is not None:
            yield review_hold
        elif branch:
            sentence = f"{location} goes with {branch}"
            yield Hold(Reason.PLACE_LEFT, sentence)
        elif abandoned.is_edited:
            present_location = variant.observed.package_location
            sentence = (
                f"the former path {location} was edited: copy the edits to"
                f" {present_location.repository}:{present_location.path}, then run `{command}"
                " --edited --reason WHY`"
            )
            yield Hold(Reason.EDITED_DOWNSTREAM, sentence)
        elif permission.is_ready and not permission.is_automatic:
            sentence = (
                f"the former path {location} still exists and automatic promotion is off: run"
                f" `{command} --reason WHY`"
            )
            yield Hold(Reason.PLACE_LEFT, sentence)
        elif permission.is_ready and (window_hold := permission.window_hold) is not None:
            message = f"the former path {location} still exists: {window_hold.message}"
            yield replace(window_hold, message=message)


def cleanup_actions(item: CleanupItem) -> Iterator[PlanAction]:
    """Yield the actions of one cleanup item."""
    spec, draft, left_place = item.spec, item.open_draft, item.left_place
    common = {
        "namespace": spec.namespace,
        "policy": spec.policy,
        "stage": spec.stage,
        "variant": spec.name,
        "repository": item.repository,
        "path": item.path,
    }
    detail = f"the path of {spec.name} is {spec.repository}:{spec.path} now"
    if draft is not None:
        yield PlanAction(
            kind=ActionKind.REMOVE_DRAFT,
            **common,
            ref=draft.ref,
            expected=draft.commit,
            detail=detail,
        )
    if left_place is not None and item.removes_package:
        yield PlanAction(
            kind=ActionKind.REMOVE_PACKAGE, **common, tree=left_place.tree, detail=detail
        )
    elif left_place is not None:
        detail = f"that {spec.name} has left {item.repository}:{item.path}"
        yield PlanAction(kind=ActionKind.RECORD, **common, detail=detail)


def cleanup_commit(items: Sequence[CleanupItem]) -> PublicationMerge | None:
    """Return the commit that removes old packages from one branch, or None.

    Its message names the new place of each.
    """
    removed = sorted((it for it in items if it.removes_package), key=lambda it: it.path)
    if not removed:
        return None
    first = removed[0]
    subject = f"Remove {first.path}" if len(removed) == 1 else f"Remove {len(removed)} packages"
    moved = "".join(
        f"* {it.path} is {it.spec.path} in {it.spec.repository} now\n" for it in removed
    )
    owners = dict.fromkeys(f"{it.spec.namespace}/{it.spec.policy}" for it in removed)
    trailers = "".join(f"{Trailer.POLICY.value}: {owner}\n" for owner in owners)
    return PublicationMerge(
        drafts=(),
        message=f"{subject}\n\n{moved}\n{trailers}",
        timestamp=first.repository_state.head_time,
        dropped_paths=tuple(it.path for it in removed),
    )


def vendor_drops(items: Sequence[CleanupItem]) -> list[str]:
    """Return the directories of pristine renderings that no variant needs any more."""
    drop = []
    for it in items:
        state = it.repository_state
        if it.open_draft is not None and it.path in state.drafted_renderings:
            keys = [draft.key for draft in state.drafts if draft.path == it.path]
            # Drafts of several policies at one path share one directory of renderings.
            if keys == [it.open_draft.key]:
                drop.append(f"drafts/{it.path}")
        if it.drops_rendering and it.path in state.published_renderings:
            drop.append(f"published/{it.path}")
    return drop
