"""What a commit is made of, the same on every machine: nothing comes from clock or environment."""

import re

from fanout.errors import InvalidInput
from fanout.plan.repository import Identity

_LAST = 1 << 40  # Git's own tools read no later time everywhere
_BAD = re.compile(r"[\x00-\x1f\x7f<>]")


def signature(identity: Identity, when: int) -> bytes:
    """`name <email> seconds +0000`, as commits and fast-import write it. Raises InvalidInput."""
    name, email = identity.name.strip(), identity.email.strip()
    if not name or not email or _BAD.search(name + email):
        raise InvalidInput(
            f"no commit can be written by {identity.name!r} <{identity.email}>",
            reason="InvalidAuthor",
            remedy="give the author a name and an address without < > and control characters",
        )
    if not 0 <= when < _LAST:
        raise InvalidInput(f"no commit can be dated {when}", reason="InvalidTime")
    return f"{name} <{email}> {when} +0000".encode()


def message_bytes(message: str) -> bytes:
    """The message as it is stored. Raises InvalidInput for a NUL, which git refuses."""
    if "\0" in message:
        raise InvalidInput("a commit message has a NUL character", reason="InvalidMessage")
    return message.encode()


def commit_bytes(
    tree: str, parents: tuple[str, ...], identity: Identity, when: int, message: str
) -> bytes:
    """A commit object."""
    who = signature(identity, when)
    head = [f"tree {tree}\n", *(f"parent {parent}\n" for parent in parents)]
    return b"%sauthor %s\ncommitter %s\n\n%s" % (
        "".join(head).encode(),
        who,
        who,
        message_bytes(message),
    )
