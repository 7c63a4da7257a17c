"""From what authors and administrators wrote to the rules that the gate engine knows."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

from fanout.api.approvers import governs
from fanout.api.checks import Check
from fanout.api.people import person
from fanout.api.promotion_policy import Period as WrittenPeriod
from fanout.api.promotion_policy import PromotionPolicy, matches
from fanout.api.stages import Stage
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.calendar.periods import Period, period
from fanout.calendar.windows import Calendar
from fanout.gates.rules import HAND_WRITTEN, After, ApprovalRule, CheckRule, Require, StageRule


def administrators(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """The PromotionPolicies that name the policy; only those of its own namespace can."""
    return tuple(promotion for promotion in promotions if governs(promotion, policy))


def stage_rules(
    policy: UpstreamPolicy, promotions: Sequence[PromotionPolicy]
) -> tuple[StageRule, ...]:
    """The policy's stages; `promotions` are those that name it.

    A stage is automatic when all of them say so, and at least one does. (Design §7.)
    """
    return tuple(_rule(stage, promotions) for stage in policy.spec.stages)


def hand_written_rule(name: str, promotions: Iterable[PromotionPolicy]) -> StageRule:
    """The rule of a PackageVariant written by hand: a PromotionPolicy may publish it by name."""
    return StageRule(
        name=HAND_WRITTEN,
        automatic=any(name in promotion.spec.variants for promotion in promotions),
    )


def _rule(stage: Stage, promotions: Sequence[PromotionPolicy]) -> StageRule:
    after = stage.after
    return StageRule(
        name=stage.name,
        after=After(tuple(after.stages), Require(after.require.value), after.soak or timedelta(0))
        if after
        else None,
        verification=tuple(CheckRule(check.name) for check in stage.verification),
        requires=tuple(_approval(check, promotions) for check in stage.requires),
        automatic=bool(promotions) and all(_automates(item, stage.name) for item in promotions),
        suspended=stage.suspend,
    )


def _automates(promotion: PromotionPolicy, stage: str) -> bool:
    automation = promotion.spec.auto_promotion
    return automation is not None and any(matches(item, stage) for item in automation.stages)


def _approval(check: Check, promotions: Sequence[PromotionPolicy]) -> ApprovalRule:
    assert check.approval is not None, "validation admits nothing else in `requires`"
    groups = tuple(check.approval.from_)
    subjects = {
        person(subject)
        for promotion in promotions
        for approvers in promotion.spec.approvers
        if approvers.group in groups
        for subject in approvers.subjects
    }
    return ApprovalRule(
        name=check.name,
        at_least=check.approval.at_least,
        subjects=frozenset(subjects),
        groups=groups,
        expires=check.approval.expires,
    )


def calendars(promotions: Iterable[PromotionPolicy]) -> tuple[Calendar, ...]:
    """The windows of the PromotionPolicies; those without any close nothing and are left out.

    A window without a zone has its policy's, which is UTC where none is given. (Design §7.)
    """
    return tuple(_calendar(promotion) for promotion in promotions if promotion.spec.windows)


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
