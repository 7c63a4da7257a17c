"""A proxy in front of a forge that answers some requests otherwise: late, cut, or with errors.

``with proxying("http://127.0.0.1:3000") as proxy: proxy.fail(Fault(status=502))``: the next request
gets the fault, all others what the server behind says. Without a server, 200 and `{}`.
"""

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

TLS = Path(__file__).parent / "forge" / "tls"
HOP_HEADERS = {"connection", "transfer-encoding", "content-length", "date", "server"}


@dataclass
class Fault:
    """Answer that one request gets in place of the server's."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    method: str = ""  # the only method that it is for
    delay: float = 0.0  # seconds before the answer
    missing: int = 0  # bytes that the length promises and that never come
    drip: str = ""  # "headers" or "body": one byte in a while
    resets: bool = False  # the connection ends without an answer
    forwards: bool = False  # the server carries the request out; its answer is lost
    relays: bool = False  # the answer is the server's, after the delay
    event: Callable[[], object] | None = None  # what happens before the answer


@dataclass(frozen=True)
class Seen:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    peer: tuple[str, int]  # the client's end of the connection


class ForgeProxy(ThreadingHTTPServer):
    """A proxy on a free port of loopback."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, upstream: str, *, uses_tls: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream = upstream
        self.scheme = "https" if uses_tls else "http"
        self.seen: list[Seen] = []
        self.faults: list[Fault] = []
        self.before: Callable[[str, str], None] = lambda method, path: None  # each forwarded call
        self.lock = threading.Lock()
        self.closing = threading.Event()
        if uses_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / "certificate.pem", TLS / "key.pem")
            self.socket = context.wrap_socket(self.socket, server_side=True)

    @property
    def api(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.server_port}/api/v1"

    def fail(self, *faults: Fault) -> None:
        """Answer the next requests like this, one each."""
        with self.lock:
            self.faults += faults

    def next_fault(self, method: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.method in ("", method):
                    self.faults.remove(fault)
                    return fault
        return None

    def handle_error(self, *_: object) -> None:
        """Ignore a client that has hung up."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ForgeProxy

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        fault = self.server.next_fault(self.command)
        with self.server.lock:
            self.server.seen.append(Seen(self.command, self.path, headers, self.client_address))
        if fault is None:
            self._answer(*self._forward(body))
            return
        answer = self._forward(body) if fault.forwards or fault.relays else None
        if fault.event is not None:
            fault.event()
        self.server.closing.wait(fault.delay)
        if answer is not None and fault.relays:
            self._answer(*answer)
            return
        if fault.resets:
            self.close_connection = True
            return
        self._answer(fault.status, fault.headers, fault.body, fault)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 names of http.server

    def _forward(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.server.before(self.command, self.path)
        if not self.server.upstream:
            return 200, {"Content-Type": "application/json"}, b"{}"
        connection = http.client.HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=120)
        try:
            # The address that a client sees is the proxy's: links would lead around it.
            headers = {name: value for name, value in self.headers.items() if name != "Host"}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        kept = {
            name: value for name, value in answer.getheaders() if name.lower() not in HOP_HEADERS
        }
        return answer.status, kept, content

    def _answer(
        self, status: int, headers: dict[str, str], body: bytes, fault: Fault | None = None
    ) -> None:
        fault = fault or Fault()
        if fault.drip == "headers":
            self._drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"x" * 10_000)
            return
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body) + fault.missing))
        self.end_headers()
        if fault.drip == "body":
            self._drip(body)
            return
        self.wfile.write(body)
        self.close_connection = fault.missing > 0

    def _drip(self, content: bytes) -> None:
        for byte in content:
            if self.server.closing.is_set():
                return
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            time.sleep(0.02)

    def log_message(self, *_: object) -> None:
        """Tests are silent."""


@contextmanager
def proxying(upstream: str = "", *, uses_tls: bool = False) -> Iterator[ForgeProxy]:
    """A running proxy, ended with the block."""
    server = ForgeProxy(upstream, uses_tls=uses_tls)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()
