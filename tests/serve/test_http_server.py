"""The server of hooks and metrics over real connections, with what a stranger may send."""

import gc
import gzip
import hmac
import json
import socket
import threading
from collections import deque
from contextlib import ExitStack, contextmanager, suppress
from time import monotonic, sleep

import pytest

from fanout.controller.loop_health import STALL_LIMIT, LoopHealth
from fanout.errors import InvalidInput
from fanout.ports import Credentials
from fanout.serve import http_server
from fanout.serve.hook_receiver import MAX_BODY, HookReceiver
from fanout.serve.http_server import route_monitoring
from fanout.serve.run_metrics import RunMetrics
from fanout.telemetry.metrics import Counters

PATIENCE = 60  # seconds, for a slow machine
HOST, OTHER = "git.example.com", "other.example.com:3000"
SECRETS = {"hooks": "canary-of-the-webhook", "other": "canary-of-the-other"}
SECRET, OTHER_SECRET = SECRETS.values()
USED = "https://git.example.com/platform/edge.git"
EVENT = json.dumps({"repository": {"full_name": "platform/edge"}}).encode()
STRANGE = EVENT.replace(b"edge", b"unknown")
HOOKS_TOTAL = "fanout_hooks_total{"
LONG, VERY_LONG = MAX_BODY + 1, 10 * 1024 * 1024


class Site:
    """A running server and its client."""

    def __init__(self, address):
        host, _, port = address.rpartition(":")
        self.place = host, int(port)
        self.source = "127.0.0.1"

    def connect(self):
        return socket.create_connection(self.place, PATIENCE, (self.source, 0))

    def send(self, request):
        """Send bytes; return status and body of the answer. 0: the connection was cut."""
        with self.connect() as connection:
            try:
                connection.sendall(request)
                answer = read_all(connection)
            except ConnectionError:
                return 0, b""
        head, _, body = answer.partition(b"\r\n\r\n")
        return int(head.split(b" ")[1]) if head else 0, body

    def post(self, body=EVENT, headers=(), path=f"/hooks/{HOST}", secret=SECRET):
        signature = [f"X-Gitea-Signature: {sign(body, secret)}"] if secret else []
        lines = [f"Content-Length: {len(body)}", *signature, *headers]
        return self.send(head(f"POST {path} HTTP/1.1", *lines) + body)[0]

    def metrics(self):
        """The counts that are not 0, by outcome."""
        status, body = self.send(head("GET /metrics HTTP/1.1"))
        assert status == 200
        lines = [it.split('"') for it in body.decode().splitlines() if it.startswith(HOOKS_TOTAL)]
        return {outcome: int(float(rest[2:])) for _, outcome, rest in lines if rest != "} 0.0"}

    def until(self, condition):
        deadline = monotonic() + PATIENCE
        while not condition(self.metrics()):
            assert monotonic() < deadline, self.metrics()
            sleep(0.02)


def read_all(connection):
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def sign(body, secret):
    return hmac.new(secret.encode(), body, "sha256").hexdigest()


def head(line, *headers):
    return "\r\n".join([line, "Host: fanout", *headers, "", ""]).encode()


def chunked(body, size=65536):
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(it), it) for it in [*parts, b""])


@contextmanager
def serving():
    counters = Counters()
    receiver = HookReceiver(
        {HOST: "hooks", OTHER: "other"},
        lambda name: Credentials("git", SECRETS[name]),
        lambda is_repository: is_repository(USED),
        counters.events,
    )
    with http_server.serve_http("127.0.0.1:0", "--hooks", routes(receiver, counters)) as address:
        yield Site(address)


def routes(receiver, counters, health=LoopHealth):
    metrics = RunMetrics("0.1.0", counters, health, dict, dict)
    return [
        *http_server.route_hooks(receiver),
        *route_monitoring(metrics.format_page, health),
    ]


@pytest.fixture
def site():
    with serving() as running:
        yield running


