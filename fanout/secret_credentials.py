"""Credentials of a Secret, by the keys of its texts."""

from collections.abc import Mapping

from fanout.ports import TOKEN_USER, Credentials

# Fields of credentials by key, named as in kubernetes.io/basic-auth, kubernetes.io/ssh-auth and
# Flux.
SECRET_KEYS = {
    "username": "username",
    "password": "password",
    "ssh-privatekey": "private_key",
    "identity": "private_key",
    "known_hosts": "known_hosts",
    "ca.crt": "certificate_authority",
}


def read_secret_keys(texts: Mapping[str, str]) -> Credentials | None:
    """Return the credentials of a Secret with these texts by key.

    None without a password and a private key. Other keys are ignored.
    """
    fields = {
        SECRET_KEYS[key]: text.strip() for key, text in texts.items() if text and key in SECRET_KEYS
    }
    if "password" not in fields and "private_key" not in fields:
        return None
    return Credentials(**{"username": TOKEN_USER, **fields})
