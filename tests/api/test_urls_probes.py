"""Which addresses no check may connect to, in every form in which a host can be written."""

import socket
from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fanout.api.urls import find_refusal, parse_address

METADATA = IPv4Address("169.254.169.254")

REFUSED = [
    "169.254.169.254", "169.254.0.1", "169.254.169.254.", "2852039166", "0xA9FEA9FE",
    "0xa9.254.43518", "0251.0376.0251.0376", "169.16689662", "169.254.43518",
    "::ffff:169.254.169.254", "[::ffff:a9fe:a9fe]", "::169.254.169.254",
    "::ffff:0:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe",
    "64:ff9b:1:a9fe:a9:fe00::", "2002:a9fe:a9fe::1", "2001:0:a9fe:a9fe::1",
    "2001:0:1:1::5601:5601", "2001:db8::5efe:a9fe:a9fe", "fe80::1", "fe80::1%eth0",
    "[fe80::1%25eth0]", "febf::1", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
    "fd00:c1::a9fe:a9fe", "fd00:42::42", "100.100.100.200", "::ffff:100.100.100.200",
    "1684301000", "192.0.0.192", "168.63.129.16",
]  # fmt: skip
ALLOWED = [
    "127.0.0.1", "127.1", "10.0.0.1", "192.168.1.1", "100.100.100.201", "192.0.0.193", "::1",
    "fd00::1", "fec0::1", "2001:db8::1", "64:ff9b::7f00:1", "metadata.internal",
    "169.254.169.254.example.com", "4294967296", "1.2.3.4.5", "0x", "a9fea9fe", "",
]  # fmt: skip


@pytest.mark.parametrize("host", REFUSED)
def test_an_address_that_is_refused(host):
    assert find_refusal(host).startswith(f"{host} is ")


@pytest.mark.parametrize("host", ALLOWED)
def test_a_host_that_is_not(host):
    assert find_refusal(host) == ""


def number(base):
    return {8: "0{:o}", 10: "{:d}", 16: "{:#x}"}[base].format


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from([8, 10, 16]), min_size=1, max_size=4))
def test_numbers_are_read_as_the_operating_system_reads_them(value, bases):
    first = [value >> 8 * (3 - at) & 0xFF for at in range(len(bases) - 1)]
    last = value & (1 << 8 * (5 - len(bases))) - 1
    host = ".".join(number(base)(part) for base, part in zip(bases, [*first, last], strict=True))
    assert str(parse_address(host)) == socket.inet_ntoa(socket.inet_aton(host))


@pytest.mark.parametrize("prefix", ["::ffff:0:0", "::", "::ffff:0:0:0", "64:ff9b::", "64:ff9b:1::"])
@given(address=st.ip_addresses(v=4, network="169.254.0.0/16"))
def test_an_address_inside_another_is_checked(prefix, address):
    assert find_refusal(str(ip_address(int(ip_address(prefix)) + int(address))))


def test_the_address_that_is_meant_is_named():
    assert find_refusal("2852039166") == f"2852039166 is {METADATA}, a link-local address"
