"""Connections to services: every address is judged before a byte is sent to it.

A name is looked up here, and what it stands for is what is connected to: a second lookup could
answer otherwise (DNS rebinding). The certificate and the header Host stay those of the name.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from socket import SOCK_STREAM

import httpcore2
import httpx2

from fanout.api.addresses import refusal_of


class AddressRefused(Exception):
    """No address of a host may be connected to; the text says why."""


class JudgingBackend(httpcore2.AsyncNetworkBackend):
    """Opens TCP connections to allowed addresses alone."""

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
        """Connect to the first allowed address that answers; each has an equal share of the time.

        Raises AddressRefused where none is allowed, and httpcore2's errors for the rest.
        """
        addresses = await _allowed_addresses(host, port, timeout)
        share = timeout / len(addresses) if timeout is not None else None
        *others, last = addresses
        for address in others:
            try:
                return await self._tcp.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # as the next one may answer
        return await self._tcp.connect_tcp(last, port, share, local_address, socket_options)


class JudgingTransport(httpx2.AsyncBaseTransport):
    """A pool of connections that `JudgingBackend` opens; no proxy, of the environment either.

    A proxy would look names up by itself, so that nobody had judged the address.
    """

    def __init__(self, verify: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=verify, network_backend=JudgingBackend()
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


async def _allowed_addresses(host: str, port: int, seconds: float | None) -> list[str]:
    """Look a host up. Raises AddressRefused where no address is left."""
    try:
        async with asyncio.timeout(seconds):
            rows = await asyncio.get_running_loop().getaddrinfo(host, port, type=SOCK_STREAM)
    except TimeoutError as error:
        raise httpcore2.ConnectTimeout(str(error)) from error
    except (OSError, UnicodeError) as error:  # the latter for a label that is too long
        raise httpcore2.ConnectError(str(error)) from error
    addresses = list(dict.fromkeys(str(row[4][0]) for row in rows))
    allowed = [address for address in addresses if not refusal_of(address)]
    if not allowed:
        raise AddressRefused(f"it is not asked: {refusal_of(addresses[0])}")
    return allowed
