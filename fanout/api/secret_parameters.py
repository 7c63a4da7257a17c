"""Detection of URL query parameters that carry credentials, by their names.

URLs end in logs of servers and proxies, in messages, and in the history of a
repository.
"""

import re
from itertools import pairwise
from urllib.parse import unquote_plus, urlsplit

from fanout.api.field_errors import InvalidValue

_SECRET_WORDS = frozenset(
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
_SECRET_SUFFIXES = ("apikey", "password", "secret", "signature", "token")  # as in accesstoken
# `key` alone is one; sort_key and the like are not.
_KEY_QUALIFIERS = frozenset(
    {"access", "account", "api", "auth", "private", "secret", "subscription"}
)
_REMEDY = "remove it from the URL and name a secret in secretRef"


def is_secret_parameter(name: str) -> bool:
    """Return whether a parameter of this name carries a credential: `X-Amz-Signature`."""
    # Words of camelCase names are compared one by one, so that `accessToken` is found as
    # well.
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", unquote_plus(name))
    words = re.findall(r"[a-z0-9]+", spaced.lower())
    if words == ["key"] or any(
        word in _SECRET_WORDS or word.endswith(_SECRET_SUFFIXES) for word in words
    ):
        return True
    return any(
        word in _KEY_QUALIFIERS and following == "key" for word, following in pairwise(words)
    )


def check_no_secret_parameter(url: str) -> None:
    """Raise InvalidValue if the query of a URL carries a credential.

    The message has the name only.
    """
    for part in re.split("[&;]", urlsplit(url).query):
        name = unquote_plus(part.partition("=")[0])
        if is_secret_parameter(name):
            raise InvalidValue(f"the URL carries a secret in its query parameter {name}", _REMEDY)
