"""Table of `fanout forecast`: when each stage begins with a revision, and when it passes."""

from fanout.api.output_views import ForecastView, ForecastViewSpec
from fanout.api.results import ForecastResult
from fanout.api.table_column import Object, TableColumn
from fanout.api.view_base import ViewMeta, dump_view
from fanout.reconcile.pass_results import PolicyResult
from fanout.values import replace

FORECAST_COLUMNS = (
    TableColumn("STAGE", "spec.stage"),
    TableColumn("REVISION", "spec.revision"),
    TableColumn("BEGINS", "status.begins"),
    TableColumn("PASSES", "status.passes"),
    TableColumn(
        "WAITS FOR", lambda view: "; ".join(it["message"] for it in view["status"]["holds"])
    ),
    TableColumn("IF", lambda view: "; ".join(view["status"]["assumptions"])),
)


def serialize_forecast(
    item: PolicyResult, stage: str, revision: str, forecast: ForecastResult
) -> Object:
    """Return the ForecastView of one stage; "" is the stage of a variant without a policy."""
    name = item.resolved_policy.name
    holds = tuple(replace(hold, since=None, until=None) for hold in forecast.holds)
    view = ForecastView(
        metadata=ViewMeta(f"{name}/{stage}" if stage else name, item.resolved_policy.namespace),
        spec=ForecastViewSpec(
            name if item.resolved_policy.upstream_policy is not None else "", stage, revision
        ),
        status=replace(forecast, holds=holds),
    )
    return dump_view(view)
