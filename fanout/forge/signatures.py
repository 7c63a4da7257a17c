"""Signatures of webhooks: HMAC SHA-256 over the bytes of the body, in hexadecimal digits."""

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256

# By the name of the header, in lower case: what precedes the digits. Gitea sends the first and the
# last, Forgejo all three.
SIGNATURE_PREFIXES: Mapping[str, str] = {
    "x-gitea-signature": "",
    "x-forgejo-signature": "",
    "x-hub-signature-256": "sha256=",
}


def find_signatures(headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the signatures in the headers of a hook, without their prefixes.

    A header without its prefix has a signature of another kind, and counts for nothing.
    """
    return tuple(
        value.removeprefix(prefix)
        for name, value in headers
        if (prefix := SIGNATURE_PREFIXES.get(name.lower())) is not None and value.startswith(prefix)
    )


def is_signed(body: bytes, secret: str, signatures: Iterable[str]) -> bool:
    """Return whether one of the signatures is that of the body with this secret.

    Compared in constant time. Raises ValueError for an empty secret, with which anybody can sign.
    """
    if not secret:
        raise ValueError("an empty secret signs nothing")
    expected = hmac.new(secret.encode(), body, sha256).hexdigest().encode()
    # As bytes: a comparison of texts refuses characters outside ASCII.
    return any(hmac.compare_digest(it.encode(), expected) for it in signatures)
