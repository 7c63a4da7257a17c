"""Delivery of events to HTTP addresses that an administrator lists.

Each request is a CloudEvent in structured mode (JSON) with a signature over its bytes. Any answer
from 200 to 299 accepts it; nothing else of an answer is read, and no redirect is followed: it would
take the event to an address that nobody listed. An address that hangs costs `SendLimits.seconds`.

Nothing that httpx2 raises leaves this module, nor does an address: its path may be a secret.
"""

import asyncio
import hmac
from collections.abc import Callable, Sequence
from hashlib import sha256

import httpx2

from fanout.errors import FanoutError
from fanout.http_responses import TRANSPORT_ERRORS
from fanout.ports import BatchResult, Credentials, EventBatch
from fanout.values import Value

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
SIGNATURE_HEADER = "X-Signature"  # as generic-hmac providers of Flux have it


class SendLimits(Value):
    """Limits of time for the events of all addresses together."""

    seconds: float = 5.0  # of one request
    batch_seconds: float = 15.0  # of all


class DeliveryFailure(Exception):
    """An address has not accepted an event; the text is the reason."""


class HttpEventSender:
    """Implementation of `fanout.ports.EventSender`, without state between two calls."""

    def __init__(
        self, secrets: Callable[[str], Credentials], limits: SendLimits | None = None
    ) -> None:
        """Create a sender; `secrets` returns a secret by name, or raises Denied."""
        self._secrets = secrets
        self._limits = limits or SendLimits()

    def send(self, batches: Sequence[EventBatch]) -> list[BatchResult]:
        """Send batches as `fanout.ports.EventSender` specifies."""
        return asyncio.run(self._send_all(batches)) if batches else []

    async def _send_all(self, batches: Sequence[EventBatch]) -> list[BatchResult]:
        deadline = asyncio.get_running_loop().time() + self._limits.batch_seconds
        async with httpx2.AsyncClient(
            # Proxies of the environment are used, as by Git: administrators name addresses.
            trust_env=True,
            follow_redirects=False,
            timeout=None,
            headers={"User-Agent": "fanout", "Content-Type": CONTENT_TYPE},
        ) as client:
            tasks = (self._send_batch(client, batch, deadline) for batch in batches)
            return await asyncio.gather(*tasks)

    async def _send_batch(
        self, client: httpx2.AsyncClient, batch: EventBatch, deadline: float
    ) -> BatchResult:
        try:
            key = self._secrets(batch.secret).password
        except FanoutError as error:
            return BatchResult(0, error.problem)
        if not key:  # an event without a signature could be anybody's
            return BatchResult(0, f"secret {batch.secret!r} has no text to sign with")
        delivered = 0
        try:
            for body in batch.bodies:
                await self._send_one(client, batch.url, body, key.encode(), deadline)
                delivered += 1
        except DeliveryFailure as error:
            return BatchResult(delivered, str(error))
        return BatchResult(delivered)

    async def _send_one(
        self, client: httpx2.AsyncClient, url: str, body: bytes, key: bytes, deadline: float
    ) -> None:
        signature = f"sha256={hmac.new(key, body, sha256).hexdigest()}"
        remaining = deadline - asyncio.get_running_loop().time()
        seconds = max(min(self._limits.seconds, remaining), 0.0)
        try:
            async with asyncio.timeout(seconds):
                request = client.build_request(
                    "POST", url, content=body, headers={SIGNATURE_HEADER: signature}
                )
                # Streamed, and closed unread: an answer may have any length.
                response = await client.send(request, stream=True)
                await response.aclose()
        except TimeoutError:
            raise DeliveryFailure(f"no answer within {seconds:.0f} s") from None
        except TRANSPORT_ERRORS as error:
            raise DeliveryFailure(f"no answer ({type(error).__name__})") from None
        if 300 <= response.status_code < 400:
            raise DeliveryFailure(f"it redirects ({response.status_code}), which is not followed")
        if not 200 <= response.status_code < 300:
            raise DeliveryFailure(f"it answered with HTTP status {response.status_code}")
