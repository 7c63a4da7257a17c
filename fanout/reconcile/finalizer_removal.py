"""Removal of the finalizer: of deleted objects that have nothing downstream any more.

The objects are policies, and variants written by hand.
"""

from fanout.api.package_variant import PackageVariant
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.reconcile.pass_results import PassPlan


def find_completed_deletions(pass_plan: PassPlan) -> tuple[UpstreamPolicy | PackageVariant, ...]:
    """Return the objects that are being deleted and whose removal is complete.

    Judged by what the pass observed. What it is about to remove counts as present, because a push
    may fail; the pass after it finds out.
    """
    busy = {(plan.namespace, plan.name) for plan in pass_plan.plans if plan.actions}
    return tuple(
        declaration
        for result in pass_plan.policies
        if (declaration := result.resolved_policy.declaration) is not None
        and declaration.is_being_deleted
        and result.resolved_policy.subject not in busy
        and result.error is None
        # Drafts of a repository that does not respond are not seen.
        and all(it.failure is None for it in result.repository_states)
        and not result.orphans
    )
