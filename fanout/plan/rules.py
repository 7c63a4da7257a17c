"""From what authors and administrators wrote to the rules that the gate engine knows."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from fanout.api.approvers import governs
from fanout.api.checks import Check
from fanout.api.people import person
from fanout.api.promotion_policy import AtClose, AutoPromotion, PromotionPolicy, matches
from fanout.api.promotion_policy import Period as WrittenPeriod
from fanout.api.stages import Stage
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.calendar.periods import Period, period
from fanout.calendar.windows import Calendar
from fanout.gates.rules import (
    AT_ONCE,
    HAND_WRITTEN,
    After,
    ApprovalRule,
    CheckRule,
    Condition,
    Require,
    RolloutRule,
    StageRule,
    Strategy,
    Way,
)


def administrators(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """The PromotionPolicies that name the policy; only those of its own namespace can."""
    return tuple(promotion for promotion in promotions if governs(promotion, policy))


def stage_rules(
    policy: UpstreamPolicy,
    promotions: Sequence[PromotionPolicy],
    condition: Callable[[str], Condition],
) -> tuple[StageRule, ...]:
    """The policy's stages; `promotions` are those that name it.

    A stage is automatic when all of those that have `autoPromotion` name it, and at least one does;
    the others are neutral. (Design §2.) `condition` makes of the text of an expression what the
    gates can ask.
    """
    automations = [
        (item.metadata.name, _automation(item.spec.auto_promotion))
        for item in promotions
        if item.spec.auto_promotion is not None
    ]
    opposed = {
        stage.name: [name for name, automates in automations if not automates(stage.name)]
        for stage in policy.spec.stages
    }
    return tuple(
        StageRule(
            name=stage.name,
            after=_after(stage),
            verification=tuple(check_rule(check) for check in stage.verification),
            requires=tuple(_required(check, promotions) for check in stage.requires),
            rollout=_rollout(stage),
            propagate_when=tuple(condition(text) for text in stage.propagate_when),
            control_flow=stage.control_flow,
            pin=stage.pin or "",
            automatic=bool(automations) and not opposed[stage.name],
            opposed=_some(opposed[stage.name], len(automations)),
            suspended=stage.suspend,
        )
        for stage in policy.spec.stages
    )


def _some(opposed: Sequence[str], automations: int) -> tuple[str, ...]:
    """Those that do not switch automation on for a stage, where others do."""
    return tuple(opposed) if len(opposed) < automations else ()


def hand_written_rule(name: str, promotions: Iterable[PromotionPolicy]) -> StageRule:
    """The rule of a PackageVariant written by hand: a PromotionPolicy may publish it by name."""
    return StageRule(
        name=HAND_WRITTEN,
        automatic=any(name in promotion.spec.variants for promotion in promotions),
    )


def check_rule(check: Check) -> CheckRule:
    """A check that people report, or that a machine is asked about."""
    way = next(way for way in Way if getattr(check, _FIELDS[way]) is not None)
    asked = getattr(check, _FIELDS[way])
    names_it = getattr(asked, "observed_revision", None) is not None
    return CheckRule(
        name=check.name,
        way=way,
        timeout=check.timeout,
        fresh_for=check.fresh_for,
        settle=check.settle,
        names_revision=names_it or way is Way.COMMIT_STATUS,  # a status is of one commit
    )


_FIELDS = {
    Way.REPORT: "report",
    Way.OBJECT: "object",
    Way.PROMETHEUS: "prometheus",
    Way.HTTP: "http",
    Way.COMMIT_STATUS: "commit_status",
}


def _after(stage: Stage) -> After | None:
    after = stage.after
    if after is None:
        return None
    return After(
        stages=tuple(after.stages),
        require=Require(after.require.value),
        soak=after.soak or timedelta(0),
        at_least=after.at_least,
    )


def _rollout(stage: Stage) -> RolloutRule:
    rollout = stage.rollout
    if rollout is None:
        return AT_ONCE
    return RolloutRule(
        strategy=Strategy(rollout.strategy.value),
        step=rollout.step,
        factor=rollout.factor,
        max_in_flight=rollout.max_in_flight,
        max_failures=rollout.max_failures or 0,
        min_ready=rollout.min_ready or timedelta(0),
        progress_deadline=rollout.progress_deadline,
    )


def _automation(automation: AutoPromotion) -> Callable[[str], bool]:
    """Whether it promotes a stage of this name; most of what it says are names."""
    names = frozenset(automation.stages)
    patterns = [item for item in automation.stages if "*" in item]
    return lambda stage: stage in names or any(matches(item, stage) for item in patterns)


def _required(check: Check, promotions: Sequence[PromotionPolicy]) -> CheckRule | ApprovalRule:
    approval = check.approval
    if approval is None:
        return check_rule(check)
    groups = tuple(approval.from_)
    subjects = {
        person(subject)
        for promotion in promotions
        for approvers in promotion.spec.approvers
        if approvers.group in groups
        for subject in approvers.subjects
    }
    return ApprovalRule(
        name=check.name,
        at_least=approval.at_least,
        subjects=frozenset(subjects),
        groups=groups,
        expires=approval.expires,
        timeout=check.timeout,
        separation=any(promotion.spec.requires_separation for promotion in promotions),
    )


def calendars(promotions: Iterable[PromotionPolicy]) -> tuple[Calendar, ...]:
    """The windows of the PromotionPolicies; those without any close nothing and are left out.

    A window without a zone has its policy's, which is UTC where none is given. (Design §7.)
    """
    return tuple(_calendar(promotion) for promotion in promotions if promotion.spec.windows)


def finishing(promotions: Iterable[PromotionPolicy]) -> frozenset[str]:
    """The calendars whose end lets a rollout that has begun go on to its own."""
    return frozenset(
        promotion.metadata.name
        for promotion in promotions
        if promotion.spec.windows and promotion.spec.at_close is AtClose.FINISH
    )


def _calendar(promotion: PromotionPolicy) -> Calendar:
    spec = promotion.spec
    zone = spec.time_zone or "UTC"
    return Calendar(
        promotion.metadata.name,
        allow=tuple(_period(it.allow, zone) for it in spec.windows if it.allow),
        deny=tuple(_period(it.deny, zone) for it in spec.windows if it.deny),
    )


def _period(written: WrittenPeriod, zone: str) -> Period:
    return period(written.schedule, written.time_zone or zone, written.duration, written.until)
