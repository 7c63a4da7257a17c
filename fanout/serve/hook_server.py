"""HTTP server of `fanout run` in a thread of its own: hooks, health, metrics.

Anybody may connect, so each connection has a deadline for all that it does, and there are only so
many of them. Each carries one request.
"""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Thread
from typing import cast

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from fanout.errors import FanoutError
from fanout.serve.hook_receiver import (
    MAX_BODY,
    STATUS_BY_OUTCOME,
    Hook,
    HookOutcome,
    HookReceiver,
)
from fanout.serve.listen_address import format_address, open_socket
from fanout.telemetry.error_isolation import run_isolated
from fanout.telemetry.metrics import Counters

DEADLINE = 10.0  # seconds from the first byte to the last of one connection
MAX_CONNECTIONS = 64
MAX_HEADERS = 16 * 1024  # bytes
MAX_DISCARDED = 16 * 1024 * 1024  # bytes read of a body that is too long, before it is cut off
_GRACE = 1  # seconds that running requests have when the server ends

_log = structlog.get_logger()


class LimitedProtocol(H11Protocol):
    """Protocol of one connection, which is closed at its deadline, or when there are too many."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of a new connection; close the oldest if there are too many.

        Each open connection is a file of the process, and git needs files too. A hook takes
        milliseconds: the oldest connection is the one of a slow client, the newest may be a hook.
        """
        super().connection_made(transport)
        self._deadline = self.loop.call_later(DEADLINE, transport.abort)
        connections = cast("set[LimitedProtocol]", self.connections)
        # One that was just closed is in the set until the loop turns.
        open_connections = [it for it in connections if not it.transport.is_closing()]
        if len(open_connections) > MAX_CONNECTIONS:
            oldest = min(open_connections, key=lambda it: it._deadline.when())  # noqa: SLF001
            oldest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline."""
        self._deadline.cancel()
        super().connection_lost(exc)


@contextmanager
def serve_hooks(address: str, receiver: HookReceiver, counters: Counters) -> Iterator[str]:
    """Serve on `HOST:PORT` while the block runs; yield the address as the system has it.

    Raises InvalidInput if nothing can listen there.
    """
    listening = open_socket(address)
    server = Server(
        Config(
            build_application(receiver, counters),
            http=LimitedProtocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            # Its log would quote what unknown clients send, as often as they send it.
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            headers=[("connection", "close")],
            backlog=MAX_CONNECTIONS,
            h11_max_incomplete_event_size=MAX_HEADERS,
            timeout_graceful_shutdown=_GRACE,
        )
    )
    actual_address = format_address(listening)
    thread = Thread(target=_run, args=(server, listening), name="hooks", daemon=True)
    thread.start()
    try:
        yield actual_address
    finally:
        server.should_exit = True
        thread.join()


def build_application(receiver: HookReceiver, counters: Counters) -> Router:
    """Build the application: `POST /hooks/<host>`, `GET /healthz` and `GET /metrics`."""

    async def receive_hook(request: Request) -> Response:
        try:
            body = await _read_body(request)
        except ClientDisconnect:
            receiver.count(HookOutcome.CUT)
            return Response(status_code=STATUS_BY_OUTCOME[HookOutcome.CUT])
        hook = Hook(request.path_params["host"], request.headers.items(), body)
        return Response(status_code=STATUS_BY_OUTCOME[receiver.receive(hook)])

    async def report_health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def report_metrics(_: Request) -> Response:
        return PlainTextResponse(_format_metrics(counters), media_type="text/plain; version=0.0.4")

    return Router(
        [
            Route("/hooks/{host}", receive_hook, methods=["POST"]),
            Route("/healthz", report_health),
            Route("/metrics", report_metrics),
        ],
        redirect_slashes=False,
    )


async def _read_body(request: Request) -> bytes | None:
    """Return the body, or None if it is too long, whatever Content-Length says.

    A long body is read on and discarded: a client whose connection ends while it still sends may
    never see the answer. Raises ClientDisconnect if it does not come to its end.
    """
    body, length = bytearray(), 0
    async for part in request.stream():
        length += len(part)
        if length <= MAX_BODY:
            body += part
        elif length > MAX_DISCARDED:
            break
        else:
            body.clear()
    return bytes(body) if length <= MAX_BODY else None


def _format_metrics(counters: Counters) -> str:
    """Return the counts of hooks in the text format of Prometheus."""
    counts = counters.read_hooks()
    lines = [f'fanout_hooks_total{{outcome="{it}"}} {counts.get(it, 0)}\n' for it in HookOutcome]
    return "# TYPE fanout_hooks_total counter\n" + "".join(lines)


def _run(server: Server, listening: socket.socket) -> None:
    result = run_isolated(partial(server.run, sockets=[listening]))
    # Hooks are a saving of time: without them the loop still looks at each interval.
    if isinstance(result, FanoutError):
        _log.error("Hooks are not served any more", problem=str(result))
