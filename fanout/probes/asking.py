"""Asks services, several at a time, and never for longer or for more than it may.

A question that gets no answer is an answer of its own: why. Nothing here raises for what a server
does. (Design §6: unreachable holds.)
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

from fanout.api.web import origin_of
from fanout.errors import FanoutError
from fanout.gates.wording import counted, listed
from fanout.plan.probe import Heard, Probe, Unheard
from fanout.ports import TOKEN_USER, Secret
from fanout.probes.heard import of_prometheus, of_service
from fanout.probes.limits import Limits
from fanout.probes.network import AddressRefused, JudgingTransport

_AGENT = "fanout"
_QUERY = "/api/v1/query"
_BROKEN = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.UnsupportedProtocol,
    httpx2.HTTPError,
    httpx2.InvalidURL,
)


class HttpProbes:
    """Implements `fanout.ports.Probes`. Nothing is kept between two batches of questions."""

    def __init__(
        self,
        secrets: Callable[[str], Secret],
        lent: Mapping[str, Collection[str]],
        limits: Limits | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`lent` has, by the name of each secret that checks may use, the origins that may get it.

        A policy's author may name any secret, and sees none of those that Repositories have. `tell`
        hears of every batch how long it took and who gave no answer.
        """
        self._secrets = secrets
        self._lent = lent
        self._limits = limits or Limits()
        self._tell = tell

    def ask(self, questions: Sequence[Probe]) -> list[Heard | Unheard]:
        """An answer, or why there is none, to each question; equal ones are asked once."""
        distinct = list(dict.fromkeys(questions))
        if not distinct:
            return []
        begun = monotonic()
        answers = asyncio.run(_Batch(self._secrets, self._lent, self._limits).ask(distinct))
        if self._tell is not None:
            self._tell(_cost(answers, monotonic() - begun))
        return [answers[question] for question in questions]


class _NoAnswer(Exception):
    """There is none, and the text says why."""


class _Unreachable(_NoAnswer):
    """The host does not talk at all, so that further questions to it are in vain."""


@dataclass(slots=True)
class _Batch:
    """Questions that are asked together, over the connections that they share."""

    secrets: Callable[[str], Secret]
    lent: Mapping[str, Collection[str]]
    limits: Limits
    clients: dict[str, httpx2.AsyncClient] = field(default_factory=dict)  # by secret
    deaf: dict[str, str] = field(default_factory=dict)  # origin → why it is not asked again
    end: float = 0.0

    async def ask(self, questions: Sequence[Probe]) -> Mapping[Probe, Heard | Unheard]:
        self.end = asyncio.get_running_loop().time() + self.limits.batch_seconds
        free = asyncio.Semaphore(self.limits.at_once)
        try:
            answers = await asyncio.gather(*(self._one(question, free) for question in questions))
        finally:
            for client in self.clients.values():
                await client.aclose()
        return dict(zip(questions, answers, strict=True))

    async def _one(self, question: Probe, free: asyncio.Semaphore) -> Heard | Unheard:
        async with free:
            where = _shown(question.url)
            try:
                secret = self._secret(question) if question.secret else None
                status, content = await self._in_time(question, secret)
            except _Unreachable as error:
                self.deaf[origin_of(question.url)] = str(error)
                return Unheard(f"{where}: {error}")
            except (_NoAnswer, FanoutError) as error:
                return Unheard(f"{where}: {error}")
            if secret is not None and _gives_away(content, secret):
                return Unheard(f"{where}: it sends the secret back that it was asked with")
            told = (of_prometheus if question.query else of_service)(status, content)
            return Unheard(f"{where}: {told.sentence}") if isinstance(told, Unheard) else told

    def _secret(self, question: Probe) -> Secret:
        """The secret. Raises _NoAnswer or Denied."""
        origin = origin_of(question.url)
        if origin not in self.lent.get(question.secret, ()):
            raise _NoAnswer(
                f"checks may not send the secret {question.secret} there; an administrator lists it"
                f" with {origin} under checkSecrets of the FanoutConfiguration"
            )
        return self.secrets(question.secret)

    async def _in_time(self, question: Probe, secret: Secret | None) -> tuple[int, bytes]:
        if known := self.deaf.get(origin_of(question.url)):
            raise _NoAnswer(known)
        left = self.end - asyncio.get_running_loop().time()
        if left <= 0:
            spent = f"{self.limits.batch_seconds:g} s"
            raise _NoAnswer(f"not asked: the other questions took all of {spent}")
        try:
            async with asyncio.timeout(min(self.limits.seconds, left)):
                return await self._fetch(question, secret)
        except TimeoutError:
            raise _NoAnswer(f"no answer within {self.limits.seconds:g} s") from None
        except AddressRefused as error:
            raise _Unreachable(str(error)) from error
        except httpcore2.ConnectTimeout:
            waited = f"no connection within {self.limits.seconds / 2:g} s"
            raise _Unreachable(f"it cannot be reached: {waited}") from None
        except httpcore2.ConnectError as error:
            raise _Unreachable(f"it cannot be reached: {_reason(error)}") from error
        except (*_BROKEN, OSError, ValueError) as error:
            raise _NoAnswer(f"no answer that can be read: {_reason(error)}") from error

    async def _fetch(self, question: Probe, secret: Secret | None) -> tuple[int, bytes]:
        client = self._client(question.secret, secret)
        request = _request(client, question, secret)
        for _ in range(self.limits.redirects + 1):
            response = await client.send(request, stream=True)
            try:
                if response.next_request is None:
                    return response.status_code, await self._content(response)
                leads = str(response.next_request.url)
            finally:
                await response.aclose()
            if origin_of(leads) != origin_of(question.url):
                raise _NoAnswer(f"it leads to {origin_of(leads)}, where nobody was sent")
            request = response.next_request
        raise _NoAnswer(f"it leads on more than {self.limits.redirects} times")

    async def _content(self, response: httpx2.Response) -> bytes:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise _NoAnswer("its answer is compressed, which was not asked for")
        content = bytearray()
        async for chunk in response.aiter_raw():
            content += chunk
            if len(content) > self.limits.size:
                raise _NoAnswer(f"its answer has more than {self.limits.size} bytes")
        return bytes(content)

    def _client(self, name: str, secret: Secret | None) -> httpx2.AsyncClient:
        if name not in self.clients:
            own = secret.certificate_authority if secret else ""
            verify = ssl.create_default_context(cadata=own) if own else httpx2.create_ssl_context()
            self.clients[name] = httpx2.AsyncClient(
                transport=JudgingTransport(verify),
                trust_env=False,
                timeout=httpx2.Timeout(None, connect=self.limits.seconds / 2),
                headers={"User-Agent": _AGENT, "Accept-Encoding": "identity"},
            )
        return self.clients[name]


