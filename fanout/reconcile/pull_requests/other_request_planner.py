"""Planning of the status of fanout on other people's pull requests, once for each repository."""

from collections.abc import Mapping

from fanout.plan.actions import RepositorySubject
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.pull_requests.other_requests import OtherStatuses, plan_other_statuses
from fanout.reconcile.pass_scope import PassScope
from fanout.reconcile.selection.policy_resolution import repository_key


def plan_others(
    scope: PassScope, repository_states: Mapping[str, RepositoryState], install: str
) -> OtherStatuses:
    """Plan the statuses in all repositories of a pass.

    `repository_states` are by identity of the Repository object.
    """
    states = repository_states.values()
    if not any(it.forge is not None and it.forge.other_requests for it in states):
        return OtherStatuses((), ())
    # Several policies may be in one repository; the first one's calls they are.
    subjects: dict[str, RepositorySubject] = {}
    for policy in scope.evaluated:
        is_hand_written = policy.upstream_policy is None
        for repository in policy.repositories.values():
            state = repository_states[repository_key(repository)]
            if state.identity not in subjects:
                subjects[state.identity] = RepositorySubject(
                    namespace=policy.namespace,
                    policy="" if is_hand_written else policy.name,
                    variant=policy.name if is_hand_written else "",
                    repository=repository.metadata.name,
                    state=state,
                )
    return plan_other_statuses(subjects.values(), install)
