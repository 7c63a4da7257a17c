"""Address that a server listens on."""

import re
import socket
from ipaddress import ip_address

from fanout.errors import ErrorLocation, InvalidInput

_PATTERN = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:\[\]\s/]+):(?P<port>[0-9]{1,5})")
_REMEDY = "write HOST:PORT, as in 127.0.0.1:8080 or [::1]:8080"


def open_socket(address: str, option: str) -> socket.socket:
    """Return a listening socket of `HOST:PORT`; port 0 is any free one.

    Raises InvalidInput, which names the option, if the text is no address, or nothing can listen
    there.
    """
    match = _PATTERN.fullmatch(address)
    if match is None or int(match["port"]) > 65535:
        raise _invalid(f"{address!r} is not an address", _REMEDY, option)
    host = match["host"].strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, int(match["port"])), family=family)
    # A name that no DNS can have is a UnicodeError.
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not a host name"
        raise _invalid(
            f"cannot listen on {address}: {reason}",
            "name a free port of an address of this machine",
            option,
        ) from error


def format_address(listening: socket.socket) -> str:
    """Return `HOST:PORT` as the system has it."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(address: str) -> bool:
    """Return whether only programs of this machine reach an address of `format_address`."""
    return ip_address(address.rpartition(":")[0].strip("[]")).is_loopback


def _invalid(problem: str, remedy: str, option: str) -> InvalidInput:
    where = ErrorLocation(field=option)
    return InvalidInput(problem, reason="InvalidSetting", remedy=remedy, where=where)
