"""From a scenario and the objects beside it to a world that can be played."""

from collections.abc import Callable, Iterable, Sequence

from fanout.api.meta import ObjectMeta
from fanout.api.promotion_policy import (
    AtClose,
    AutoPromotion,
    PromotionPolicy,
    PromotionPolicySpec,
)
from fanout.api.scenario import Scenario
from fanout.api.scenario_state import StatedVariant
from fanout.api.targets import TargetEntry
from fanout.api.upstream import RevisionRule, Upstream
from fanout.api.upstream_policy import InFlight, UpstreamPolicy, UpstreamPolicySpec
from fanout.gates.rules import Condition
from fanout.plan.rules import administrators, calendars, stage_rules
from fanout.plan.scenarios.script import Script
from fanout.plan.scenarios.world import Setting
from fanout.selection.selectors import LabelSelector, matches
from fanout.values import frozen, replace


@frozen
class Cast:
    """The policy that a scenario is about, and who is over it."""

    policy: UpstreamPolicy
    promotions: tuple[PromotionPolicy, ...]


def cast(
    scenario: Scenario,
    policies: Iterable[UpstreamPolicy],
    promotions: Iterable[PromotionPolicy],
) -> Cast | None:
    """The policy that the scenario names, or one of its own stages; None: there is none of it."""
    spec, meta = scenario.spec, scenario.metadata
    if not spec.stages:
        named = (spec.policy, meta.namespace)
        for policy in policies:
            if (policy.metadata.name, policy.metadata.namespace) == named:
                return Cast(policy, administrators(policy, promotions))
        return None
    said = spec.promotion or PromotionPolicySpec(auto_promotion=AutoPromotion(stages=("*",)))
    own = ObjectMeta(name=meta.name, namespace=meta.namespace)
    return Cast(_stated(scenario, own), (PromotionPolicy(metadata=own, spec=said),))


def _stated(scenario: Scenario, meta: ObjectMeta) -> UpstreamPolicy:
    """A policy of the stages that are stated. Where it is from and for whom, no gate asks."""
    return UpstreamPolicy(
        metadata=meta,
        spec=UpstreamPolicySpec(
            upstream=Upstream(
                repository="stated", package="stated", revision=RevisionRule(latest=True)
            ),
            targets=(TargetEntry(),),
            stages=scenario.spec.stages,
            in_flight=scenario.spec.in_flight or InFlight.SUPERSEDE,
        ),
    )


def setting(scenario: Scenario, found: Cast, condition: Callable[[str], Condition]) -> Setting:
    """What of the scenario's world does not change; `condition` is as `stage_rules` takes it."""
    policy, promotions, unread = found.policy, found.promotions, scenario.spec.unread
    rules = stage_rules(policy, promotions, condition)
    upstream = policy.spec.upstream
    stated = bool(scenario.spec.stages)
    return Setting(
        name=policy.metadata.name,
        rules=tuple(replace(rule, automatic=rule.automatic and not unread) for rule in rules),
        suspended=policy.spec.suspend or scenario.spec.suspend,
        serialize=policy.spec.in_flight is InFlight.SERIALIZE,
        sweep=scenario.spec.sweep,
        unread=unread,
        calendars=calendars(promotions),
        finishing=frozenset(
            it.metadata.name for it in promotions if it.spec.at_close is AtClose.FINISH
        ),
        upstream={} if stated else {"repository": upstream.repository, "package": upstream.package},
    )


def script(scenario: Scenario, found: Cast) -> Script:
    """What happens in the scenario."""
    return Script(scenario, _groups(found.policy))


def _groups(policy: UpstreamPolicy) -> Callable[[StatedVariant], int]:
    """In which of its stage's rollout groups a variant is; who is in none comes last."""
    groups = {
        stage.name: stage.rollout.groups if stage.rollout else () for stage in policy.spec.stages
    }

    def group(variant: StatedVariant) -> int:
        selectors: Sequence[LabelSelector] = groups.get(variant.stage, ())
        chosen = (i for i, one in enumerate(selectors) if matches(one, variant.labels))
        return next(chosen, len(selectors))

    return group
