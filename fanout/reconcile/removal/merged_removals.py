"""Removals by pull requests that were merged just before their targets came back."""

from datetime import datetime

from fanout.plan.records.policy_status import RecordedStatus
from fanout.reconcile.policy_phases import PolicyInputs
from fanout.values import replace


def with_merged_removals(
    inputs: PolicyInputs, status: RecordedStatus, now: datetime
) -> RecordedStatus:
    """Return the status with the removal of present variants whose package a request removed.

    The set of removals, which is still there, says so. They begin anew, and are not held as those
    that somebody removed by hand.
    """
    removed_places = {
        (place, path)
        for place, repository in inputs.path_ownership.repository_by_place.items()
        for draft in repository.state.removal_sets
        if draft.policy == inputs.resolved_policy.title
        for path in draft.removed_trees
        if repository.state.find_tree(path) is None
    }
    names = []
    for variant in inputs.resolved_policy.variants if removed_places else ():
        status_line = status.variants.get(variant.name)
        if (
            status_line is not None
            and status_line.published is not None
            and status_line.place in removed_places
            and (
                variant.name not in status.removed
                or status.removed[variant.name] < status_line.published.at
            )
        ):
            names.append(variant.name)
    if not names:
        return status
    return replace(status, removed={**status.removed, **dict.fromkeys(names, now)})
