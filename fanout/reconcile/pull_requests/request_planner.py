"""Planning of the pull requests of one policy: texts, calls, records."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from datetime import datetime

from fanout.api.promotion_policy import PromotionPolicy
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.policy_plan import PolicyPlan, build_record_action, with_requests
from fanout.plan.pull_requests.request_group import group_requests
from fanout.plan.pull_requests.request_plan import plan_request, wants_request
from fanout.plan.pull_requests.request_records import observe_request_lines
from fanout.plan.pull_requests.request_settings import read_request_settings
from fanout.reconcile.pull_requests.request_texts import RequestTextBuilder
from fanout.values import frozen, replace


@frozen
class RequestPlanner:
    """Plans the pull requests of policies, one policy after the other, at one moment."""

    _: KW_ONLY
    now: datetime
    texts: RequestTextBuilder

    def add_requests(
        self,
        plan: PolicyPlan,
        variants: Sequence[ObservedVariant],
        promotions: Sequence[PromotionPolicy],
    ) -> PolicyPlan:
        """Return the plan with the calls about pull requests of its variants."""
        if not any(variant.repository_state.forge for variant in variants):
            return plan
        lines, details = observe_request_lines(plan.planned, variants, self.now)
        record_action = build_record_action(plan.namespace, plan.name, plan.steps)
        actions = [replace(record_action, detail=detail) for detail in details]
        settings = read_request_settings(promotions)
        groups = group_requests(plan.namespace, plan.steps, replace(plan.planned, requests=lines))
        wanted = [group for group in groups if wants_request(group)]
        built = self.texts.build_texts(wanted, promotions, settings.merge)
        planned = [
            it
            for group in groups
            if (it := plan_request(group, built.texts.get(group.key), settings)) is not None
        ]
        actions += [action for it in planned for action in it.actions]
        plan = with_requests(plan, [it.change for it in planned], actions, lines)
        return replace(plan, warnings=built.warnings)
