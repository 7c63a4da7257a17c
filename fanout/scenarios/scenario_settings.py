"""Policy and settings of a scenario: named in the declared objects, or stated in it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fanout.api.object_meta import ObjectMeta
from fanout.api.package_variant import RevisionRule, Upstream
from fanout.api.promotion_policy import AutoPromotion, PromotionPolicy, PromotionPolicySpec
from fanout.api.scenario import Scenario
from fanout.api.upstream_policy import InFlight, TargetEntry, UpstreamPolicy, UpstreamPolicySpec
from fanout.calendar.publication_calendar import PublicationCalendar
from fanout.gates.gate_rules import PropagationCondition, StageRule
from fanout.plan.gates.stage_rules import (
    build_calendars,
    build_stage_rules,
    finishing_calendars,
    governing_promotions,
)
from fanout.values import Value, field, replace


class ScenarioPolicy(Value):
    """The policy of a scenario and the PromotionPolicies that govern it."""

    policy: UpstreamPolicy
    promotions: tuple[PromotionPolicy, ...]


class ScenarioSetting(Value, kw_only=True):
    """Settings of a scenario that do not change while it is played."""

    name: str
    rules: tuple[StageRule, ...]
    suspended: bool = False
    serialize: bool = False
    automation_acts: bool = True
    calendars_incomplete: bool = False
    calendars: tuple[PublicationCalendar, ...] = ()
    finishing_calendars: frozenset[str] = frozenset()
    upstream: Mapping[str, Any] = field(default_factory=dict)  # variables of `propagateWhen`


def find_policy(
    scenario: Scenario, policies: Iterable[UpstreamPolicy], promotions: Iterable[PromotionPolicy]
) -> ScenarioPolicy | None:
    """Return the policy that the scenario names or states; None if it is missing."""
    spec, meta = scenario.spec, scenario.metadata
    if not spec.stages:
        named = (spec.policy, meta.namespace)
        for policy in policies:
            if (policy.metadata.name, policy.metadata.namespace) == named:
                return ScenarioPolicy(policy, governing_promotions(policy, promotions))
        return None
    promotion_spec = spec.promotion or PromotionPolicySpec(
        auto_promotion=AutoPromotion(stages=("*",))
    )
    own_metadata = ObjectMeta(name=meta.name, namespace=meta.namespace)
    policy_spec = UpstreamPolicySpec(
        # No gate reads upstream or targets.
        upstream=Upstream(
            repository="stated", package="stated", revision=RevisionRule(latest=True)
        ),
        targets=(TargetEntry(),),
        stages=spec.stages,
        in_flight=spec.in_flight or InFlight.SUPERSEDE,
    )
    return ScenarioPolicy(
        UpstreamPolicy(metadata=own_metadata, spec=policy_spec),
        (PromotionPolicy(metadata=own_metadata, spec=promotion_spec),),
    )


def build_setting(
    scenario: Scenario,
    scenario_policy: ScenarioPolicy,
    compile_condition: Callable[[str], PropagationCondition],
) -> ScenarioSetting:
    """Build the settings of a scenario; `compile_condition` is as in `build_stage_rules`."""
    policy, promotions = scenario_policy.policy, scenario_policy.promotions
    rules = build_stage_rules(policy, promotions, compile_condition)
    upstream = policy.spec.upstream
    return ScenarioSetting(
        name=policy.metadata.name,
        rules=tuple(
            replace(rule, automatic=rule.automatic and not scenario.spec.unread) for rule in rules
        ),
        suspended=policy.spec.suspend or scenario.spec.suspend,
        serialize=policy.spec.in_flight is InFlight.SERIALIZE,
        # Automation publishes in sweeps alone only where a schedule may say so.
        automation_acts=scenario.spec.sweep
        or not (scenario.spec.unread or any(it.spec.schedule for it in promotions)),
        calendars_incomplete=scenario.spec.unread,
        calendars=build_calendars(promotions),
        finishing_calendars=finishing_calendars(promotions),
        upstream={}
        if scenario.spec.stages
        else {"repository": upstream.repository, "package": upstream.package},
    )
