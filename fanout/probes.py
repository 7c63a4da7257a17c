"""Probes of HTTP services and Prometheus servers for checks.

The name of a server is resolved here, and the connection is made to the resolved address: a second
lookup could return another one (DNS rebinding). Certificate and Host header remain
those of the name.

Fail closed: partial results, results that are not numbers and unexpected formats count
as no response.

A probe without response yields the reason for that as its result. Nothing is raised for
the behavior of a server (docs/concepts/checks.md).
"""

import asyncio
import json
import math
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from socket import SOCK_STREAM
from threading import Condition, Thread
from time import monotonic
from typing import Any, NoReturn
from urllib.parse import urlsplit

import httpcore2
import httpx2

from fanout.api.text_fields import pluralize
from fanout.api.urls import find_refusal, origin_of_url
from fanout.errors import FanoutError
from fanout.gates.gate_wording import format_names
from fanout.http_responses import TRANSPORT_ERRORS, read_response
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.ports import Credentials, authorization_header
from fanout.telemetry.error_isolation import run_isolated
from fanout.values import Value


class AddressRefused(Exception):
    """No address of a host may be connected to; the text is the reason."""


class AddressCheckingBackend(httpcore2.AsyncNetworkBackend):
    """Network backend that opens TCP connections to allowed addresses only."""

    def __init__(self) -> None:
        self._tcp = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first allowed address that responds; all share the timeout equally.

        Raises AddressRefused if no address is allowed, else httpcore2's errors.
        """
        # The address is passed on instead of the name, so that nothing is resolved a second time.
        addresses = await _resolve_allowed(host, port, timeout)
        share = timeout / len(addresses) if timeout is not None else None
        *first_addresses, last = addresses
        for address in first_addresses:
            try:
                return await self._tcp.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # the next address may answer
        return await self._tcp.connect_tcp(last, port, share, local_address, socket_options)


class AddressCheckingTransport(httpx2.AsyncBaseTransport):
    """Connection pool on `AddressCheckingBackend`; a proxy would resolve names itself."""

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify, network_backend=AddressCheckingBackend()
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises httpcore2's errors, as does the stream of the response."""
        url = request.url
        assert isinstance(request.stream, httpx2.AsyncByteStream)
        response = await self._pool.handle_async_request(
            httpcore2.Request(
                request.method,
                httpcore2.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_ResponseStream(response),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _ResponseStream(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.aiter_stream():
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


async def _resolve_allowed(host: str, port: int, seconds: float | None) -> list[str]:
    """Resolve a host to its allowed addresses. Raises AddressRefused if none is allowed."""
    try:
        async with asyncio.timeout(seconds):
            rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout(str(error)) from error
    except (OSError, UnicodeError) as error:  # UnicodeError: a label of the host is too long
        raise httpcore2.ConnectError(str(error)) from error
    addresses = list(dict.fromkeys(str(row[4][0]) for row in rows))
    allowed = [address for address in addresses if not find_refusal(address)]
    if not allowed:
        raise AddressRefused(f"the request was not sent: {find_refusal(addresses[0])}")
    return allowed


_Answer = ProbeResponse | ProbeFailure
HTTP_OK = 200
# Status codes without a statement about the service: it failed, or refused the request.
INCONCLUSIVE_STATUSES = frozenset({401, 403, 407, 408, 425, 429})
FIRST_SERVER_ERROR = 500
_MAX_QUOTE = 200  # characters of a server's message
_MAX_DEPTH = 64


class MalformedResponse(Exception):
    """A response has another format than expected; the text is the reason."""


def parse_service_response(status: int, content: bytes) -> _Answer:
    """Parse the response of an HTTP service: its status, and its body if it is JSON."""
    if status in INCONCLUSIVE_STATUSES or status >= FIRST_SERVER_ERROR:
        return ProbeFailure(f"HTTP status {status}, so the check has no result")
    try:
        return ProbeResponse({"status": status, "body": _parse_json(content)})
    except MalformedResponse as error:
        return ProbeResponse({"status": status}, str(error))


def parse_prometheus_response(status: int, content: bytes) -> _Answer:
    """Parse the response of Prometheus into a number or a list of {metric, value}.

    (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries)
    """
    try:
        response = _parse_json(content)
        if not isinstance(response, dict) or response.get("status") not in ("success", "error"):
            raise MalformedResponse("the response is not from Prometheus")
        if response["status"] == "error":
            return ProbeFailure(f"the query failed: {_shorten(response.get('error'))}")
        if status != HTTP_OK:
            return ProbeFailure(f"it answered with HTTP status {status}")
        if response.get("warnings"):
            return ProbeFailure(f"the answer may be partial: {_shorten(response['warnings'])}")
        return ProbeResponse(_parse_result(response.get("data")))
    except MalformedResponse as error:
        suffix = f" (HTTP status {status})" if status != HTTP_OK else ""
        return ProbeFailure(f"{error}{suffix}")


def _parse_result(data: object) -> Any:
    kind = data.get("resultType") if isinstance(data, Mapping) else None
    value = data.get("result") if isinstance(data, Mapping) else None
    match kind, value:
        case "scalar", [_, number]:
            return _parse_number(number, "the scalar")
        case "vector", []:
            raise MalformedResponse(
                "no series matches the query; write it so that it always yields one, with"
                " `or vector(0)` for example"
            )
        case "vector", list():
            return [_parse_sample(item) for item in value]
        case "matrix" | "string", _:
            raise MalformedResponse(
                f"the query yields a {kind}, and an instant vector or scalar is needed"
            )
    raise MalformedResponse("the response is not from Prometheus")


def _parse_sample(item: object) -> Mapping[str, Any]:
    match item:
        case {"metric": dict() as metric, "value": [_, value]}:
            labels = ", ".join(f"{name}={label}" for name, label in sorted(metric.items()))
            series = _shorten("{" + labels + "}")
            return {"metric": metric, "value": _parse_number(value, f"the series {series}")}
        case {"metric": dict(), "histogram": _}:
            raise MalformedResponse("a series is a native histogram; ask for a quantile of it")
    raise MalformedResponse("the response is not from Prometheus")


def _parse_number(text: object, subject: str) -> float:
    try:
        value = float(text) if isinstance(text, str) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise MalformedResponse(
            f"{subject} is {_shorten(text)}, which is no number to compare with"
        )
    return value


def _parse_json(content: bytes) -> Any:
    """Parse JSON into plain data. Raises MalformedResponse."""

    def reject(constant: str) -> NoReturn:
        raise ValueError(constant)

    try:
        value = json.loads(content.decode(), parse_constant=reject)
    except (ValueError, RecursionError) as error:
        raise MalformedResponse("its body is not JSON") from error
    # Level by level instead of recursively: a server could exhaust the stack.
    layer = [value]
    for _ in range(_MAX_DEPTH):
        inner: list[object] = []
        for item in layer:
            if isinstance(item, dict):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        if not inner:
            return value
        layer = inner
    raise MalformedResponse("its body is nested too deeply")


def _shorten(value: object) -> str:
    """Return a server's message on one line, shortened for a message of fanout."""
    text = value if isinstance(value, str) else json.dumps(value)
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUOTE else f"{line[: _MAX_QUOTE - 3]}..."


class ProbeLimits(Value):
    """Limits of probes: a service that exceeds them counts as one without response."""

    probe_seconds: float = 10.0  # per request with its redirects; half of it to connect
    batch_seconds: float = 60.0  # for all requests of a batch
    max_bytes: int = 1 << 20  # of a response
    concurrency: int = 8
    redirects: int = 3  # within one host


_USER_AGENT = "fanout"
_QUERY_PATH = "/api/v1/query"

_LATE_SECONDS = 300.0  # for which an answer is kept that came after its batch
_BRIEF = 0.2  # seconds of patience for a while after a batch has waited in vain
_IMPATIENCE = 10.0  # times as long as it waited


class HttpProbes:
    """Implementation of `fanout.ports.ProbeClient`.

    With patience, requests that take longer go on beside, and the next batch has their answers.
    """

    def __init__(
        self,
        secrets: Callable[[str], Credentials],
        allowed_origins: Mapping[str, Collection[str]],
        limits: ProbeLimits | None = None,
        report: Callable[[str], None] | None = None,
        patience: float | None = None,
    ) -> None:
        """Create probes; `secrets` returns a secret by name.

        `allowed_origins` has, by the name of each secret that checks may use, the origins it
        may be sent to: the author of a policy may name any secret, and must not obtain those of
        Repositories. `report` gets one line per batch: its duration and the services that did
        not respond. `patience`: seconds until a batch is answered without those that are under
        way; None: the limits alone count.
        """
        self._secrets = secrets
        self._allowed_origins = allowed_origins
        self._limits = limits or ProbeLimits()
        self._report = report
        self._patience = patience
        self._changed = Condition()  # guards what follows
        self._in_flight: set[ProbeQuery] = set()
        self._late_answers: dict[ProbeQuery, tuple[float, _Answer]] = {}
        # Origins that did not answer in time, and are not waited for.
        self._hanging: set[str] = set()
        self._impatient_until = 0.0  # by the monotonic clock

    def ask(self, requests: Sequence[ProbeQuery]) -> list[_Answer]:
        """Send all probes, equal ones once; return a response, or the reason for none, for each."""
        if not (distinct := list(dict.fromkeys(requests))):
            return []
        started = monotonic()
        answers = self._send(distinct) if self._patience is None else self._send_beside(distinct)
        if self._report is not None:
            summary = f"{pluralize(len(answers), 'probe')} took {monotonic() - started:.1f} s"
            failed = [probe for probe, it in answers.items() if isinstance(it, ProbeFailure)]
            if failed:  # only origins are named, not full URLs
                origins = format_names({origin_of_url(probe.url) for probe in failed})
                summary += f"; {len(failed)} got no answer, from {origins}"
            self._report(summary)
        return [answers[probe] for probe in requests]

    def _send(
        self,
        probes: Sequence[ProbeQuery],
        on_answer: Callable[[ProbeQuery, _Answer], None] | None = None,
    ) -> Mapping[ProbeQuery, _Answer]:
        batch = _Batch(self._secrets, self._allowed_origins, self._limits, on_answer)
        return asyncio.run(batch.send_all(probes))

    def _send_beside(self, probes: Sequence[ProbeQuery]) -> Mapping[ProbeQuery, _Answer]:
        """Send probes in a thread, and return what was answered before patience ended."""
        answers: dict[ProbeQuery, _Answer] = {}
        now = monotonic()

        def take_late_answers() -> None:
            for probe in probes:
                if probe in self._late_answers:
                    answers[probe] = self._late_answers.pop(probe)[1]

        with self._changed:
            self._late_answers = {
                probe: it for probe, it in self._late_answers.items() if now - it[0] < _LATE_SECONDS
            }
            take_late_answers()
            # One that is under way is not sent a second time.
            new = [it for it in probes if it not in answers and it not in self._in_flight]
            self._in_flight.update(new)

        if new:
            # A daemon: a process that ends must not wait for a service.
            Thread(target=self._run_beside, args=(new,), name="probes", daemon=True).start()
        patience = self._patience if now >= self._impatient_until else _BRIEF
        with self._changed:
            is_answered = self._changed.wait_for(
                lambda: all(
                    it not in self._in_flight or origin_of_url(it.url) in self._hanging
                    for it in probes
                ),
                timeout=patience,
            )
            if not is_answered:
                # Policies ask one after another: a hundred services that hang are one wait.
                self._impatient_until = monotonic() + _IMPATIENCE * (monotonic() - now)
                late = self._in_flight.intersection(probes)
                self._hanging |= {origin_of_url(it.url) for it in late}
            take_late_answers()
        for probe in probes:
            if probe not in answers:
                where = _without_query(probe.url)
                answers[probe] = ProbeFailure(f"{where}: no answer yet; the request goes on", True)
        return answers

    def _run_beside(self, probes: Sequence[ProbeQuery]) -> None:
        def keep(probe: ProbeQuery, answer: _Answer) -> None:
            with self._changed:
                self._late_answers[probe] = monotonic(), answer
                self._in_flight.discard(probe)
                if isinstance(answer, ProbeResponse):
                    self._hanging.discard(origin_of_url(probe.url))
                self._changed.notify_all()

        result = run_isolated(partial(self._send, probes, keep))
        if isinstance(result, FanoutError):
            for probe in probes:
                keep(probe, ProbeFailure(str(result)))


class _NoResponse(Exception):
    """A probe has no response; the text is the reason."""


class _Unreachable(_NoResponse):
    """A host cannot be connected to, so that further probes of it are skipped."""


@dataclass(slots=True)
class _Batch:
    """Probes that are sent together and share connections."""

    secrets: Callable[[str], Credentials]
    allowed_origins: Mapping[str, Collection[str]]
    limits: ProbeLimits
    on_answer: Callable[[ProbeQuery, _Answer], None] | None = None
    clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)  # by secret
    # error by origin that is not tried again
    unreachable: dict[str, str] = field(default_factory=dict)
    deadline: float = 0.0

    async def send_all(self, probes: Sequence[ProbeQuery]) -> Mapping[ProbeQuery, _Answer]:
        self.deadline = asyncio.get_running_loop().time() + self.limits.batch_seconds
        semaphore = asyncio.Semaphore(self.limits.concurrency)

        async def answer(probe: ProbeQuery) -> _Answer:
            async with semaphore:
                result = await self._send_one(probe)
            if self.on_answer is not None:
                self.on_answer(probe, result)
            return result

        try:
            answers = await asyncio.gather(*map(answer, probes))
        finally:
            for client in self.clients.values():
                await client.aclose()
        return dict(zip(probes, answers, strict=True))

    async def _send_one(self, probe: ProbeQuery) -> _Answer:
        where = _without_query(probe.url)
        try:
            secret = None
            if probe.secret:
                origin = origin_of_url(probe.url)
                if origin not in self.allowed_origins.get(probe.secret, ()):
                    raise _NoResponse(
                        f"checks may not send the secret {probe.secret} there; an administrator"
                        f" lists it with {origin} under checkSecrets of the FanoutConfiguration"
                    )
                secret = self.secrets(probe.secret)
            status, content = await self._fetch_in_time(probe, secret)
        except _Unreachable as error:
            self.unreachable[origin_of_url(probe.url)] = str(error)
            return ProbeFailure(f"{where}: {error}")
        except (_NoResponse, FanoutError) as error:
            return ProbeFailure(f"{where}: {error}")
        # An expression of the check could copy the secret into a status, which everybody can read.
        if secret is not None:
            pair = f"{secret.username}:{secret.password}".encode()
            if secret.password.encode() in content or b64encode(pair) in content:
                problem = "the response contains the secret of the request"
                return ProbeFailure(f"{where}: {problem}")
        parse = parse_prometheus_response if probe.query else parse_service_response
        response = parse(status, content)
        if isinstance(response, ProbeFailure):
            return ProbeFailure(f"{where}: {response.message}")
        return response

    async def _fetch_in_time(
        self, probe: ProbeQuery, secret: Credentials | None
    ) -> tuple[int, bytes]:
        if earlier_problem := self.unreachable.get(origin_of_url(probe.url)):
            raise _NoResponse(earlier_problem)
        remaining = self.deadline - asyncio.get_running_loop().time()
        if remaining <= 0:
            spent = f"{self.limits.batch_seconds:g} s"
            raise _NoResponse(f"the request was not sent: the other requests took all of {spent}")
        try:
            async with asyncio.timeout(min(self.limits.probe_seconds, remaining)):
                return await self._fetch(probe, secret)
        except TimeoutError:
            raise _NoResponse(f"no answer within {self.limits.probe_seconds:g} s") from None
        except AddressRefused as error:
            raise _Unreachable(str(error)) from error
        except httpcore2.ConnectTimeout:
            waited = f"no connection within {self.limits.probe_seconds / 2:g} s"
            raise _Unreachable(f"it cannot be reached: {waited}") from None
        except httpcore2.ConnectError as error:
            raise _Unreachable(f"it cannot be reached: {_describe_error(error)}") from error
        except TRANSPORT_ERRORS as error:
            raise _NoResponse(f"no answer that can be read: {_describe_error(error)}") from error

    async def _fetch(self, probe: ProbeQuery, secret: Credentials | None) -> tuple[int, bytes]:
        client = self._client_for(probe.secret, secret)
        headers = {"Accept": "application/json", **dict(probe.headers)}
        if secret is not None:
            headers["Authorization"] = authorization_header(secret)
        if probe.query:
            url, data = probe.url.rstrip("/") + _QUERY_PATH, {"query": probe.query}
            request = client.build_request("POST", url, data=data, headers=headers)
        else:
            content = probe.body.encode() if probe.body else None
            if content is not None:
                headers.setdefault("Content-Type", "application/json")
            request = client.build_request(
                probe.method, probe.url, content=content, headers=headers
            )
        for _ in range(self.limits.redirects + 1):
            response = await client.send(request, stream=True)
            try:
                if response.next_request is None:
                    return response.status_code, await read_response(
                        response, self.limits.max_bytes
                    )
                next_url = str(response.next_request.url)
            finally:
                await response.aclose()
            # A redirect to another origin would take the request, and the secret with it, to a
            # server that no administrator has allowed.
            if origin_of_url(next_url) != origin_of_url(probe.url):
                raise _NoResponse(
                    f"it redirects to {origin_of_url(next_url)}, which is not followed"
                )
            request = response.next_request
        raise _NoResponse(f"it redirects more than {self.limits.redirects} times")

    def _client_for(self, name: str, secret: Credentials | None) -> httpx2.AsyncClient:
        if name not in self.clients:
            if secret is not None and secret.certificate_authority:
                verify = ssl.create_default_context(cadata=secret.certificate_authority)
            else:
                verify = httpx2.create_ssl_context()
            self.clients[name] = httpx2.AsyncClient(
                transport=AddressCheckingTransport(verify),
                trust_env=False,
                timeout=httpx2.Timeout(None, connect=self.limits.probe_seconds / 2),
                headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"},
            )
        return self.clients[name]


def _without_query(url: str) -> str:
    """Return the URL without its query, which may have confidential values."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _describe_error(error: Exception) -> str:
    return _shorten(str(error)) or type(error).__name__
