"""Tables of `fanout schedule`: the instants of a cron line, and when windows open and close."""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from fanout.api.durations import format_instant
from fanout.api.table_column import TableColumn
from fanout.calendar.publication_calendar import WindowState

INSTANT_COLUMNS = (
    TableColumn("DAY", "status.weekday"),
    TableColumn("LOCAL", "status.local"),
    TableColumn("UTC", "metadata.name"),
)
WINDOW_COLUMNS = (
    TableColumn("PUBLICATION", lambda view: "open" if view["status"]["open"] else "closed"),
    *INSTANT_COLUMNS,
    TableColumn("UNTIL", lambda view: view["status"]["until"] or "for ever"),
    TableColumn("MESSAGE", "status.message", wide=True),
)
AT_COLUMNS = (
    *WINDOW_COLUMNS[:-1],
    TableColumn("MESSAGE", "status.message"),
)


def serialize_instant(at: datetime, zone: ZoneInfo) -> dict[str, Any]:
    """Return an InstantView: an instant in UTC and in a time zone."""
    local = at.astimezone(zone)
    return {
        "apiVersion": "fanout.dev/v1alpha1",
        "kind": "InstantView",
        "metadata": {"name": format_instant(at)},
        "spec": {"timeZone": zone.key},
        "status": {"local": local.isoformat(), "weekday": local.strftime("%a")},
    }


def serialize_opening(at: datetime, opening_state: WindowState, zone: ZoneInfo) -> dict[str, Any]:
    """Return a WindowView: whether publication is allowed, from when and until when."""
    view, cause = serialize_instant(at, zone), opening_state.cause
    return {
        **view,
        "kind": "WindowView",
        "status": {
            **view["status"],
            "open": opening_state.open,
            "until": format_instant(opening_state.until) if opening_state.until else None,
            "promotionPolicy": cause.calendar if cause is not None else "",
            "window": cause.window_names if cause is not None else "",
            "message": opening_state.message,
        },
    }
