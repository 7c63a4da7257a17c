"""Responses of HTTP servers: how transports fail, and reading within a limit of size."""

import httpcore2
import httpx2

TRANSPORT_ERRORS: tuple[type[Exception], ...] = (
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
    httpx2.HTTPError,
    httpx2.InvalidURL,
    OSError,
    ValueError,
)


async def read_response(response: httpx2.Response, max_bytes: int) -> bytes:
    """Read the body of a response. Raises ValueError if it is compressed or too large."""
    # A small compressed body can expand beyond all limits of size.
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise ValueError("the response is compressed, which was not requested")
    content = bytearray()
    async for chunk in response.aiter_raw():
        content += chunk
        if len(content) > max_bytes:
            raise ValueError(f"the response has more than {max_bytes} bytes")
    return bytes(content)
