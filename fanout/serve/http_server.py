"""HTTP server of `fanout run` in a thread of its own, and the routes of hooks and monitoring.

Anybody may connect, so each connection has a deadline for all that it does, and there are only so
many of them. Each carries one request.
"""

import asyncio
import re
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from ipaddress import IPv6Network, ip_address
from threading import Thread
from typing import cast

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, Router
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from fanout.controller.loop_health import LoopHealth
from fanout.errors import ErrorLocation, FanoutError, InvalidInput
from fanout.serve.hook_receiver import MAX_BODY, Hook, HookOutcome, HookReceiver
from fanout.telemetry.error_isolation import run_isolated

DEADLINE = 10.0  # seconds from the first byte to the last of one connection
MAX_CONNECTIONS = 64
BACKLOG = 1024  # connections that wait to be accepted; a flood must not fill it
MAX_HEADERS = 16 * 1024  # bytes
MAX_DISCARDED = 16 * 1024 * 1024  # bytes read of a body that is too long, before it is cut off
_GRACE = 1  # seconds that running requests have when the server ends

_log = structlog.get_logger()


class LimitedProtocol(H11Protocol):
    """Protocol of one connection, which is closed at its deadline, or when there are too many."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of a new connection; close another one if there are too many.

        Each open connection is a file of the process, and git needs files too. The address with
        the most connections loses one: a flood from one address leaves hooks and probes of all
        others alone.
        """
        super().connection_made(transport)
        self._deadline = self.loop.call_later(DEADLINE, transport.abort)
        # The address of one client: of IPv6 the network, which has addresses without end.
        self._network = self.client[0] if self.client else ""
        if ":" in self._network:
            address = self._network.partition("%")[0]
            self._network = str(IPv6Network((address, 64), strict=False))
        connections = cast("set[LimitedProtocol]", self.connections)
        # One that was just closed is in the set until the loop turns.
        open_connections = [it for it in connections if not it.transport.is_closing()]
        if len(open_connections) > MAX_CONNECTIONS:
            sizes = Counter(it._network for it in open_connections)  # noqa: SLF001
            # A request that has begun goes on before one that may never come. A hook takes
            # milliseconds, so the oldest connection is the one of a slow client.
            last = min(
                open_connections,
                key=lambda it: (-sizes[it._network], it.cycle is not None, it._deadline.when()),  # noqa: SLF001
            )
            last.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadline, and what would keep the connection in memory.

        Collections of cycles are rare in this process, and anybody can open connections.
        """
        self._deadline.cancel()
        super().connection_lost(exc)
        # A bound method of the transport itself.
        vars(self.transport).pop("_read_ready_cb", None)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request."""
        error = sys.exc_info()[1]
        super().send_400_response(msg)
        if error is not None:  # its frames hold the error and the connection
            error.__traceback__ = None


@contextmanager
def serve_http(address: str, option: str, routes: Sequence[Route]) -> Iterator[str]:
    """Serve on `HOST:PORT` while the block runs; yield the address as the system has it.

    Raises InvalidInput, which names the option, if nothing can listen there.
    """
    listening = open_socket(address, option)
    server = Server(
        Config(
            Router(routes, redirect_slashes=False),
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
            backlog=BACKLOG,
            h11_max_incomplete_event_size=MAX_HEADERS,
            timeout_graceful_shutdown=_GRACE,
        )
    )
    actual_address = format_address(listening)

    def run_server() -> None:
        result = run_isolated(partial(server.run, sockets=[listening]))
        # Hooks are a saving of time: without them the loop still looks at each interval.
        if isinstance(result, FanoutError):
            problem = str(result)
            _log.error("Nothing is served any more", address=actual_address, problem=problem)

    thread = Thread(target=run_server, name=f"http {option}", daemon=True)
    thread.start()
    try:
        yield actual_address
    finally:
        server.should_exit = True
        thread.join()


def route_hooks(receiver: HookReceiver) -> list[Route]:
    """Return the route for webhooks: `POST /hooks/<host>`."""

    async def receive_hook(request: Request) -> Response:
        # Whatever Content-Length says. A long body is read on and discarded: a client whose
        # connection ends while it still sends may never see the answer.
        body, length = bytearray(), 0
        try:
            async for part in request.stream():
                length += len(part)
                if length <= MAX_BODY:
                    body += part
                elif length > MAX_DISCARDED:
                    break
                else:
                    body.clear()
        except ClientDisconnect:
            receiver.count(HookOutcome.CUT)
            return Response(status_code=HookOutcome.CUT.status)
        read = bytes(body) if length <= MAX_BODY else None
        hook = Hook(request.path_params["host"], request.headers.items(), read)
        return Response(status_code=receiver.receive(hook).status)

    return [Route("/hooks/{host}", receive_hook, methods=["POST"])]


def route_monitoring(
    format_metrics: Callable[[str], tuple[bytes, str]], health: Callable[[], LoopHealth]
) -> list[Route]:
    """Return the routes `GET /metrics`, `GET /healthz` and `GET /readyz`.

    `format_metrics` returns the page of metrics and its type for the value of the header Accept.
    """

    async def report_metrics(request: Request) -> Response:
        # In a thread: a large page would hold up the hooks of the same server.
        page = await run_in_threadpool(format_metrics, request.headers.get("accept", ""))
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


_LISTEN_ADDRESS = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]\s/]+):(?P<port>[0-9]{1,5})")
_ADDRESS_REMEDY = "write HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080"


def open_socket(address: str, option: str) -> socket.socket:
    """Return a listening socket of `HOST:PORT`; port 0 is any free one.

    Raises InvalidInput, which names the option, if the text is no address, or nothing can listen
    there.
    """
    match = _LISTEN_ADDRESS.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise _invalid(f"{address!r} is not an address", _ADDRESS_REMEDY, option)
    host = match["host"].strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(match["port"])), family=family)
    # A name that no DNS can have is a UnicodeError.
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a host name"
        raise _invalid(
            f"cannot listen on {address}: {reason}",
            "name a free port of an address of this machine",
            option,
        ) from error


def format_address(listening: socket.socket) -> str:
    """Return `HOST:PORT` as the system has it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(address: str) -> bool:
    """Return whether only programs of this machine reach an address of `format_address`."""
    return ip_address(address.rpartition(":")[0].strip("[]")).is_loopback


def _invalid(problem: str, remedy: str, option: str) -> InvalidInput:
    where = ErrorLocation(field=option)
    return InvalidInput(problem, reason="InvalidSetting", remedy=remedy, where=where)
