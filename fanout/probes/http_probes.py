"""Concurrent HTTP probes, limited in time, size and redirects.

A probe without response yields the reason for that as its result. Nothing is raised for
the behavior of a server. (Design §6: an unreachable service holds the gate.)
"""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from urllib.parse import urlsplit

import httpcore2
import httpx2

from fanout.api.http_urls import origin_of_url
from fanout.errors import FanoutError
from fanout.gates.gate_wording import format_count, format_names
from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.ports import TOKEN_USER, Credentials
from fanout.probes.guarded_transport import AddressCheckingTransport, AddressRefused
from fanout.probes.probe_responses import parse_prometheus_response, parse_service_response
from fanout.values import frozen


@frozen
class ProbeLimits:
    """Limits of probes: a service that exceeds them counts as one without response."""

    probe_seconds: float = 10.0  # per request with its redirects; half of it to connect
    batch_seconds: float = 60.0  # for all requests of a batch
    max_bytes: int = 1 << 20  # of a response
    concurrency: int = 8
    redirects: int = 3  # within one host


_USER_AGENT = "fanout"
_QUERY_PATH = "/api/v1/query"
_TRANSPORT_ERRORS = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpx2.HTTPError,
    httpx2.InvalidURL,
)


class HttpProbes:
    """Implementation of `fanout.ports.ProbeClient`, without state between two batches."""

    def __init__(
        self,
        secrets: Callable[[str], Credentials],
        allowed_origins: Mapping[str, Collection[str]],
        limits: ProbeLimits | None = None,
        report: Callable[[str], None] | None = None,
    ) -> None:
        """Create probes; `secrets` returns a secret by name.

        `allowed_origins` has, by the name of each secret that checks may use, the origins it
        may be sent to: the author of a policy may name any secret, and must not obtain those of
        Repositories. `report` gets one line per batch: its duration and the services that did
        not respond.
        """
        self._secrets = secrets
        self._allowed_origins = allowed_origins
        self._limits = limits or ProbeLimits()
        self._report = report

    def ask(self, requests: Sequence[ProbeQuery]) -> list[ProbeResponse | ProbeFailure]:
        """Send all probes and return a response, or the reason for none, for each.

        Equal probes are sent once.
        """
        distinct = list(dict.fromkeys(requests))
        if not distinct:
            return []
        started = monotonic()
        answers = asyncio.run(
            _Batch(self._secrets, self._allowed_origins, self._limits).send_all(distinct)
        )
        if self._report is not None:
            self._report(_describe_batch(answers, monotonic() - started))
        return [answers[probe] for probe in requests]


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
    clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)  # by secret
    # error by origin that is not tried again
    unreachable: dict[str, str] = field(default_factory=dict)
    deadline: float = 0.0

    async def send_all(
        self, probes: Sequence[ProbeQuery]
    ) -> Mapping[ProbeQuery, ProbeResponse | ProbeFailure]:
        self.deadline = asyncio.get_running_loop().time() + self.limits.batch_seconds
        semaphore = asyncio.Semaphore(self.limits.concurrency)
        try:
            answers = await asyncio.gather(*(self._send_one(probe, semaphore) for probe in probes))
        finally:
            for client in self.clients.values():
                await client.aclose()
        return dict(zip(probes, answers, strict=True))

    async def _send_one(
        self, probe: ProbeQuery, semaphore: asyncio.Semaphore
    ) -> ProbeResponse | ProbeFailure:
        async with semaphore:
            where = _without_query(probe.url)
            try:
                secret = self._find_secret(probe) if probe.secret else None
                status, content = await self._fetch_in_time(probe, secret)
            except _Unreachable as error:
                self.unreachable[origin_of_url(probe.url)] = str(error)
                return ProbeFailure(f"{where}: {error}")
            except (_NoResponse, FanoutError) as error:
                return ProbeFailure(f"{where}: {error}")
            if secret is not None and _contains_secret(content, secret):
                return ProbeFailure(f"{where}: it sends the secret back that it was asked with")
            response = (parse_prometheus_response if probe.query else parse_service_response)(
                status, content
            )
            return (
                ProbeFailure(f"{where}: {response.sentence}")
                if isinstance(response, ProbeFailure)
                else response
            )

    def _find_secret(self, probe: ProbeQuery) -> Credentials:
        """Return the secret of a probe.

        Raises _NoResponse if the origin may not receive it, Denied.
        """
        origin = origin_of_url(probe.url)
        if origin not in self.allowed_origins.get(probe.secret, ()):
            raise _NoResponse(
                f"checks may not send the secret {probe.secret} there; an administrator lists it"
                f" with {origin} under checkSecrets of the FanoutConfiguration"
            )
        return self.secrets(probe.secret)

    async def _fetch_in_time(
        self, probe: ProbeQuery, secret: Credentials | None
    ) -> tuple[int, bytes]:
        if earlier_problem := self.unreachable.get(origin_of_url(probe.url)):
            raise _NoResponse(earlier_problem)
        remaining = self.deadline - asyncio.get_running_loop().time()
        if remaining <= 0:
            spent = f"{self.limits.batch_seconds:g} s"
            raise _NoResponse(f"not asked: the other questions took all of {spent}")
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
        except (*_TRANSPORT_ERRORS, OSError, ValueError) as error:
            raise _NoResponse(f"no answer that can be read: {_describe_error(error)}") from error

    async def _fetch(self, probe: ProbeQuery, secret: Credentials | None) -> tuple[int, bytes]:
        client = self._client_for(probe.secret, secret)
        request = _build_request(client, probe, secret)
        for _ in range(self.limits.redirects + 1):
            response = await client.send(request, stream=True)
            try:
                if response.next_request is None:
                    return response.status_code, await self._read_content(response)
                next_url = str(response.next_request.url)
            finally:
                await response.aclose()
            # A redirect to another origin would take the request, and the secret with it, to a
            # server that no administrator has allowed.
            if origin_of_url(next_url) != origin_of_url(probe.url):
                raise _NoResponse(f"it leads to {origin_of_url(next_url)}, where nobody was sent")
            request = response.next_request
        raise _NoResponse(f"it leads on more than {self.limits.redirects} times")

    async def _read_content(self, response: httpx2.Response) -> bytes:
        # A small compressed body can expand beyond all limits of size.
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _NoResponse("its answer is compressed, which was not asked for")
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > self.limits.max_bytes:
                raise _NoResponse(f"its answer has more than {self.limits.max_bytes} bytes")
        return bytes(content)

    def _client_for(self, name: str, secret: Credentials | None) -> httpx2.AsyncClient:
        if name not in self.clients:
            certificate_authority = secret.certificate_authority if secret else ""
            verify = (
                ssl.create_default_context(cadata=certificate_authority)
                if certificate_authority
                else httpx2.create_ssl_context()
            )
            self.clients[name] = httpx2.AsyncClient(
                transport=AddressCheckingTransport(verify),
                trust_env=False,
                timeout=httpx2.Timeout(None, connect=self.limits.probe_seconds / 2),
                headers={"User-Agent": _USER_AGENT, "Accept-Encoding": "identity"},
            )
        return self.clients[name]


