"""Removals by pull requests that were merged just before their targets came back."""

from datetime import datetime

from fanout.plan.observation.repository_state import EMPTY_PATH
from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.ownership.path_ownership import PathOwnership
from fanout.reconcile.selection.policy_resolution import ResolvedPolicy
from fanout.values import replace


def with_merged_removals(
    status: RecordedStatus,
    resolved_policy: ResolvedPolicy,
    path_ownership: PathOwnership,
    now: datetime,
) -> RecordedStatus:
    """Return the status with the removal of present variants whose package a request removed.

    The removal draft, which is still there, says so. They begin anew, and are not held as those
    that somebody removed by hand.
    """
    title = f"{resolved_policy.namespace}/{resolved_policy.name}"
    removed_places = {
        (place, path)
        for place, located in path_ownership.repository_by_place.items()
        for draft in located.state.removal_drafts.values()
        if draft.policy == title
        for path in draft.trees_by_path
        if located.state.path_states.get(path, EMPTY_PATH).tree is None
    }
    names = []
    for variant in resolved_policy.variants if removed_places else ():
        line = status.variants.get(variant.name)
        if line is None or line.published is None or line.place not in removed_places:
            continue
        recorded = status.removed.get(variant.name)
        if recorded is None or recorded < line.published.at:
            names.append(variant.name)
    if not names:
        return status
    return replace(status, removed={**status.removed, **dict.fromkeys(names, now)})
