"""Calendars of the gate engine, built from the windows of PromotionPolicy objects."""

from collections.abc import Iterable

from fanout.api.promotion_policy import AtClose, Period, PromotionPolicy, governs_policy
from fanout.api.upstream_policy import UpstreamPolicy
from fanout.calendar.publication_calendar import PublicationCalendar, RecurringWindow, build_window


def governing_promotions(
    policy: UpstreamPolicy, promotions: Iterable[PromotionPolicy]
) -> tuple[PromotionPolicy, ...]:
    """Return the PromotionPolicies of the same namespace that govern the policy."""
    return tuple(promotion for promotion in promotions if governs_policy(promotion, policy))


def build_calendars(promotions: Iterable[PromotionPolicy]) -> tuple[PublicationCalendar, ...]:
    """Build the calendars of the PromotionPolicies that have windows.

    A window without a time zone takes its policy's, which is UTC by default
    (docs/concepts/windows.md).
    """
    return tuple(
        PublicationCalendar(
            it.metadata.name,
            allow=tuple(_build_period(w.allow, it) for w in it.spec.windows if w.allow),
            deny=tuple(_build_period(w.deny, it) for w in it.spec.windows if w.deny),
        )
        for it in promotions
        if it.spec.windows
    )


def finishing_calendars(promotions: Iterable[PromotionPolicy]) -> frozenset[str]:
    """Return the names of the calendars at whose closing a rollout under way may finish."""
    return frozenset(
        promotion.metadata.name
        for promotion in promotions
        if promotion.spec.windows and promotion.spec.at_close is AtClose.FINISH
    )


def _build_period(written: Period, promotion: PromotionPolicy) -> RecurringWindow:
    zone = written.time_zone or promotion.spec.time_zone or "UTC"
    return build_window(written.schedule, zone, written.duration, written.until)
