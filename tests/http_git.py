"""A Git server over HTTP on loopback, as slow as one asks for: git-http-backend behind threads.

In a test: ``with serving(root) as server: server.url("remote.git")``. As a program, for measuring
from outside: ``python tests/http_git.py ROOT [--delay SECONDS]`` prints its URL and serves until
its input ends.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class GitOverHttp(BaseHTTPRequestHandler):
    """One connection; what it is to do stands in its server."""

    protocol_version = "HTTP/1.1"  # connections are kept, as hosts keep them
    server: "GitServer"

    def do_GET(self) -> None:
        body = self._body()  # read whatever happens, or the next request would begin with it
        server = self.server
        with server.counting:
            server.requests.append(f"{self.command} {self.path}")
            server.authorizations.append(self.headers.get("Authorization"))
        time.sleep(server.delay)
        server.before(self.path)
        if server.redirect:
            self._answer(301, {"Location": server.redirect + self.path})
        elif not server.admits(self.headers.get("Authorization"), self.path):
            self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'})
        else:
            self._serve(body)

    do_POST = do_GET  # noqa: N815 a name of http.server

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _serve(self, body: bytes) -> None:
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.server.root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_COUNT": "2",
                "GIT_CONFIG_KEY_0": "http.receivepack",
                "GIT_CONFIG_VALUE_0": "false" if self.server.is_read_only else "true",
                "GIT_CONFIG_KEY_1": "transfer.hideRefs",
                "GIT_CONFIG_VALUE_1": self._hidden_refs(),
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": "" if self.server.old else self.headers.get("Git-Protocol", ""),
            },
            capture_output=True,
            check=False,
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self._answer(int(headers.pop("Status", "200").split()[0]), headers, content)

    def _hidden_refs(self) -> str:
        return self.server.users.get(self.headers.get("Authorization") or "", "refs/none")

    def _answer(self, status: int, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Tests are silent."""


class GitServer(ThreadingHTTPServer):
    """All repositories below `root`, on a free port of loopback."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(
        self, root: Path, *, delay: float = 0.0, authorization: str = "", redirect: str = ""
    ) -> None:
        """`delay`: seconds before each answer; `authorization`: the header to be let in with."""
        super().__init__(("127.0.0.1", 0), GitOverHttp)
        self.root = root
        self.delay = delay
        self.authorization = authorization
        # By header, of all who are let in: the refs that they do not see.
        self.users: dict[str, str] = {}
        self.is_public = False  # anybody may read, and whoever is let in may write
        self.is_read_only = False
        self.redirect = redirect
        self.old = False  # knows nothing of protocol 2
        self.before: Callable[[str], object] = lambda _: (
            None
        )  # called with the path before each answer
        self.requests: list[str] = []
        self.authorizations: list[str | None] = []
        self.counting = threading.Lock()
        self.closing = threading.Event()

    def admits(self, authorization: str | None, path: str) -> bool:
        """Return whether requests of this path with this header are answered."""
        if self.is_public and "git-receive-pack" not in path:
            return True
        if self.users:
            return authorization in self.users
        return not self.authorization or authorization == self.authorization

    def silence(self, part: str) -> None:
        """Never answer requests with this in their path."""
        self.before = lambda path: part in path and self.closing.wait()

    def handle_error(self, *_: object) -> None:
        """Ignore a client that was ended before the answer."""

    def url(self, name: str = "") -> str:
        """Return the URL of a repository of this server."""
        return f"http://127.0.0.1:{self.server_port}/{name}".rstrip("/")


@contextmanager
def serving(root: Path, **options) -> Iterator[GitServer]:
    """A server for as long as the block lasts; what waits for an answer then goes without."""
    server = GitServer(root, **options)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield server
    finally:
        server.closing.set()
        server.shutdown()
        server.server_close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path)
    parser.add_argument("--delay", type=float, default=0.0)
    given = parser.parse_args()
    with serving(given.root, delay=given.delay) as server:
        print(server.url(), flush=True)
        sys.stdin.read()
        print(len(server.requests), "requests", file=sys.stderr)


if __name__ == "__main__":
    main()
