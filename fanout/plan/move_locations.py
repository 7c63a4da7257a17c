"""Locations of variants that move: previous places, drafts and occupied paths.

A variant is identified by policy and target, so a changed path is a move. The draft at
the new place holds the published package with its edits; the old place stays until the
new one is ready (docs/concepts/life-cycle.md).
"""

from collections.abc import Mapping

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.plan import plan_wording
from fanout.plan.observation.repository_state import ObservedPath, OpenDraft
from fanout.plan.records.policy_status import PreviousLocationLine
from fanout.selection.path_collisions import PackagePlace, PathOwner
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value


class MisplacedDraft(ObservedPath):
    """A draft of the variant at a place that its policy no longer asks for."""

    draft: OpenDraft

    def is_contained_in(self, draft: OpenDraft) -> bool:
        """Return whether all edits of this draft are in the other one."""
        return not self.draft.has_edits or self.draft.commit in draft.trailers.takes.split()


class AbandonedLocation(Value):
    """A place that the variant has left, with the package that is still there."""

    left_place: PreviousLocationLine
    location: ObservedPath
    has_other_owner: bool  # another variant is on record there, so nothing of this one remains
    # Its package is not there as it was, and the branch lacks the commit that published it.
    has_lost_history: bool = False

    @property
    def is_vacant(self) -> bool:
        """Return whether no package of this variant is left there, nor comes back with a branch."""
        is_missing = self.location.path_state.tree is None and not self.has_lost_history
        return self.has_other_owner or is_missing

    @property
    def is_edited(self) -> bool:
        """Return whether the package was changed after the variant took its content along."""
        return not self.is_vacant and self.location.path_state.tree != self.left_place.tree


class PathHolder(Value, kw_only=True):
    """The variant on record at, above or below the path where another variant is to go."""

    owner: PathOwner
    policy: str  # "<namespace>/<policy>"
    place: PackagePlace
    is_moving: bool  # False: no policy declares it any more
    is_leaving: bool = False  # published elsewhere; this package is removed when that one is ready
    is_undeclared: bool = False  # its policy is not declared


def exchange_partners(
    variant: str, wanted: Mapping[str, PackagePlace], occupants: Mapping[str, PathHolder]
) -> frozenset[str]:
    """Return the other variants of a ring in which each takes the next one's place.

    `wanted` has the places where the variants of one policy are to go; `occupants` who is
    there, both by variant name. A ring lies in one repository, since its moves are one
    push.
    """
    ring: list[str] = []
    current = variant
    while current not in ring:
        occupant = occupants.get(current)
        if occupant is None or occupant.is_leaving or occupant.owner[1] not in wanted:
            return frozenset()
        # A package above or below the wanted path cannot be exchanged: only equal paths
        # swap trees.
        if wanted[current] != occupant.place or occupant.place[0] != wanted[variant][0]:
            return frozenset()
        ring.append(current)
        current = occupant.owner[1]
    return frozenset(ring) - {variant} if current == variant else frozenset()


def location_author(spec: VariantSpec) -> str:
    """Return who decides the variant's location, for the remedy of a hold."""
    return plan_wording.AUTHOR if spec.policy else f"the author of PackageVariant {spec.name}"


def draft_branch_hold(draft: OpenDraft) -> Hold:
    """Return the hold of a variant whose branch has another variant's edited draft."""
    branch, other_variant = draft.ref.removeprefix("refs/heads/"), draft.trailers.variant
    return Hold(
        Reason.PATH_TAKEN,
        f"branch {branch} has people's commits for variant {other_variant}; its draft at the new"
        " path takes them first",
        who=plan_wording.NEXT_RUN,
    )


def occupied_path_hold(spec: VariantSpec, occupant: PathHolder) -> Hold:
    """Return the hold of a variant whose new path is occupied."""
    location = f"{spec.repository}:{spec.path}"
    namespace, variant = occupant.owner
    _, path = occupant.place
    policy = occupant.policy.partition("/")[2]
    owner = f"variant {variant} ({occupant.policy})"
    if variant == spec.name and namespace == spec.namespace:
        sentence = (
            f"{location} and the present path {path} are nested; move it to a third path first"
        )
        return Hold(Reason.PATH_CHANGED, sentence, who=location_author(spec))
    who = location_author(spec)
    if namespace != spec.namespace:
        sentence = (
            f"{path} belongs to a variant in another namespace; choose another path, or wait until"
            " it is free"
        )
    elif occupant.is_undeclared:
        sentence = (
            f"{path} belongs to policy {occupant.policy}, which is not declared; declare it again,"
            f" or declare it without targets and run `fanout remove {policy} --all-gone --reason"
            " WHY`"
        )
    else:
        who = f"any promoter of variant {variant}"
        if occupant.is_leaving:
            sentence = f"{owner} leaves {path} when it is ready at its new path"
        elif occupant.is_moving:
            sentence = f"{owner} has not moved from {path} yet"
        else:
            subject = f"{policy} {variant}" if policy else variant
            sentence = (
                f"{path} belongs to {owner}, which has no target; run `fanout remove {subject} -n"
                f" {namespace} --reason WHY`"
            )
    return Hold(Reason.PATH_TAKEN, f"{location} is not free: {sentence}", who=who)
