"""Query parameters of URLs that carry credentials, by their names.

What is in a URL ends in logs of servers and proxies, in messages, and in a repository's history.
"""

import re
from itertools import pairwise
from urllib.parse import unquote_plus, urlsplit

from fanout.api.faults import BadValue

_WORDS = frozenset(
    {
        "apikey",
        "auth",
        "authorization",
        "bearer",
        "credential",
        "credentials",
        "jwt",
        "passwd",
        "password",
        "pwd",
        "sas",
        "secret",
        "sig",
        "signature",
        "token",
    }
)
_ENDINGS = ("apikey", "password", "secret", "signature", "token")  # as in accesstoken
# `key` alone is one; sort_key and the like are not.
_KEYS = frozenset({"access", "account", "api", "auth", "private", "secret", "subscription"})
_REMEDY = "remove it from the URL and name a secret in secretRef"


def is_secret_parameter(name: str) -> bool:
    """Whether a parameter of this name carries a credential, like ``X-Amz-Signature``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unquote_plus(name))
    words = re.findall(r"[a-z0-9]+", spaced.lower())
    if words == ["key"] or any(word in _WORDS or word.endswith(_ENDINGS) for word in words):
        return True
    return any(word in _KEYS and after == "key" for word, after in pairwise(words))


def check_no_secret_parameter(url: str) -> None:
    """Raise BadValue where the query of a URL carries a credential. Only the name is told."""
    for part in re.split("[&;]", urlsplit(url).query):
        name = unquote_plus(part.partition("=")[0])
        if is_secret_parameter(name):
            raise BadValue(f"the URL carries a secret in its query parameter {name}", _REMEDY)
