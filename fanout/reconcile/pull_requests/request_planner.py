"""Planning of the pull requests of one policy: texts, calls, records."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY
from datetime import datetime

from fanout.api.promotion_policy import PromotionPolicy
from fanout.plan.observed_variant import ObservedVariant
from fanout.plan.policy_plan import PolicyPlan, build_record_action, with_requests
from fanout.plan.pull_requests.request_group import RequestGroup, group_requests
from fanout.plan.pull_requests.request_marker import RequestText
from fanout.plan.pull_requests.request_plan import plan_request, wants_request
from fanout.plan.pull_requests.request_records import observe_request_lines
from fanout.plan.pull_requests.request_settings import read_request_settings
from fanout.plan.pull_requests.request_text import (
    ChangeVerb,
    RequestContent,
    RequestHold,
    RequestVariant,
    format_request,
)
from fanout.plan.records.policy_status import RequestKey
from fanout.selection.variant_naming import install_of
from fanout.values import frozen, replace


@frozen
class RequestPlanner:
    """Plans the pull requests of policies, one policy after the other, at one moment."""

    _: KW_ONLY
    now: datetime

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
        texts = self._build_texts(wanted)
        planned = [
            it
            for group in groups
            if (it := plan_request(group, texts.get(group.key), settings)) is not None
        ]
        actions += [action for it in planned for action in it.actions]
        return with_requests(plan, [it.change for it in planned], actions, lines)

    def _build_texts(self, groups: Sequence[RequestGroup]) -> Mapping[RequestKey, RequestText]:
        return {group.key: format_request(_build_content(group)) for group in groups}


def _build_content(group: RequestGroup) -> RequestContent:
    return RequestContent(
        install=install_of(group.head_ref),
        policy=f"{group.namespace}/{group.policy}",
        stage=group.stage,
        repository=group.repository,
        branch=group.state.branch.removeprefix("refs/heads/"),
        head_branch=group.head_ref.removeprefix("refs/heads/"),
        variants=tuple(
            RequestVariant(
                name=it.rendered.spec.name,
                path=it.rendered.spec.path,
                verb=ChangeVerb.UPDATE,
                revision=it.rendered.selected.revision,
            )
            for it in group.members
        ),
        holds=tuple(
            RequestHold(hold=hold, variants=(it.rendered.spec.name,))
            for it in group.members
            if it.evaluation is not None and not it.evaluation.let_through
            for hold in it.evaluation.holds
        ),
    )
