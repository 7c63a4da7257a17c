"""Removals by pull requests that were merged just before their targets came back.

The removal draft, which is still there, says that fanout removed the package: the variant begins
anew, and is not held as one that somebody removed by hand.
"""

from datetime import datetime

from fanout.plan.observation.repository_state import EMPTY_PATH
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.ownership.path_ownership import PathOwnership
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.selection.path_collisions import PackagePlace
from fanout.values import replace


def forget_removed_variants(
    status: RecordedStatus,
    resolved_policy: ResolvedPolicy,
    path_ownership: PathOwnership,
    now: datetime,
) -> RecordedStatus:
    """Return the status without the variants that begin anew, and with their removal.

    One that is released already has begun.
    """
    removed_places = _find_removed_places(resolved_policy, path_ownership)
    names = {
        variant.name
        for variant in (resolved_policy.variants if removed_places else ())
        if (line := status.variants.get(variant.name)) is not None
        and line.published is not None
        and line.place in removed_places
    }
    if not names:
        return status
    return replace(
        status,
        variants={name: line for name, line in status.variants.items() if name not in names},
        removed={**status.removed, **dict.fromkeys(names, now)},
    )


def _find_removed_places(
    resolved_policy: ResolvedPolicy, path_ownership: PathOwnership
) -> frozenset[PackagePlace]:
    """Return the places of the packages that merged removal drafts have removed."""
    title = f"{resolved_policy.namespace}/{resolved_policy.name}"
    return frozenset(
        (place, path)
        for place, located in path_ownership.repository_by_place.items()
        for draft in located.state.removal_drafts.values()
        if draft.policy == title
        for path in draft.trees_by_path
        if located.state.path_states.get(path, EMPTY_PATH).tree is None
    )
