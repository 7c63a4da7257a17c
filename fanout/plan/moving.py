"""A variant whose path or repository changed: where it was, and who is at the new place.

Its identity is policy and target, so a changed path is a move. The draft at the new place has the
published package in it, with people's edits; the old place stays until the new one is ready.
(Design §1 and §6, "Order and change".)
"""

from collections.abc import Mapping

from fanout.gates.facts import Hold
from fanout.plan.observation import NOTHING, OpenDraft, RepositoryView
from fanout.plan.repository import PathState
from fanout.plan.status import LeftPlace, Place
from fanout.selection.model import VariantSpec
from fanout.values import frozen


@frozen
class Former:
    """A place at which the variant has, or had, its published package."""

    view: RepositoryView
    repository: str  # name of the Repository object
    path: str

    @property
    def state(self) -> PathState:
        """What is there on the branch."""
        return self.view.paths.get(self.path, NOTHING)

    @property
    def pristine(self) -> str | None:
        """The rendering that was published there, without anybody's edits."""
        return self.view.published.get(self.path)


@frozen
class Stray:
    """A draft of the variant at a place where the policy does not want it any more."""

    view: RepositoryView
    repository: str  # name of the Repository object
    path: str
    draft: OpenDraft

    def taken_by(self, draft: OpenDraft) -> bool:
        """Is all that people did in it in the other draft?"""
        return not self.draft.carries or self.draft.commit in draft.trailers.takes.split()


@frozen
class Leaving:
    """A place that the variant has left, with the package that is still there."""

    left: LeftPlace
    at: Former
    others: bool  # another variant is on record there: nothing of this one's is left

    @property
    def vacant(self) -> bool:
        """Is nothing there any more that could be removed?"""
        return self.others or self.at.state.tree is None

    @property
    def edited(self) -> bool:
        """Has somebody changed the package since it was taken along?"""
        return not self.vacant and self.at.state.tree != self.left.tree


@frozen
class Tenant:
    """Who is on record where a variant is to go, or around it, or in it."""

    variant: str
    policy: str  # "<namespace>/<policy>"
    path: str
    place: str  # identity of the Git repository
    moving: bool  # it is to be elsewhere; else nothing asks for it any more
    leaving: bool = False  # its package is in force elsewhere; this one goes when that is ready
    undeclared: bool = False  # its policy is not among those that are declared


def exchange(
    variant: str, wanted: Mapping[str, Place], tenants: Mapping[str, Tenant]
) -> frozenset[str]:
    """The other variants of a ring in which each takes the place of the next; none: no ring.

    `wanted` has the places where the variants of one policy are to go. A ring is in one repository:
    its moves are one push.
    """
    ring: list[str] = []
    at = variant
    while at not in ring:
        tenant = tenants.get(at)
        if tenant is None or tenant.leaving or tenant.variant not in wanted:
            return frozenset()
        if wanted[at] != (tenant.place, tenant.path) or tenant.place != wanted[variant][0]:
            return frozenset()
        ring.append(at)
        at = tenant.variant
    return frozenset(ring) - {variant} if at == variant else frozenset()


def author_of(spec: VariantSpec) -> str:
    """Who says where the variant is to be."""
    return "the policy's author" if spec.policy else f"the author of PackageVariant {spec.name}"


def awaited(draft: OpenDraft) -> Hold:
    """The hold of a variant whose branch has another's draft, with people's commits on it."""
    branch, other = draft.ref.removeprefix("refs/heads/"), draft.trailers.variant
    return Hold(
        "PathTaken",
        f"branch {branch} has people's commits for variant {other}, until its draft at its new path"
        " has taken them",
        who="the next pass",
    )


def occupied(spec: VariantSpec, tenant: Tenant) -> Hold:
    """The hold of a variant whose new place is not free."""
    at = f"{spec.repository}:{spec.path}"
    if tenant.variant == spec.name:
        return Hold(
            "PathChanged",
            f"{at} and {tenant.path}, where it is, are one inside the other; move it by way of a"
            " third path",
            who=author_of(spec),
        )
    whose = f"variant {tenant.variant} ({tenant.policy})"
    if tenant.undeclared:
        policy = tenant.policy.rpartition("/")[2]
        return Hold(
            "PathTaken",
            f"{at} is not free: {tenant.path} is that of policy {tenant.policy}, which is not"
            " declared; declare it again; if it is to go, give it targets that choose nothing, and"
            f" then `fanout remove {policy} --all-gone --reason WHY`",
            who=author_of(spec),
        )
    if tenant.leaving:
        sentence = f"{tenant.path} is left by {whose} when that is ready at its new path"
    elif tenant.moving:
        sentence = f"{tenant.path} is still that of {whose}, which is to move and has not yet"
    else:
        sentence = f"{tenant.path} is that of {whose}, which nothing asks for: `fanout remove` it"
    return Hold("PathTaken", f"{at} is not free: {sentence}", who="whoever promotes that variant")
