"""Planning of the pull requests of one policy: texts, calls, records.

On other people's pull requests, the status of fanout is planned once for each repository.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from fanout.api.promotion_policy import PromotionPolicy
from fanout.plan.actions import ActionKind, RepositorySubject
from fanout.plan.observation.repository_state import RepositoryState
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.policy_plan import PolicyPlan, build_record_action, with_requests
from fanout.plan.pull_requests.other_requests import OtherStatuses, plan_other_statuses
from fanout.plan.pull_requests.request_group import group_orphaned, group_removals, group_requests
from fanout.plan.pull_requests.request_holds import RequestHoldInputs, read_request_settings
from fanout.plan.pull_requests.request_plan import plan_request, wants_request
from fanout.plan.pull_requests.request_records import find_begun, observe_request_lines
from fanout.reconcile.pass_scope import PassScope
from fanout.reconcile.pull_requests.request_texts import RequestTextBuilder
from fanout.reconcile.selection.policy_resolution import repository_key
from fanout.values import Value, replace


class RequestPlanner(Value, kw_only=True):
    """Plans the pull requests of policies, one policy after the other, at one moment."""

    now: datetime
    publish: bool
    texts: RequestTextBuilder

    def add_requests(
        self,
        plan: PolicyPlan,
        variants: Sequence[ObservedVariant],
        states_by_repository: Mapping[str, RepositoryState],
        promotions: Sequence[PromotionPolicy],
    ) -> PolicyPlan:
        """Return the plan with the calls about pull requests of its variants and removals.

        `states_by_repository` are those with anything of the policy, by name of the Repository.
        """
        if not any(state.forge for state in states_by_repository.values()):
            return plan
        lines, details = observe_request_lines(plan.planned, variants, plan.cleanup.sets, self.now)
        settings = read_request_settings(promotions)
        # The branches of removals that a person declined are not written.
        kept = tuple(replace(it, write=None) if it.is_declined else it for it in plan.cleanup.sets)
        if kept != plan.cleanup.sets:
            written = {draft.ref for draft in kept if draft.write is not None}
            remaining = [
                it
                for it in plan.actions
                if it.kind is not ActionKind.DRAFT_REMOVAL or it.ref in written
            ]
            cleanup = replace(plan.cleanup, sets=kept)
            plan = replace(plan, cleanup=cleanup, actions=tuple(remaining))
        groups = (
            *group_requests(plan.namespace, plan.steps, replace(plan.planned, requests=lines)),
            *group_orphaned(plan, states_by_repository, lines),
            *group_removals(
                plan.cleanup.sets,
                RequestHoldInputs(settings, lines, self.now, is_publishing=self.publish),
            ),
        )
        texts, warnings = self.texts.build_texts(
            [group for group in groups if wants_request(group)], promotions, settings.merge
        )
        begun = find_begun(plan.planned.openings, groups, self.now)
        planned = [
            it
            for group in groups
            if group.key not in begun
            and (it := plan_request(group, texts.get(group.key), settings)) is not None
        ]
        openings = {
            (it.change.repository, it.change.head_ref): self.now
            for it in planned
            if it.change.opening is not None
        }
        record_action = build_record_action(plan.namespace, plan.name, plan.steps)
        actions = [replace(record_action, detail=detail) for detail in details]
        actions += [action for it in planned for action in it.actions]
        status = replace(plan.planned, requests=lines, openings={**begun, **openings})
        plan = with_requests(plan, [it.change for it in planned], actions, status)
        return replace(plan, warnings=warnings)


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