def _cost(answers: Mapping[Probe, Heard | Unheard], seconds: float) -> str:
    """What a batch took. Origins alone are named: the checks' sentences have the rest."""
    silent = [probe for probe, answer in answers.items() if isinstance(answer, Unheard)]
    said = f"services were asked {counted(len(answers), 'question')} in {seconds:.1f} s"
    if not silent:
        return said
    have = "has" if len(silent) == 1 else "have"
    whose = listed({origin_of(probe.url) for probe in silent})
    return f"{said}; {len(silent)} {have} no answer, from {whose}"


def _request(client: httpx2.AsyncClient, question: Probe, secret: Secret | None) -> httpx2.Request:
    headers = {"Accept": "application/json", **dict(question.headers)}
    if secret is not None:
        headers["Authorization"] = _authorization(secret)
    if question.query:
        url = question.url.rstrip("/") + _QUERY
        return client.build_request("POST", url, data={"query": question.query}, headers=headers)
    content = question.body.encode() if question.body else None
    if content is not None:
        headers.setdefault("Content-Type", "application/json")
    return client.build_request(question.method, question.url, content=content, headers=headers)


def _authorization(secret: Secret) -> str:
    if not secret.password:
        raise _NoAnswer("its secret has neither a password nor a token")
    if not (secret.password.isascii() and secret.password.isprintable()):
        raise _NoAnswer("its secret has characters that no header has")  # an error would show it
    if secret.username in ("", TOKEN_USER):
        return f"Bearer {secret.password}"
    pair = f"{secret.username}:{secret.password}".encode()
    return f"Basic {b64encode(pair).decode()}"


def _gives_away(content: bytes, secret: Secret) -> bool:
    """An expression could put it into a status, which everybody reads."""
    pair = f"{secret.username}:{secret.password}".encode()
    return secret.password.encode() in content or b64encode(pair) in content


def _shown(url: str) -> str:
    """Without the query, which may hold what is nobody's business."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def _reason(error: Exception) -> str:
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= 200 else f"{said[:197]}..."
