"""Rules and calendars of the gate engine, built from UpstreamPolicy and PromotionPolicy objects."""

from collections.abc import Callable, Iterable, Sequence

from fanout.api.approver_names import join_people, parse_subject
from fanout.api.gate_vocabulary import CheckMethod
from fanout.api.promotion_policy import (
    AtClose,
    Period,
    PromotionPolicy,
    governs_policy,
    matches_name_pattern,
)
from fanout.api.stages import Check
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.calendar.publication_calendar import PublicationCalendar, RecurringWindow, build_window
from fanout.gates.gate_rules import (
    DEFAULT_ROLLOUT,
    HAND_WRITTEN,
    ApprovalRule,
    CheckRule,
    PropagationCondition,
    StageRule,
)


def build_stage_rules(
    policy: UpstreamPolicy,
    promotions: Sequence[PromotionPolicy],
    compile_condition: Callable[[str], PropagationCondition],
) -> tuple[StageRule, ...]:
    """Build one rule per stage of the policy.

    `promotions` are those that govern it. A stage is automatic when every one of them that has
    `autoPromotion` names it, and at least one does; those without are neutral
    (docs/concepts/promotion.md). `compile_condition` turns the text of an expression into a
    condition of the gate engine.
    """
    # Most entries are not patterns: exact names are looked up in a set.
    automations = [
        (it.metadata.name, frozenset(names), [name for name in names if "*" in name])
        for it in promotions
        if it.spec.auto_promotion is not None
        for names in [it.spec.auto_promotion.stages]
    ]
    opposing = {
        stage.name: [
            name
            for name, names, patterns in automations
            if stage.name not in names
            and not any(matches_name_pattern(it, stage.name) for it in patterns)
        ]
        for stage in policy.spec.stages
    }
    return tuple(
        StageRule(
            name=stage.name,
            after=stage.after,
            verification=tuple(build_check_rule(check) for check in stage.verification),
            requires=tuple(_build_requirement(check, promotions) for check in stage.requires),
            rollout=stage.rollout or DEFAULT_ROLLOUT,
            propagate_when=tuple(compile_condition(text) for text in stage.propagate_when),
            control_flow=stage.control_flow,
            pin=stage.pin or "",
            # Without any automation nobody opposes either, and the stage must stay manual.
            automatic=bool(automations) and not opposing[stage.name],
            automating_policies=tuple(
                name for name, *_ in automations if name not in opposing[stage.name]
            ),
            # If all of them leave the stage manual, none opposes another.
            opposing_policies=tuple(opposing[stage.name])
            if len(opposing[stage.name]) < len(automations)
            else (),
            suspended=stage.suspend,
        )
        for stage in policy.spec.stages
    )


def build_hand_written_rule(name: str, promotions: Iterable[PromotionPolicy]) -> StageRule:
    """Build the rule of a PackageVariant written by hand, automatic if promoted by name."""
    naming = tuple(it.metadata.name for it in promotions if name in it.spec.variants)
    return StageRule(name=HAND_WRITTEN, automatic=bool(naming), automating_policies=naming)


def build_check_rule(check: Check) -> CheckRule:
    """Build the rule of a check that is reported by people or answered by a machine."""
    machine_check = check.machine_check
    return CheckRule(
        check.name,
        check.method,
        check,
        # A status belongs to one commit; other answers name a revision only if configured to.
        names_revision=check.method is CheckMethod.COMMIT_STATUS
        or (machine_check is not None and machine_check.observed_revision is not None),
    )


def _build_requirement(
    check: Check, promotions: Sequence[PromotionPolicy]
) -> CheckRule | ApprovalRule:
    if (approval := check.approval) is None:
        return build_check_rule(check)
    groups = tuple(approval.from_)
    approver_groups = [it for promotion in promotions for it in promotion.spec.approvers]
    # Joined over all groups: another group may have the address of a person whom one of these has
    # by login alone.
    people = join_people(subject for group in approver_groups for subject in group.subjects)
    subjects = {
        people[name]
        for group in approver_groups
        if group.group in groups
        for subject in group.subjects
        for name in parse_subject(subject)
    }
    return ApprovalRule(
        name=check.name,
        at_least=approval.at_least,
        subjects=frozenset(subjects),
        groups=groups,
        expires=approval.expires,
        timeout=check.timeout,
        separation=any(promotion.spec.requires_separation for promotion in promotions),
        aliases={it: who for it, who in people.items() if who in subjects and who != it},
    )


def governing_promotions(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """Return the PromotionPolicies of the same namespace that govern the policy."""
    return tuple(promotion for promotion in promotions if governs_policy(promotion, policy))


def build_calendars(promotions: Iterable[PromotionPolicy]) -> tuple[PublicationCalendar, ...]:
    """Build the calendars of the PromotionPolicies that have windows.

    A window without a time zone takes its policy's, which is UTC by default.
    """
    return tuple(
        PublicationCalendar(
            it.metadata.name,
            allow=tuple(_build_period(w.allow, it) for w in it.spec.windows if w.allow),
            deny=tuple(_build_period(w.deny, it) for w in it.spec.windows if w.deny),
            lets_finish=it.spec.at_close is AtClose.FINISH,
        )
        for it in promotions
        if it.spec.windows
    )


def _build_period(written: Period, promotion: PromotionPolicy) -> RecurringWindow:
    zone = written.time_zone or promotion.spec.time_zone or "UTC"
    return build_window(written.schedule, zone, written.duration, written.until)
