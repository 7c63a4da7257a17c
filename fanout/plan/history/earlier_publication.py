"""Earlier publications to roll back to, publications reverted by hand, and what holds a rollback.

A package's Kptfile names its upstream state, and those fields are fanout's own. So a change of them
on the branch is no edit: another package stands in place of the published one.
"""

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.rollback_pins import Pin
from fanout.package.kptfile import UpstreamLock
from fanout.plan import plan_wording
from fanout.plan.commit_statement import PackageVersion
from fanout.plan.observation.repository_state import OpenDraft
from fanout.selection.variant_spec import VariantSpec
from fanout.values import Value


class EarlierPublication(PackageVersion):
    """A publication of a variant as it was when it was last in force."""

    pristine_tree: str = ""  # tree of the rendering without downstream edits; "": lost


class RevertedPublication(Value):
    """State of the branch where a publication was taken back by hand.

    `pristine_tree` is the id of the rendering that it was made from, or None if that is
    unknown; `is_other_package` means that another package is at the path.
    """

    description: str  # in words
    pristine_tree: str | None = None
    is_other_package: bool = False


def locked_revision(lock: UpstreamLock, package: str) -> str:
    """Return the revision that a lock names: tag without package path, or commit."""
    return lock.ref.removeprefix(f"{package.strip('/')}/") or lock.commit[:7]


def is_other_state(branch_lock: UpstreamLock, published_lock: UpstreamLock) -> bool:
    """Return whether the branch's package names another state, or package, than the published one.

    Packages of one repository have its commits in common.
    """
    # A lock may lack its ref; only two different refs are a difference.
    refs = {branch_lock.ref, published_lock.ref} - {""}
    return (
        branch_lock.commit != published_lock.commit
        or len(refs) > 1
        or not branch_lock.refers_to(published_lock.repo, published_lock.directory)
    )


def never_published_hold(spec: VariantSpec, pin: Pin) -> Hold:
    """Return the hold of a rollback to a revision that the variant never published."""
    return Hold(
        Reason.NEVER_PUBLISHED,
        f"{spec.repository}:{spec.path} was never published at {pin.revision}; choose a published"
        " revision",
        _pin_owner(spec, pin),
    )


def moved_away_hold(spec: VariantSpec, location: str, pin: Pin) -> Hold:
    """Return the hold of a rollback of a variant that also moves."""
    return Hold(
        Reason.PATH_CHANGED,
        f"{spec.name} moves from {location} to {spec.repository}:{spec.path}; roll it back to"
        f" {pin.revision} before or after the move",
        _pin_owner(spec, pin),
    )


def edited_draft_hold(spec: VariantSpec, draft: OpenDraft, pin: Pin) -> Hold:
    """Return the hold of a rollback that would drop commits made on the open draft."""
    branch = draft.ref.removeprefix("refs/heads/")
    return Hold(
        Reason.DRAFT_EDITED,
        f"branch {branch} has people's commits on a draft of {draft.trailers.revision}, which a"
        f" rollback to {pin.revision} would drop; save them in another branch and remove this one",
        plan_wording.format_maintainers(spec.repository),
    )


def missing_base_hold(spec: VariantSpec, pin: Pin) -> Hold:
    """Return the hold of a rollback that would leave edits without a base."""
    return Hold(
        Reason.BASE_MISSING,
        f"the vendor branch lacks {pin.revision} of {spec.repository}:{spec.path}, so edits cannot"
        " be told from upstream; restore that branch",
        plan_wording.format_maintainers(spec.repository),
    )


def _pin_owner(spec: VariantSpec, pin: Pin) -> str:
    if (decision := pin.decision) is None:
        return f"the policy's author (pin of stage {spec.stage})"
    return (
        f"whoever may withdraw records: run `fanout withdraw {spec.policy or spec.name}"
        f" {decision.name} --reason WHY`"
    )
