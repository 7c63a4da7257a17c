"""HTTP transport that checks every address before a byte is sent to it.

A name is resolved here, and the connection is made to the resolved address: a second
lookup could return another one (DNS rebinding). Certificate and Host header remain
those of the name.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable
from socket import SOCK_STREAM

import httpcore2
import httpx2

from fanout.api.blocked_addresses import find_refusal


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
    """Connection pool on `AddressCheckingBackend`, without proxies.

    A proxy would resolve names itself, so that no address would be checked.
    """

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
        raise AddressRefused(f"it is not asked: {find_refusal(addresses[0])}")
    return allowed