DEEP = b"[" * 500_000
SIGNED_AS_GITHUB = f"X-Hub-Signature-256: sha256={sign(EVENT, SECRET)}"
HOOKS = [
    ("signed", {}, 204, "queued"),
    ("signed as GitHub does", {"headers": [SIGNED_AS_GITHUB], "secret": ""}, 204, "queued"),
    ("unsigned", {"secret": ""}, 401, "unsigned"),
    ("wrongly signed", {"secret": "guessed"}, 401, "wrongly-signed"),
    ("signed with another host's secret", {"secret": OTHER_SECRET}, 401, "wrongly-signed"),
    (
        "signed for another host",
        {"path": f"/hooks/{OTHER}"},
        401,
        "wrongly-signed",
    ),
    ("of the other host", {"path": f"/hooks/{OTHER}", "secret": OTHER_SECRET}, 204, "unused"),
    ("for an unknown host", {"path": "/hooks/evil.example.com"}, 404, "unknown-host"),
    ("of 1 MiB", {"body": EVENT + b" " * (MAX_BODY - len(EVENT))}, 204, "queued"),
    ("of 1 MiB and a byte", {"body": EVENT + b" " * (LONG - len(EVENT))}, 413, "too-long"),
    ("of 10 MiB", {"body": b"x" * VERY_LONG}, 413, "too-long"),
    ("of 10 MiB, unsigned", {"body": b"x" * VERY_LONG, "secret": ""}, 413, "too-long"),
    ("deeply nested", {"body": DEEP}, 204, "unreadable"),
    ("deeply nested, unsigned", {"body": DEEP, "secret": ""}, 401, "unsigned"),
    ("no JSON", {"body": b"payload=%7B%7D"}, 204, "unreadable"),
    ("for an unknown repository", {"body": STRANGE}, 204, "unused"),
    (
        "compressed",
        {"body": gzip.compress(EVENT), "headers": ["Content-Encoding: gzip"]},
        415,
        "compressed",
    ),
    ("not compressed, by name", {"headers": ["Content-Encoding: identity"]}, 204, "queued"),
]


@pytest.mark.parametrize(
    ("sentence", "hook", "status", "outcome"), HOOKS, ids=[it[0] for it in HOOKS]
)
def test_a_hook(site, sentence, hook, status, outcome):
    assert site.post(**hook) == status
    assert site.metrics() == {outcome: 1}


def test_a_hook_that_is_replayed_is_taken_again(site):
    assert [site.post(), site.post()] == [204, 204]
    assert site.metrics() == {"queued": 2}


CHUNKED = "Transfer-Encoding: chunked"
LENGTHS = [
    ("none", [CHUNKED]),
    ("one that is too small", [CHUNKED, "Content-Length: 10"]),
]


@pytest.mark.parametrize(("sentence", "lines"), LENGTHS, ids=[it[0] for it in LENGTHS])
def test_a_body_in_chunks_is_measured_with_a_content_length_of(site, sentence, lines):
    body = b"x" * VERY_LONG
    signature = f"X-Gitea-Signature: {sign(body, SECRET)}"
    request = head(f"POST /hooks/{HOST} HTTP/1.1", *lines, signature) + chunked(body)
    assert site.send(request)[0] == 413
    assert site.metrics() == {"too-long": 1}


def test_a_body_in_chunks_that_is_short_is_a_hook(site):
    lines = [CHUNKED, f"X-Gitea-Signature: {sign(EVENT, SECRET)}"]
    assert site.send(head(f"POST /hooks/{HOST} HTTP/1.1", *lines) + chunked(EVENT, 7))[0] == 204


def test_bytes_behind_the_content_length_are_not_part_of_the_hook(site):
    signature = f"X-Gitea-Signature: {sign(EVENT, SECRET)}"
    line = f"POST /hooks/{HOST} HTTP/1.1"
    site.send(head(line, "Content-Length: 10", signature) + EVENT + b"x" * VERY_LONG)
    site.until(lambda counts: counts == {"wrongly-signed": 1})


