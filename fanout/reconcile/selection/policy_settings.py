"""Settings of a policy, or of a variant written by hand, on drafts, adoption and removal."""

from fanout.api.package_variant import AdoptionPolicy, DeletionPolicy
from fanout.api.upstream_policy import DraftPer
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy


def adopts_existing(resolved_policy: ResolvedPolicy) -> bool:
    """Return True if the variants may adopt packages that already exist at their paths."""
    declaration = resolved_policy.declaration
    return (
        declaration is not None
        and declaration.spec.adoption_policy is AdoptionPolicy.ADOPT_EXISTING
    )


def get_draft_per(resolved_policy: ResolvedPolicy) -> DraftPer:
    """Return what shares a draft: a hand-written variant always has its own."""
    policy = resolved_policy.upstream_policy
    return policy.spec.draft_per if policy is not None else DraftPer.VARIANT


def orphans_packages(resolved_policy: ResolvedPolicy) -> bool:
    """Return True if a package stays on the branch when its variant is removed."""
    return (
        resolved_policy.declaration is not None
        and resolved_policy.declaration.spec.deletion_policy is DeletionPolicy.ORPHAN
    )
