"""Addresses that checks connect to, judged before anything is sent."""

import socket
import sys

import pytest
from service import Page, service

from fanout.plan.evidence.probe_queries import ProbeFailure, ProbeQuery, ProbeResponse
from fanout.probes import HttpProbes, ProbeLimits

_connected: list[str] | None = None


def _listen(event, arguments):
    if event == "socket.connect" and _connected is not None:
        _connected.append(arguments[1][0])


sys.addaudithook(_listen)  # cannot be removed; it does nothing outside `connected`


@pytest.fixture
def connected():
    """Every address that a socket of this process begins to connect to."""
    global _connected  # noqa: PLW0603
    addresses: list[str] = []
    _connected = addresses
    yield addresses
    _connected = None


@pytest.fixture
def names(monkeypatch):
    """Names and the answers of their lookups, one after the other; the last one stays."""
    answers: dict[str, list[list[str]]] = {}
    real = socket.getaddrinfo

    def getaddrinfo(host, port, *rest, **named):
        if host not in answers:
            return real(host, port, *rest, **named)
        addresses = answers[host][0] if len(answers[host]) == 1 else answers[host].pop(0)
        return [
            row for address in addresses for row in real(address, port, type=socket.SOCK_STREAM)
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


@pytest.fixture
def server():
    with service() as made:
        yield made


def no_secret(name):
    raise AssertionError(f"nothing here has a secret, and {name!r} is asked for")


def ask(url):
    [answer] = HttpProbes(no_secret, {}, ProbeLimits(probe_seconds=5)).ask([ProbeQuery(url=url)])
    return answer


def port_of(server):
    return server.url.rpartition(":")[2]


FORMS = [
    "169.254.169.254", "2852039166", "0xA9FEA9FE", "169.254.43518",
    "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]", "[2002:a9fe:a9fe::]", "[fe80::1]",
    "[fd00:ec2::254]", "100.100.100.200", "192.0.0.192",
]  # fmt: skip


@pytest.mark.parametrize("host", FORMS)
def test_no_request_is_sent_to_a_refused_address(host, connected):
    answer = ask(f"http://{host}/latest")
    assert isinstance(answer, ProbeFailure)
    assert answer.message.startswith(f"http://{host}/latest: the request was not sent: ")
    assert connected == []


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "100.100.100.200"])
def test_no_request_is_sent_to_a_name_of_a_refused_address(address, names, connected):
    names["meta.example.com"] = [[address]]
    answer = ask("http://meta.example.com/latest")
    assert isinstance(answer, ProbeFailure)
    assert "the request was not sent: " in answer.message
    assert connected == []


def test_a_name_is_looked_up_once_for_a_connection(names, server, connected):
    names["rebind.example.com"] = [["127.0.0.1"], ["169.254.169.254"]]
    server.pages["/state"] = Page("1")
    url = f"http://rebind.example.com:{port_of(server)}/state"
    assert ask(url) == ProbeResponse({"status": 200, "body": 1})
    assert connected == ["127.0.0.1"]
    assert server.asked[0].headers["host"] == f"rebind.example.com:{port_of(server)}"


def test_of_several_addresses_only_the_allowed_are_tried(names, server, connected):
    names["both.example.com"] = [["169.254.169.254", "127.0.0.1"]]
    server.pages["/state"] = Page("1")
    assert isinstance(ask(f"http://both.example.com:{port_of(server)}/state"), ProbeResponse)
    assert connected == ["127.0.0.1"]


def test_the_next_address_is_tried_where_one_does_not_answer(names, server):
    names["two.example.com"] = [["127.0.0.2", "127.0.0.1"]]  # nobody listens on the first
    server.pages["/state"] = Page("1")
    assert isinstance(ask(f"http://two.example.com:{port_of(server)}/state"), ProbeResponse)


def test_the_connection_after_a_redirect_is_checked_too(names, server, connected):
    names["hop.example.com"] = [["127.0.0.1"], ["169.254.169.254"]]
    server.pages["/old"] = Page("", 302, {"Location": "/state", "Connection": "close"})
    answer = ask(f"http://hop.example.com:{port_of(server)}/old")
    assert isinstance(answer, ProbeFailure)
    assert "the request was not sent: 169.254.169.254 is a link-local address" in answer.message
    assert connected == ["127.0.0.1"]


def test_a_redirect_to_an_address_that_is_refused_is_not_followed(server, connected):
    server.pages["/old"] = Page("", 302, {"Location": "http://169.254.169.254/latest"})
    assert isinstance(ask(f"{server.url}/old"), ProbeFailure)
    assert connected == ["127.0.0.1"]


def test_no_proxy_of_the_environment_is_asked(monkeypatch, server, connected):
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        where = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, where)
        server.pages["/state"] = Page("1")
        assert isinstance(ask(f"{server.url}/state"), ProbeResponse)


def test_a_name_that_is_too_long_is_no_host():
    answer = ask(f"http://{'a' * 64}.example.com/")
    assert isinstance(answer, ProbeFailure)
    assert "it cannot be reached" in answer.message
