"""Holds of variants whose rollback cannot be written, or whose publication was reverted by hand."""

from fanout.api.reasons import Reason
from fanout.api.results import Hold
from fanout.gates.rollback_pins import Pin
from fanout.plan import plan_wording
from fanout.plan.observation.repository_state import OpenDraft
from fanout.plan.records.policy_status import PublishedLine
from fanout.plan.rollback.earlier_publication import RevertedPublication
from fanout.selection.variant_spec import VariantSpec


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
    decision = pin.decision
    if decision is None:
        return f"the policy's author (pin of stage {spec.stage})"
    return (
        f"whoever may withdraw records: run `fanout withdraw {spec.policy or spec.name}"
        f" {decision.name} --reason WHY`"
    )


def reverted_hold(
    spec: VariantSpec, location: str, reverted: RevertedPublication, published: PublishedLine
) -> Hold:
    """Return the hold of a reverted publication: restore it, or publish the draft."""
    remedy = "restore it (`git revert`)"
    if not reverted.is_other_package and reverted.pristine_tree is not None:
        subject = spec.name
        if spec.policy:
            subject = f"{spec.policy} --stage {spec.stage} --variant {spec.name}"
        remedy += f", or publish the next draft over it: `fanout promote {subject} --reason WHY`"
    return Hold(
        Reason.EDITED_DOWNSTREAM,
        f"{location} {reverted.description}, and {published.revision} was published: it was"
        f" reverted; {remedy}",
        who=plan_wording.format_maintainers(spec.repository),
    )
