"""JSON over HTTP to the API of one host, for one account.

Every call of fanout to a forge is made here, under one governor for each host and account.

Connections are asynchronous, in a thread of their own: only so a call has one deadline for all of
it. A server that sends a byte now and then never exceeds the timeout of a read.

Nothing that httpx2 raises leaves this module: its errors show headers, one of which is the token.
"""

import asyncio
import hashlib
import json
import ssl
from collections.abc import Coroutine, Mapping
from concurrent.futures import CancelledError
from datetime import UTC, datetime, timedelta
from threading import Lock, Thread
from time import monotonic
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

import httpx2

from fanout.api.durations import parse_http_date
from fanout.errors import Denied, FanoutError, InvalidInput, RateLimited, Unavailable
from fanout.forge.access_tokens import StaticToken, TokenSource
from fanout.forge.answer_memo import AnswerMemo
from fanout.forge.forge_call import ForgeCall, ForgeResponse
from fanout.forge.governor import (
    CallDeferred,
    CallQueue,
    CircuitBreaker,
    Governor,
    RefusalBackoff,
    instant_after,
)
from fanout.forge.rate_limits import LimitRefusal, read_limits
from fanout.http_responses import TRANSPORT_ERRORS, read_response
from fanout.plan.pull_requests.call_limits import CallKind, CallLimits
from fanout.ports import Credentials
from fanout.telemetry.metrics import EventCounters, EventName
from fanout.telemetry.redaction import Redactor
from fanout.values import Value, replace

Result = TypeVar("Result")
RawAnswer = tuple[int, httpx2.Headers, bytes]  # status, headers, content

_MAX_QUOTE = 200  # characters of a server's message


class HttpLimits(Value):
    """Limits of one call; an answer that exceeds them counts as none."""

    seconds: float = 60.0  # all of a call; merging in a large repository takes half of it
    # of whoever waits for the answer; a write goes on without it
    patience: float = 60.0
    connect_seconds: float = 10.0
    max_bytes: int = 16 << 20  # a page of 50 requests with long texts has 4 MiB


class HostAccess(Value):
    """Address of a host's API, and the secret for it."""

    host: str  # "git.example.com"
    api: str  # "https://git.example.com/api/v1"
    secret: Credentials
    secret_name: str = ""
    certificate_authority: str = ""  # PEM; empty: the secret's, else the system's authorities
    owner: str = ""  # of the repositories, where each owner has an account and limits of its own
    headers: tuple[tuple[str, str], ...] = ()  # of each call, besides fanout's own

    @property
    def name(self) -> str:
        """Return the host as messages about its limits name it: with the owner, if there is one."""
        return f"{self.host}/{self.owner}" if self.owner else self.host


class HostFailure(Unavailable):
    """A host gave no usable answer; other calls may fail as well."""


class HostTimeout(HostFailure):
    """A host gave no answer in time; other calls would wait for as long."""


class TokenRefused(Denied):
    """A host does not accept the header of a call, and did not carry it out (401)."""


