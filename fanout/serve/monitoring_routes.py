"""Routes of monitoring: metrics for Prometheus, health and readiness for probes."""

from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fanout.controller.loop_health import LoopHealth
from fanout.serve.run_metrics import RunMetrics


def route_monitoring(metrics: RunMetrics, health: Callable[[], LoopHealth]) -> list[Route]:
    """Return the routes `GET /metrics`, `GET /healthz` and `GET /readyz`."""

    async def report_metrics(request: Request) -> Response:
        # In a thread: a large page would hold up the hooks of the same server.
        page = await run_in_threadpool(metrics.format_page, request.headers.get("accept", ""))
        return Response(page[0], headers={"content-type": page[1]})

    async def report_health(_: Request) -> Response:
        state = health()
        if not state.is_stalled:
            return PlainTextResponse("ok\n")
        minutes = int(state.seconds_without_pass // 60)
        return PlainTextResponse(
            f"{state.waiting} triggers wait, and no pass has ended for {minutes} minutes\n", 503
        )

    async def report_readiness(_: Request) -> Response:
        state = health()
        if state.is_ready:
            return PlainTextResponse("ok\n")
        # Not the text of the error: whoever asks need not be allowed to read it.
        problem = "the last pass failed; see the log" if state.failure else "no pass has ended yet"
        return PlainTextResponse(f"{problem}\n", 503)

    return [
        Route("/metrics", report_metrics),
        Route("/healthz", report_health),
        Route("/readyz", report_readiness),
    ]