def test_a_body_without_an_end_is_cut_off(site):
    line = f"POST /hooks/{HOST} HTTP/1.1"
    with site.connect() as connection:
        connection.sendall(head(line, CHUNKED))
        part = b"%x\r\n%s\r\n" % (VERY_LONG, b"x" * VERY_LONG)
        with pytest.raises(ConnectionError):
            while True:
                connection.sendall(part)
    assert site.metrics() == {"too-long": 1}


REQUESTS = [
    ("health", head("GET /healthz HTTP/1.1"), 200),
    ("a hook that is asked for", head(f"GET /hooks/{HOST} HTTP/1.1"), 405),
    ("no host", head("POST /hooks/ HTTP/1.1"), 404),
    ("something else", head("POST /graphql HTTP/1.1"), 404),
    ("a WebSocket", head("GET / HTTP/1.1", "Connection: Upgrade", "Upgrade: websocket"), 404),
    ("no HTTP", b"\x16\x03\x01 hello\r\n\r\n", 400),
    ("headers without end", head("GET /healthz HTTP/1.1", f"X-Long: {'x' * 100_000}")[:-2], 400),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sentence", "request_", "status"), REQUESTS, ids=[it[0] for it in REQUESTS]
)
def test_other_requests_are_answered_and_no_hooks(site, sentence, request_, status):
    assert site.send(request_)[0] in {status, 0 if status == 400 else status}
    assert site.metrics() == {}


def test_slow_clients_are_cut_off_and_others_are_served(site, monkeypatch):
    monkeypatch.setattr(http_server, "DEADLINE", 0.5)
    line = f"POST /hooks/{HOST} HTTP/1.1"
    requests = [b"", head(line)[:20], head(line, "Content-Length: 100") + b"{"]
    slow = [site.connect() for _ in requests]
    for connection, request in zip(slow, requests, strict=True):
        connection.sendall(request)
    assert site.post() == 204
    for connection in slow:
        with connection:
            assert ended(connection)
    site.until(lambda counts: counts == {"queued": 1, "cut": 1})


def test_the_oldest_connection_makes_room_for_a_hook(site, monkeypatch):
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(http_server, "DEADLINE", 3600)
    idle = [site.connect() for _ in range(3)]
    assert site.post() == 204
    assert ended(idle[0])
    # The place of the hook is free again: the younger ones are still served.
    for connection in idle[1:]:
        connection.sendall(head("GET /healthz HTTP/1.1"))
        assert read_all(connection).startswith(b"HTTP/1.1 200 OK")
    for connection in idle:
        connection.close()


def test_a_crowd_of_slow_clients_keeps_no_hook_out(site, monkeypatch):
    monkeypatch.setattr(http_server, "DEADLINE", 3600)
    crowd = [site.connect() for _ in range(4 * http_server.MAX_CONNECTIONS)]
    assert [site.post() for _ in range(5)] == [204] * 5
    assert all(ended(connection) for connection in crowd[: -http_server.MAX_CONNECTIONS])
    for connection in crowd:
        connection.close()


def ended(connection):
    """Does the other side end the connection? A socket that does not end raises TimeoutError."""
    try:
        return read_all(connection) == b""
    except ConnectionError:
        return True


def test_no_library_names_itself_and_no_answer_shows_a_secret(site):
    with site.connect() as connection:
        connection.sendall(head(f"POST /hooks/{HOST} HTTP/1.1", "Content-Length: 0"))
        answer = read_all(connection).decode().lower()
    assert answer.startswith("http/1.1 401")
    assert "uvicorn" not in answer
    assert "connection: close" in answer
    assert all(secret not in answer for secret in SECRETS.values())


def test_the_server_ends_while_clients_are_connected(monkeypatch):
    """It does not wait for their deadline, an hour in this test."""
    monkeypatch.setattr(http_server, "DEADLINE", 3600)
    with serving() as site, site.connect() as connection:
        connection.sendall(head(f"POST /hooks/{HOST} HTTP/1.1", "Content-Length: 100"))
        assert site.post() == 204