class ForgeHttp:
    """Client of one account of a host; `close` ends its thread and connections. Thread-safe."""

    def __init__(
        self,
        access: HostAccess,
        call_limits: CallLimits | None = None,
        http_limits: HttpLimits | None = None,
        events: EventCounters | None = None,
        tokens: TokenSource | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        """Create a client, which counts its calls in `events`. Raises Denied, InvalidInput.

        `tokens`: default: the token of the secret. `redactor` knows the secrets that `tokens` has.
        """
        self.access = access
        self._limits = http_limits or HttpLimits()
        self._governor = Governor(call_limits or CallLimits())
        self._events = events or EventCounters()
        self._breaker = CircuitBreaker()
        self._backoff = RefusalBackoff()
        self._answers = AnswerMemo()
        self._redactor = redactor or Redactor()
        self._redactor.register(access.secret.password, access.secret.username)
        try:
            self._tokens = tokens or StaticToken(access.secret)
        except Denied as error:
            raise Denied(
                f"{access.host} cannot be called: {error.problem}", reason=error.reason
            ) from None
        account = f"{access.api}\0{self._tokens.identity}"
        self.account_digest = hashlib.sha256(account.encode()).hexdigest()
        self._clock_offset = timedelta()  # how far the host's clock is ahead
        authority = access.certificate_authority or access.secret.certificate_authority
        if not authority:
            self._tls = httpx2.create_ssl_context()
        else:
            try:
                self._tls = ssl.create_default_context(cadata=authority)
            except (ssl.SSLError, ValueError):
                raise InvalidInput(
                    f"the certificate authority for {access.host} is no certificate in PEM",
                    reason="InvalidObject",
                ) from None
        self._lock = Lock()
        self._connection: _Connection | None = None

    def send(self, call: ForgeCall) -> ForgeResponse:
        """Make a call and return its answer.

        A read without a usable answer is made once more. A write is not: only looking tells
        whether it was carried out. Both are where a token ended. Raises Denied, RateLimited,
        Unavailable.
        """
        connection = self._connect()
        authorization = self._tokens.authorization()
        try:
            return connection.run(self._send(connection, call, authorization))
        except TokenRefused:
            if not self._tokens.renew(authorization, self._clock_offset):
                raise
        return connection.run(self._send(connection, call, self._tokens.authorization()))

    def share_creations(self, demand: Mapping[str, int]) -> None:
        """Divide the creations left in this hour among policies, by what each of them wants."""

        async def share() -> None:
            self._governor.share_creations(demand, monotonic())

        self._connect().run(share())

    def remaining_calls(self) -> Mapping[str, int]:
        """Return how many more calls each limit allows now; empty before the first call."""
        connection = self._connection
        if connection is None:
            return {}

        async def read() -> Mapping[str, int]:
            return self._governor.remaining_calls(monotonic())

        return connection.run(read())

    def quote(self, text: str) -> str:
        """Return a text of the server for a message: one line, shortened, without secrets."""
        printable = "".join(char if char.isprintable() else " " for char in text)
        line = self._redactor.redact_text(" ".join(printable.split()))
        return line if len(line) <= _MAX_QUOTE else f"{line[: _MAX_QUOTE - 3]}..."

    def close(self) -> None:
        """End the connections; a later call opens new ones."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> "_Connection":
        with self._lock:
            if self._connection is None:
                client = httpx2.AsyncClient(
                    verify=self._tls,
                    # Proxies of the environment are used, as by Git: administrators name hosts.
                    trust_env=True,
                    follow_redirects=False,
                    timeout=httpx2.Timeout(None, connect=self._limits.connect_seconds),
                    headers={
                        "User-Agent": "fanout",
                        "Accept": "application/json",
                        # A small compressed answer can expand beyond all limits of size.
                        "Accept-Encoding": "identity",
                        **dict(self.access.headers),
                    },
                )
                queue = CallQueue(self._governor, self.access.name, monotonic)
                self._connection = _Connection(client, queue)
            return self._connection

    async def _send(
        self, connection: "_Connection", call: ForgeCall, authorization: str
    ) -> ForgeResponse:
        try:
            return await self._send_once(connection, call, authorization)
        except (CallDeferred, HostTimeout):
            raise
        except (HostFailure, RateLimited) as error:
            if call.kind is not CallKind.READ:
                raise
            failure = error
        try:
            return await self._send_once(connection, call, authorization)
        except CallDeferred:
            raise failure from None  # what the host answered says more

    async def _send_once(
        self, connection: "_Connection", call: ForgeCall, authorization: str
    ) -> ForgeResponse:
        async with connection.queue.turn(call.kind, call.policy, call.pool):
            if self._breaker.is_open(monotonic()):
                raise self._failure(call, "no call was made, because earlier calls failed")
            try:
                former = self._answers.find(call)
                fetch = self._fetch(connection.client, call, authorization, former)
                response = self._read(call, former, *await self._wait_for(call, fetch))
            except HostTimeout:
                self._breaker.record_silence(monotonic())
                raise
            except HostFailure:
                self._breaker.record_failure(monotonic())
                raise
            except FanoutError:
                self._breaker.record_success()
                raise
            self._breaker.record_success()
            return response

    async def _wait_for(self, call: ForgeCall, fetch: Coroutine[Any, Any, RawAnswer]) -> RawAnswer:
        """Return the answer. A write that nobody waits for any more goes on to its end."""
        task = asyncio.ensure_future(fetch)
        try:
            done, _ = await asyncio.wait({task}, timeout=self._limits.patience)
        except asyncio.CancelledError:
            task.cancel()
            raise
        if done:
            return task.result()
        if call.kind is CallKind.READ:
            task.cancel()
        task.add_done_callback(lambda it: it.cancelled() or it.exception())
        raise self._silence(call, "nothing", self._limits.patience)

    async def _fetch(
        self,
        client: httpx2.AsyncClient,
        call: ForgeCall,
        authorization: str,
        former: ForgeResponse | None,
    ) -> RawAnswer:
        url = f"{(call.base or self.access.api).rstrip('/')}/{call.address}"
        headers = {"Authorization": authorization}
        if former is not None:
            headers["If-None-Match"] = former.etag
        request = client.build_request(call.method, url, json=call.body, headers=headers)
        started, code = monotonic(), "none"
        try:
            async with asyncio.timeout(self._limits.seconds):
                response = await client.send(request, stream=True)
                code = str(response.status_code)
                try:
                    content = await read_response(response, self._limits.max_bytes)
                    return response.status_code, response.headers, content
                finally:
                    await response.aclose()
        except TimeoutError:
            raise self._silence(call, "nothing", self._limits.seconds) from None
        except httpx2.ConnectTimeout:
            raise self._silence(call, "no connection", self._limits.connect_seconds) from None
        except TRANSPORT_ERRORS as error:
            raise self._failure(call, self.quote(str(error) or type(error).__name__)) from None
        finally:
            host, seconds = self.access.host, monotonic() - started
            self._events.add(EventName.FORGE_CALL, host, call.method, code)
            self._events.add(EventName.FORGE_SECONDS, host, number=seconds)

    def _read(
        self,
        call: ForgeCall,
        former: ForgeResponse | None,
        status: int,
        headers: httpx2.Headers,
        content: bytes,
    ) -> ForgeResponse:
        instant = parse_http_date(headers.get("date"))
        if instant is not None:
            self._clock_offset = instant - datetime.now(UTC)
        words = ""
        if status >= 400:
            answer = self._parse(call, status, content)
            message = answer.get("message") if isinstance(answer, dict) else None
            words = message if isinstance(message, str) else ""
        self._take_limits(call, status, headers, words, instant)
        if status in call.expected or 200 <= status < 300:
            has_next_page = 'rel="next"' in headers.get("link", "")
            data, etag = self._parse(call, status, content), headers.get("etag", "")
            response = ForgeResponse(status, data, has_next_page, instant, etag)
            if 200 <= status < 300:
                self._answers.keep(call, response, len(content))
            return response
        if status == 304 and former is not None:
            return replace(former, instant=instant, is_unchanged=True)
        if 300 <= status < 400:
            # Neither the call nor the token is sent there: a person decides whether it is the same.
            try:
                base = f"{self.access.api.rstrip('/')}/{call.quoted_path}"
                parts = urlsplit(urljoin(base, headers.get("location", "")))
                port = f":{parts.port}" if parts.port else ""
                address = f"{parts.scheme}://{parts.hostname}{port}{parts.path}"
            except ValueError:
                address = "an address that cannot be read"
            raise Unavailable(
                f"{self.access.host} has moved {call.resource} to {self.quote(address)}",
                reason="ForgeUnavailable",
                remedy="correct the URL of the Repository",
            )
        raise self._refusal(call, status, words, headers.get("x-accepted-github-permissions", ""))

    def _take_limits(
        self,
        call: ForgeCall,
        status: int,
        headers: httpx2.Headers,
        words: str,
        instant: datetime | None,
    ) -> None:
        """Take over what an answer says about limits. Raises RateLimited."""
        report = read_limits(status, headers, words, instant or datetime.now(UTC))
        now, pool = monotonic(), report.pool or call.pool
        if (count := report.count) is not None:
            ends = now + count.seconds
            self._governor.observe_quota(pool, count.remaining, count.reset, ends)
        seconds = report.wait_seconds
        if report.refusal is None and seconds is None:
            if status < 400:
                self._backoff.record_success(call.kind)
            return
        if seconds is None:
            seconds = self._backoff.record_refusal(call.kind)
        if report.refusal is not LimitRefusal.POOL:  # of which the count is 0
            self._governor.hold_until(now + seconds)
        if report.refusal is not None:
            problem = f"{self.access.name} takes no more calls ({status})"
            raise RateLimited(problem, until=instant_after(seconds))

    def _parse(self, call: ForgeCall, status: int, content: bytes) -> Any:
        if not content.strip():
            return None
        try:
            return json.loads(content.decode())
        except (ValueError, RecursionError):
            if status >= 400:  # the status is the answer
                return None
            raise self._failure(call, "the response is not JSON") from None

    def _refusal(self, call: ForgeCall, status: int, words: str, permissions: str) -> FanoutError:
        """Return the error for a refusal; `permissions`: those that the host asks for."""
        host, secret = self.access.host, self.access.secret_name
        suffix = f": {self.quote(words)}" if words else ""
        if status >= 500:
            return self._failure(call, f"status {status}{suffix}")
        if status == 423:
            problem = f"{host} has locked the repository of {call.resource} (423){suffix}"
            remedy = "unarchive the repository, or remove the Repository"
            return Unavailable(problem, reason="ForgeUnavailable", remedy=remedy)
        if status == 401:
            problem = f"{host} does not accept the token of fanout (401){suffix}"
            remedy = f"renew the secret {secret}" if secret else "renew its secret"
            quoted = (self.quote(words),) if words else ()
            return TokenRefused(problem, reason="ForgeDenied", remedy=remedy, words=quoted)
        if status == 403:
            problem = f"{host} forbids {call.resource} (403){suffix}"
            remedy = "grant the permission to the account of fanout, and the scope to its token"
            if permissions:
                remedy = f"grant {self.quote(permissions)} to the account of fanout"
        elif status == 404:
            # Hosts answer so for what an account must not see: hidden, not deleted.
            problem = f"{host} shows the account of fanout nothing at {call.resource} (404)"
            remedy = "give the account access to the repository, or correct its URL"
        else:
            problem = f"{host} refuses {call.resource} ({status}){suffix}"
            return Unavailable(problem, reason="ForgeRefuses")
        return Denied(problem, reason="ForgeDenied", remedy=remedy)

    def _failure(
        self, call: ForgeCall, problem: str, error_type: type[HostFailure] = HostFailure
    ) -> HostFailure:
        subject = f"{self.access.host} gave no usable answer to {call.resource}"
        return error_type(f"{subject}: {problem}", reason="ForgeUnavailable")

    def _silence(self, call: ForgeCall, missing: str, seconds: float) -> HostFailure:
        return self._failure(call, f"{missing} within {seconds:g} s", HostTimeout)


class _Connection:
    """Event loop of a client and of the queue for it, in a thread of its own."""

    def __init__(self, client: httpx2.AsyncClient, queue: CallQueue) -> None:
        self.client = client
        self.queue = queue
        self._loop = asyncio.new_event_loop()
        # A daemon: a process that ends without `close` must not wait for a server.
        self._thread = Thread(target=self._loop.run_forever, name="forge", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine in the thread and return its result."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise Unavailable(
                "a call was given up because its client was closed", reason="ForgeUnavailable"
            ) from None
        finally:
            future.cancel()  # of an interrupted caller; a finished one is left as it is

    def close(self) -> None:
        """Give up the calls of other threads, close the connections and end the thread."""
        self.run(self._give_up())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _give_up(self) -> None:
        # Their callers would wait for ever for a loop that has stopped.
        calls = asyncio.all_tasks() - {asyncio.current_task()}
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        await self.client.aclose()
