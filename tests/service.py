"""Small HTTP service on loopback with scripted answers, which records its requests."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Page:
    """One answer: status, body and headers; what is slow waits until the service is closed."""

    body: bytes | str = b"{}"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    slow: bool = False
    endless: bool = False

    @property
    def content(self) -> bytes:
        return self.body.encode() if isinstance(self.body, str) else self.body


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Service:
    """Pages by path; a path that has none is 404."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.answer(self)

            def do_POST(self) -> None:
                service.answer(self)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = False
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        length = int(request.headers.get("Content-Length", 0))
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(request.command, request.path, headers, request.rfile.read(length))
        self.asked.append(asked)
        page = self.pages.get(request.path, Page("", 404))
        if page.slow:
            self.closing.wait(30)
        request.send_response(page.status)
        for name, value in page.headers.items():
            request.send_header(name, value)
        if not page.endless:
            request.send_header("Content-Length", str(len(page.content)))
        request.end_headers()
        try:
            request.wfile.write(page.content)
            while page.endless and not self.closing.is_set():
                request.wfile.write(page.content)
        except OSError:
            pass  # whoever asked has had enough


@contextmanager
def service() -> Iterator[Service]:
    """A running service, ended with the block."""
    made = Service()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.closing.set()
        made.server.shutdown()
        thread.join()
        made.server.server_close()