def _describe_batch(
    answers: Mapping[ProbeQuery, ProbeResponse | ProbeFailure], seconds: float
) -> str:
    """Describe duration and failures of a batch; only origins are named, not full URLs."""
    unanswered = [probe for probe, answer in answers.items() if isinstance(answer, ProbeFailure)]
    summary = f"services were asked {format_count(len(answers), 'question')} in {seconds:.1f} s"
    if not unanswered:
        return summary
    have = "has" if len(unanswered) == 1 else "have"
    origins = format_names({origin_of_url(probe.url) for probe in unanswered})
    return f"{summary}; {len(unanswered)} {have} no answer, from {origins}"


def _build_request(
    client: httpx2.AsyncClient, probe: ProbeQuery, secret: Credentials | None
) -> httpx2.Request:
    headers = {"Accept": "application/json", **dict(probe.headers)}
    if secret is not None:
        headers["Authorization"] = _authorization_header(secret)
    if probe.query:
        url = probe.url.rstrip("/") + _QUERY_PATH
        return client.build_request("POST", url, data={"query": probe.query}, headers=headers)
    content = probe.body.encode() if probe.body else None
    if content is not None:
        headers.setdefault("Content-Type", "application/json")
    return client.build_request(probe.method, probe.url, content=content, headers=headers)


def _authorization_header(secret: Credentials) -> str:
    if not secret.password:
        raise _NoResponse("its secret has neither a password nor a token")
    if not (secret.password.isascii() and secret.password.isprintable()):
        # httpx2's own error would show the secret
        raise _NoResponse("its secret has characters that no header has")
    if secret.username in ("", TOKEN_USER):
        return f"Bearer {secret.password}"
    pair = f"{secret.username}:{secret.password}".encode()
    return f"Basic {b64encode(pair).decode()}"


def _contains_secret(content: bytes, secret: Credentials) -> bool:
    """Return whether a response contains the secret.

    An expression of the check could copy it into a status, which everybody can read.
    """
    pair = f"{secret.username}:{secret.password}".encode()
    return secret.password.encode() in content or b64encode(pair) in content


def _without_query(url: str) -> str:
    """Return the URL without its query, which may have confidential values."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _describe_error(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else f"{text[:197]}..."
