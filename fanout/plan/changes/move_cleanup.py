"""Cleanup after moves, and moves that have to wait for one another.

A draft at the old place is removed when nothing of it can be lost; the old package when the variant
is ready at its new place and automation may act there (docs/concepts/life-cycle.md). Variants that
exchange places move in one push, so each is somewhere at any time. A draft in another repository
whose commits the new draft has taken is removed before that is published: its branch is the only
sign that they are in it.
"""

from collections.abc import Iterator, Mapping

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.gate_wording import NEXT_SWEEP, REMOVAL_SWEEP_AWAITED
from fanout.plan.changes.package_removal import (
    DraftIndex,
    PackageRemoval,
    VariantRemoval,
    find_used_number,
    is_reviewed,
)
from fanout.plan.changes.planned_sets import BRANCH_REASONS, describe_removing
from fanout.plan.decided_variant import DecidedVariant, VariantStep
from fanout.plan.move_locations import AbandonedLocation
from fanout.plan.observation.repository_state import ObservedPath
from fanout.plan.observed_variant import lost_leftover_hold, missing_branch_hold
from fanout.plan.rendered_variant import RenderedVariant
from fanout.selection.path_collisions import PackagePlace
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value, field, replace


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
    drafts: Mapping[str, DraftIndex] = field(default_factory=dict)  # by key of the repository
    # Of branches that remove packages, because of what people did with them, or have yet to do.
    review_holds: Mapping[PackagePlace, Hold] = field(default_factory=dict)


def plan_move_cleanup(planned: DecidedVariant, permission: CleanupPermission) -> VariantRemoval:
    """Plan what this pass removes for one variant that moved."""
    variant, spec = planned.rendered, planned.rendered.spec
    removals: list[PackageRemoval] = []
    # While the variant's own place cannot be used, nothing shows what has arrived there.
    if variant.observed.obstacle is None:
        for it in variant.observed.misplaced_drafts:
            # Two repositories are two pushes, either of which may fail; so a draft that takes over
            # commits of another repository must be seen there first.
            identity = variant.observed.repository_state.identity
            if planned.step is VariantStep.WRITE:
                is_kept = not it.draft.has_edits or it.repository_state.identity == identity
            elif variant.observed.draft is not None:
                is_kept = it.is_contained_in(variant.observed.draft)
            else:
                is_kept = variant.selected.is_in_force and not it.draft.has_edits
            if not is_kept:
                continue
            # Drafts of other policies at the path share the directory of its rendering.
            is_only_draft = (
                it.path in it.repository_state.drafted_renderings
                and permission.drafts[it.repository_state.key].counts[it.path] == 1
            )
            removals.append(
                replace(
                    build_leftover_removal(spec, it),
                    tree="",
                    drafts=(it.draft,),
                    renderings=(f"drafts/{it.path}",) if is_only_draft else (),
                )
            )
        for abandoned in variant.observed.abandoned:
            state, path = abandoned.location.repository_state, abandoned.location.path
            is_automatic = (
                permission.is_automatic
                and permission.automation_acts
                and permission.window_hold is None
            )
            # An edit made after the move is not at the new place and would be lost.
            may_remove = abandoned.is_vacant or (
                permission.is_ready and is_automatic and not abandoned.is_edited
            )
            removes_package = not abandoned.is_vacant and not permission.keeps_package
            if (
                # Its package may be on a branch of another name, or come back with the history.
                not state.head
                or abandoned.has_lost_history
                or not permission.is_publishing
                or not may_remove
                or _moves_back(variant, abandoned)
                # It goes by a branch, and is settled when that is merged.
                or (removes_package and _is_reviewed(abandoned, permission))
            ):
                continue
            is_rendered = not abandoned.has_other_owner and path in state.published_renderings
            removals.append(
                replace(
                    build_leftover_removal(spec, abandoned.location),
                    left_line=abandoned.left_place,
                    tree=abandoned.left_place.tree if removes_package else "",
                    renderings=(f"published/{path}",) if is_rendered else (),
                    used_number=find_used_number(state, path, None, abandoned.left_place),
                )
            )
    return VariantRemoval(
        namespace=spec.namespace,
        policy=spec.policy,
        stage=spec.stage,
        variant=spec.name,
        packages=tuple(removals),
    )


def _moves_back(variant: RenderedVariant, abandoned: AbandonedLocation) -> bool:
    return abandoned.left_place.place == (
        variant.observed.repository_state.identity,
        variant.spec.path,
    )


def _is_reviewed(abandoned: AbandonedLocation, permission: CleanupPermission) -> bool:
    state = abandoned.location.repository_state
    return is_reviewed(state, needs_approvals=permission.needs_approvals)


def list_drafted_leftovers(
    planned: DecidedVariant, permission: CleanupPermission
) -> Iterator[PackageRemoval]:
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
        removal = build_leftover_removal(variant.spec, abandoned.location)
        if (
            not _is_reviewed(abandoned, permission)
            or abandoned.is_vacant
            or abandoned.has_lost_history
            or _moves_back(variant, abandoned)
            or (abandoned.is_edited and removal.tree not in (permission.confirmed_trees or ()))
        ):
            continue
        # Why it does not join a branch in this pass.
        hold = permission.review_holds.get(abandoned.left_place.place)
        if hold is None or hold.reason in BRANCH_REASONS:
            hold = permission.window_hold
            if hold is None and not permission.is_ready and not is_confirmed:
                name, path = variant.spec.name, abandoned.location.path
                sentence = f"{path} is removed when {name} is ready at its new path"
                hold = Hold(Reason.PLACE_LEFT, sentence)
            elif hold is None and not (
                permission.is_publishing and (permission.automation_acts or is_confirmed)
            ):
                hold = Hold(Reason.SWEEP_AWAITED, REMOVAL_SWEEP_AWAITED, NEXT_SWEEP)
        yield replace(removal, hold=hold)


def build_leftover_removal(spec: VariantSpec, place: ObservedPath) -> PackageRemoval:
    """Build the removal of something that a variant has left at a place."""
    return PackageRemoval(
        repository_state=place.repository_state,
        repository=place.repository,
        path=place.path,
        variant=spec.name,
        stage=spec.stage,
        tree=place.path_state.tree or "",
        reason=f"its variant is {spec.path} in {spec.repository} now",
    )


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
        if abandoned.has_lost_history:
            yield lost_leftover_hold(abandoned)
            continue
        removing = (
            describe_removing(state, it.ref)
            for it in state.removal_sets
            if abandoned.location.path in it.removed_trees
        )
        branch = next(removing, "")
        if (review_hold := permission.review_holds.get(abandoned.left_place.place)) is not None:
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
