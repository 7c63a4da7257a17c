"""Signatures of webhooks: HMAC SHA-256 over the bytes of the body, or a secret that is sent along.

Gitea and GitHub sign the body, in hexadecimal digits. GitLab signs its headers with it, as Standard
Webhooks describe, where the secret is a signing token; with any other it sends the secret itself.
"""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from hashlib import sha256

from fanout.api.fanout_configuration import ForgeProgram

GITHUB_HEADER = "x-hub-signature-256"
GITLAB_TOKEN = "x-gitlab-token"  # noqa: S105 a header
GITLAB_SIGNATURE = "webhook-signature"
_SIGNING_TOKEN = "whsec_"  # noqa: S105 a prefix
_VERSION = "v1,"
_MAX_AGE = 300.0  # seconds by which a timestamp may differ, as GitLab advises

# By the name of the header, in lower case: what precedes the digits. Gitea sends the first and the
# last, Forgejo all three.
SIGNATURE_PREFIXES: Mapping[str, str] = {
    "x-gitea-signature": "",
    "x-forgejo-signature": "",
    GITHUB_HEADER: "sha256=",
}


class SignatureState(StrEnum):
    """Result of checking the signature of a hook."""

    VALID = "valid"
    MISSING = "missing"
    WRONG = "wrong"
    OUTDATED = "outdated"  # signed long ago, or by another clock


def has_signature(program: ForgeProgram, headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether a hook has a signature or a secret to check, whatever it is."""
    if program is ForgeProgram.GITLAB:
        return any(name.lower() in (GITLAB_TOKEN, GITLAB_SIGNATURE) for name, _ in headers)
    return bool(_find_signatures(program, headers))


def check_signature(
    program: ForgeProgram,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    secret: str,
    instant: datetime,
) -> SignatureState:
    """Check the signature of a hook as a program makes it, at an instant.

    Raises ValueError for a secret that nothing can be signed with.
    """
    if program is ForgeProgram.GITLAB:
        if secret.startswith(_SIGNING_TOKEN):
            return _check_standard(headers, body, secret, instant)
        tokens = [value for name, value in headers if name.lower() == GITLAB_TOKEN]
        return _state(tokens, any(_is_equal(it, secret) for it in tokens if secret))
    signatures = _find_signatures(program, headers)
    return _state(signatures, bool(signatures) and is_signed(body, secret, signatures))


def _find_signatures(program: ForgeProgram, headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    if program is ForgeProgram.GITHUB:
        headers = [it for it in headers if it[0].lower() == GITHUB_HEADER]
    return find_signatures(headers)


def _check_standard(
    headers: Sequence[tuple[str, str]], body: bytes, secret: str, instant: datetime
) -> SignatureState:
    key = b64decode(secret.removeprefix(_SIGNING_TOKEN), validate=True)
    if not key:
        raise ValueError("an empty secret signs nothing")
    # Of a header that is sent twice the last one counts; the signature is of these values alone.
    values = {name.lower(): value for name, value in headers}
    signatures = values.get(GITLAB_SIGNATURE, "").split()
    timestamp = values.get("webhook-timestamp", "")
    signed = f"{values.get('webhook-id', '')}.{timestamp}.".encode() + body
    expected = _VERSION + b64encode(hmac.new(key, signed, sha256).digest()).decode()
    state = _state(signatures, any(_is_equal(it, expected) for it in signatures))
    if state is SignatureState.VALID:
        # Looked at last, so that only the host learns something about the clock.
        is_number = timestamp.isascii() and timestamp.isdigit() and len(timestamp) < 16
        if not is_number or abs(instant.timestamp() - int(timestamp)) > _MAX_AGE:
            return SignatureState.OUTDATED
    return state


def _state(signatures: Sequence[str], is_valid: bool) -> SignatureState:
    if not signatures:
        return SignatureState.MISSING
    return SignatureState.VALID if is_valid else SignatureState.WRONG


def _is_equal(text: str, expected: str) -> bool:
    # In constant time, and as bytes: a comparison of texts refuses characters outside ASCII.
    return hmac.compare_digest(text.encode(), expected.encode())


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
    expected = hmac.new(secret.encode(), body, sha256).hexdigest()
    return any(_is_equal(it, expected) for it in signatures)