def test_an_address_is_free_again_when_the_server_has_ended():
    with http_server.serve_http("127.0.0.1:0", "--listen", []) as address:
        second = http_server.serve_http(address, "--listen", [])
        with pytest.raises(InvalidInput, match=r"--listen: cannot listen on 127\.0\.0\.1"), second:
            pass
    with http_server.serve_http(address, "--listen", []) as again:
        assert again == address


@contextmanager
def flood(site, source):
    """Open connections from an address as fast as possible, each with a part of a request."""
    stopped = threading.Event()

    def open_many():
        with ExitStack() as stack:
            connections = deque(maxlen=100)
            while not stopped.is_set():
                if len(connections) == connections.maxlen:
                    connections[0].close()
                connection = stack.enter_context(socket.socket())
                connections.append(connection)
                with suppress(OSError):
                    connection.bind((source, 0))
                    connection.settimeout(5)
                    connection.connect(site.place)
                    connection.sendall(b"POST /hooks/x HTTP/1.1\r\n")

    threads = [threading.Thread(target=open_many) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def test_a_flood_from_one_address_leaves_room_for_hooks_and_probes_from_others(site):
    """Each is slow to send: while it does, hundreds of other connections come."""
    site.source = "127.0.0.2"
    signature = f"X-Gitea-Signature: {sign(EVENT, SECRET)}"
    request = head(f"POST /hooks/{HOST} HTTP/1.1", f"Content-Length: {len(EVENT)}", signature)
    with flood(site, "127.0.0.3"):
        sleep(0.5)
        for start, end in (
            (request, EVENT),
            (b"GET /metrics HTTP/1.1\r\n", b"Host: f\r\n\r\n"),
        ) * 3:
            with site.connect() as connection:
                connection.sendall(start)
                sleep(0.5)
                connection.sendall(end)
                assert read_all(connection)[9:12] in (b"204", b"200")


def test_closed_connections_leave_nothing_behind(site):
    def count():
        names = ("LimitedProtocol", "_SelectorSocketTransport", "Connection")
        return sum(type(it).__name__ in names for it in gc.get_objects())

    site.post()
    sleep(0.2)
    gc.collect()
    gc.disable()
    try:
        before = count()
        for _ in range(50):
            site.connect().close()
            site.send(b"junk\r\n\r\n")
            site.post()
        sleep(0.5)
        assert count() - before < 10
    finally:
        gc.enable()


HEALTH = [
    ("before the first pass", LoopHealth(waiting=1), 200, 503),
    ("at rest", LoopHealth(ended_rounds=1), 200, 200),
    ("while a pass runs", LoopHealth(1, STALL_LIMIT, ended_rounds=1), 200, 200),
    ("while a pass hangs", LoopHealth(1, STALL_LIMIT + 60, ended_rounds=1), 503, 200),
    ("while the records cannot be reached", LoopHealth(1, 5.0, 1, "canary"), 200, 503),
    ("after days at rest", LoopHealth(0, 0.0, 9), 200, 200),
]


@pytest.mark.parametrize(
    ("sentence", "state", "healthy", "ready"), HEALTH, ids=[it[0] for it in HEALTH]
)
def test_probes_answer_by_the_state_of_the_loop(sentence, state, healthy, ready):
    monitoring = routes(None, Counters(), lambda: state)
    with http_server.serve_http("127.0.0.1:0", "--listen", monitoring) as address:
        site = Site(address)
        answers = [site.send(head(f"GET /{it} HTTP/1.1")) for it in ("healthz", "readyz")]
    assert [status for status, _ in answers] == [healthy, ready]
    assert not any(b"canary" in body for _, body in answers)


FORMATS = [("application/openmetrics-text; version=1.0.0", True), ("*/*", False), ("", False)]


@pytest.mark.parametrize(("accepted", "is_open"), FORMATS)
def test_the_page_of_metrics_is_in_the_format_that_is_asked_for(site, accepted, is_open):
    status, body = site.send(head("GET /metrics HTTP/1.1", f"Accept: {accepted}"))
    assert status == 200
    assert body.endswith(b"# EOF\n") is is_open
