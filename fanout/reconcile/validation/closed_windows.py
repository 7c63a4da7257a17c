"""Warnings about windows that never allow a publication."""

from collections.abc import Iterator
from datetime import datetime

from fanout.calendar.publication_calendar import compute_window_state
from fanout.declared.declared_objects import DeclaredObjects
from fanout.declared.finding import Finding
from fanout.plan.gates.policy_windows import build_calendars


def find_closed_windows(declared: DeclaredObjects, now: datetime) -> Iterator[Finding]:
    """Yield a warning for each PromotionPolicy whose windows never open from `now` on."""
    for promotion in declared.promotions:
        calendars = build_calendars([promotion])
        if not calendars:
            continue
        state = compute_window_state(calendars, now)
        if not state.open and state.until is None:
            yield Finding(
                declared.where(promotion, "spec.windows"),
                f"nothing is ever published: {state.message}",
                "shorten the deny windows, or add an allow window outside them",
                "warning",
            )
