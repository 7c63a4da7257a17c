"""Addresses that `fanout run --hooks` takes and refuses."""

import pytest

from fanout.errors import InvalidInput
from fanout.serve.http_server import format_address, is_loopback, open_socket

REFUSED = [
    "",
    "8080",
    ":8080",
    "127.0.0.1",
    "127.0.0.1:",
    "127.0.0.1:65536",
    "127.0.0.1:http",
    "127.0.0.1:²",
    "::1:8080",
    "[::1]",
    "http://127.0.0.1:8080",
    "127.0.0.1:8080/hooks",
    "127.0.0.1 :8080",
]


@pytest.mark.parametrize("text", REFUSED)
def test_no_address(text):
    with pytest.raises(InvalidInput, match="is not an address"):
        open_socket(text, "--hooks")


@pytest.mark.parametrize("text", ["192.0.2.1:0", "a" * 70 + ":0", "no-such-host.invalid:0"])
def test_an_unusable_address_cannot_be_listened_on(text):
    with pytest.raises(InvalidInput, match="cannot listen on"):
        open_socket(text, "--hooks")


def test_port_0_is_a_free_one():
    with open_socket("127.0.0.1:0", "--hooks") as listening:
        host, _, port = format_address(listening).rpartition(":")
    assert host == "127.0.0.1"
    assert int(port) > 0


@pytest.mark.parametrize(
    ("address", "expected"),
    [("127.0.0.1:80", True), ("[::1]:80", True), ("0.0.0.0:80", False), ("[::]:80", False)],
)
def test_loopback(address, expected):
    assert is_loopback(address) is expected
