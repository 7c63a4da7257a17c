"""Secrets of namespaces, read from the API server each time: a rotated one is used at once."""

from base64 import b64decode

from fanout.errors import Denied
from fanout.kube import kube_wording as wording
from fanout.kube.api_connection import ApiConnection, NotServed
from fanout.ports import Credentials, Secrets
from fanout.secret_keys import read_secret_keys
from fanout.telemetry.redaction import Redactor


class ApiSecrets:
    """Implementation of `fanout.ports.Secrets`; each secret is registered with the redactor."""

    def __init__(
        self, connection: ApiConnection, administrator_secrets: Secrets, redactor: Redactor
    ) -> None:
        """Read Secrets of namespaces; `administrator_secrets` has those without a namespace."""
        self._connection = connection
        self._administrator_secrets = administrator_secrets
        self._redactor = redactor

    def get(self, namespace: str, name: str) -> Credentials:
        """Return a Secret, or the administrator's own if the namespace is "".

        Raises Denied if it is missing, unusable or must not be read; the message never shows
        content. Raises Unavailable if the API server gives no usable response.
        """
        if not namespace:
            return self._administrator_secrets.get(namespace, name)
        try:
            document = self._connection.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
        except NotServed as error:
            raise _denied(error.problem, wording.MISSING_REMEDY) from error
        except Denied as error:
            raise _denied(wording.describe_forbidden_secret(name), wording.ROLE_REMEDY) from error
        data = document.get("data") or {}
        try:
            texts = {key: b64decode(value).decode() for key, value in data.items()}
        except ValueError:
            # The original error carries the content.
            problem = wording.describe_binary_secret(name)
            raise _denied(problem, wording.KEYS_REMEDY) from None
        secret = read_secret_keys(texts)
        if secret is None:
            problem = wording.describe_secret_keys(name)
            raise _denied(problem, wording.KEYS_REMEDY)
        for content in (secret.password, secret.private_key):
            self._redactor.register(content, secret.username)
        return secret


def _denied(problem: str, remedy: str) -> Denied:
    return Denied(problem, reason="SecretUnusable", remedy=remedy)
