"""From the windows of PromotionPolicies to calendars."""

from datetime import timedelta

import yaml
from timing import utc

from fanout.api.promotion_policy import PromotionPolicy
from fanout.calendar.publication_calendar import (
    PublicationCalendar,
    build_window,
    compute_window_state,
)
from fanout.plan.gates.stage_rules import build_calendars

HOUR = timedelta(hours=1)


def promotion(name: str, spec: str) -> PromotionPolicy:
    text = f"metadata: {{name: {name}, namespace: platform}}\nspec: {{policies: [a], {spec}}}"
    return PromotionPolicy.model_validate(yaml.safe_load(text), by_alias=True)


def test_a_window_without_a_zone_has_its_policy_s_and_that_is_utc_where_none_is_given():
    windows = (
        "windows: [{allow: {schedule: '@daily', duration: 1h}},"
        " {deny: {schedule: '@daily', until: '0 9 * * *', timeZone: Asia/Tokyo}}]"
    )
    here = promotion("here", f"timeZone: Europe/Oslo, {windows}")
    zoned = promotion("there", windows)
    tokyo = build_window("@daily", "Asia/Tokyo", until="0 9 * * *")
    assert build_calendars([here, zoned]) == (
        PublicationCalendar("here", (build_window("@daily", "Europe/Oslo", HOUR),), (tokyo,)),
        PublicationCalendar("there", (build_window("@daily", "UTC", HOUR),), (tokyo,)),
    )


def test_a_promotion_policy_without_windows_closes_nothing():
    assert build_calendars([promotion("open", "schedule: '@daily'")]) == ()
    assert compute_window_state((), utc("2026-11-21T09:00")).open
