"""Tokens and signed assertions of the tests' GitHub."""

import base64
import json
import subprocess
import tempfile
from pathlib import Path

from github_state import Credential, Refusal, State


def authenticate(state: State, authorization: str) -> Credential:
    """Return whose call it is. Raises Refusal."""
    if not authorization:
        raise Refusal(401, "Requires authentication")
    credential = find_credential(state, authorization)
    if credential is not None:
        if credential.is_suspended:
            raise Refusal(403, "This installation has been suspended")
        return credential
    return check_assertion(state, authorization.partition(" ")[2])


def find_credential(state: State, authorization: str) -> Credential | None:
    """Return whose a valid header Authorization is; None without one."""
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() == "basic":
        token = base64.b64decode(token).decode().partition(":")[2]
    credential = state.credentials.get(token)
    if credential is None or scheme.lower() not in ("basic", "bearer", "token"):
        return None
    expires_at = credential.expires_at
    return credential if expires_at is None or state.clock() < expires_at else None


def check_assertion(state: State, token: str) -> Credential:
    """Return the App of a signed assertion (RFC 7519). Raises Refusal."""
    try:
        header, claims = (json.loads(decode_part(it)) for it in token.split(".")[:2])
        issuer, issued, expires = str(claims["iss"]), claims["iat"], claims["exp"]
    except (ValueError, KeyError, TypeError):
        raise Refusal(401, "Bad credentials") from None
    apps = state.apps.values()
    app = next((it for it in apps if issuer in (it.client_id, str(it.id))), None)
    if app is None or header.get("alg") != "RS256" or not is_signed(token, app.key):
        raise Refusal(401, "A JSON web token could not be decoded")
    now = state.clock().timestamp()
    if expires > now + 600:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")
    if expires <= now:
        raise Refusal(401, "'Expiration time' claim ('exp') must be in the future")
    if issued > now:
        raise Refusal(401, "'Issued at' claim ('iat') must be in the past")
    return Credential(app.account, app=app)


def decode_part(text: str) -> bytes:
    """Return a part of an assertion, which is written in base64 without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def is_signed(token: str, key: Path | None) -> bool:
    """Return whether the key's owner signed an assertion; without a key nothing is asked."""
    if key is None:
        return True
    signed, _, signature = token.rpartition(".")
    with tempfile.NamedTemporaryFile() as file:
        file.write(decode_part(signature))
        file.flush()
        command = ["openssl", "dgst", "-sha256", "-verify", str(key), "-signature", file.name]
        done = subprocess.run(command, input=signed.encode(), capture_output=True, check=False)
    return done.returncode == 0
