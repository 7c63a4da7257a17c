"""IP addresses that checks must not connect to, in every spelling of a host.

Clouds serve credentials on link-local addresses and on a few others. The operating
system takes `2852039166`, `0xA9FEA9FE` and `169.254.43518` for `169.254.169.254`, and
several ranges of IPv6 carry an IPv4 address that a gateway connects to.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address

_LINK_LOCAL = "a link-local address"
_METADATA = "the address of a cloud's metadata service"
_REFUSED: tuple[tuple[IPv4Network | IPv6Network, str], ...] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("169.254.0.0/16", _LINK_LOCAL),
        ("fe80::/10", _LINK_LOCAL),
        ("fd00:ec2::/32", _METADATA),  # AWS: instances and pods
        ("fd20:ce::254/128", _METADATA),  # Google Cloud
        ("fd00:c1::a9fe:a9fe/128", _METADATA),  # Oracle Cloud
        ("fd00:42::42/128", _METADATA),  # Scaleway
        ("100.100.100.200/32", _METADATA),  # Alibaba Cloud
        ("168.63.129.16/32", _METADATA),  # Azure
        ("192.0.0.192/32", _METADATA),  # Oracle Cloud
    )
)
# Ranges whose last 32 bits are an address of IPv4: compatible, translated (RFC 2765), NAT64 (RFC
# 6052 and 8215). Those that `ipaddress` knows by itself are not listed.
_EMBEDDING_NETWORKS = tuple(
    IPv6Network(network)
    for network in ("::/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
_ISATAP = frozenset({0x00005EFE, 0x02005EFE})  # RFC 5214: bits 64 to 95
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|0[0-7]*|[1-9][0-9]*")


def parse_address(host: str) -> Address | None:
    """Return the IP address that a host stands for, or None for a name.

    Brackets, a zone (`%eth0`) and a trailing dot are accepted, and the one to four decimal,
    octal or hexadecimal numbers of inet_aton(3).
    """
    text = host.removeprefix("[").removesuffix("]").removesuffix(".")
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return _parse_legacy_address(text)


def find_refusal(host: str) -> str:
    """Return the reason why a host must not be connected to.

    "" for a name and an allowed address.
    """
    address = parse_address(host)
    if address is None:
        return ""
    for candidate in (address, *_embedded_addresses(address)):
        for network, category in _REFUSED:
            if candidate.version == network.version and candidate in network:
                return (
                    f"{host} is {category}"
                    if str(candidate) == host
                    else f"{host} is {candidate}, {category}"
                )
    return ""


def _parse_legacy_address(text: str) -> IPv4Address | None:
    """Read an address as inet_aton(3) does: the last number fills the bytes that are left."""
    parts = text.split(".")
    if len(parts) > 4 or not all(_NUMBER.fullmatch(part) for part in parts):
        return None
    *first, last = (_parse_number(part) for part in parts)
    if any(byte > 0xFF for byte in first) or last >= 1 << 8 * (4 - len(first)):
        return None
    return IPv4Address(sum(byte << 8 * (3 - at) for at, byte in enumerate(first)) + last)


def _parse_number(text: str) -> int:
    if text[:2].lower() == "0x":
        return int(text, 16)
    return int(text, 8 if text.startswith("0") else 10)


def _embedded_addresses(address: Address) -> Iterator[IPv4Address]:
    """Yield every IPv4 address that an IPv6 address may be translated to."""
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    if address.ipv4_mapped:
        yield address.ipv4_mapped
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo
    if (
        any(address in network for network in _EMBEDDING_NETWORKS)
        or number >> 32 & 0xFFFFFFFF in _ISATAP
    ):
        yield IPv4Address(number & 0xFFFFFFFF)
    # a prefix of 48 bits is followed by two bytes, a gap, and two
    if address in _EMBEDDING_NETWORKS[-1]:
        yield IPv4Address((number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF)
