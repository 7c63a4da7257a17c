"""Secrets of file mode, from the environment or a directory of secrets.

`secretRef: {name: edge-eu-token}` is the variable `FANOUT_SECRET_EDGE_EU_TOKEN`, or
`edge-eu-token` in the directory of secrets; the variable has precedence. The content is
`user:password`, a token alone (sent as the password of a user name that every forge
accepts), or a private SSH key. In the directory it may also be a directory with one
file per field, as Kubernetes mounts a Secret.
"""

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from fanout.cluster import cluster_wording as wording
from fanout.errors import Denied
from fanout.ports import TOKEN_USER, Credentials
from fanout.secret_keys import SECRET_KEYS, read_secret_keys
from fanout.telemetry.redaction import Redactor

VARIABLE_PREFIX = "FANOUT_SECRET_"
_KEY_HEADER = "-----BEGIN "
_NAME_PATTERN = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_log = logging.getLogger(__name__)


def secret_variable(name: str) -> str:
    """Return the environment variable of a secret; characters outside A-Z 0-9 become `_`."""
    return VARIABLE_PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


class FileSecrets:
    """Implementation of `fanout.ports.Secrets`; each secret is registered with the redactor.

    Nothing is cached: a rotated secret is used from its next lookup on.
    """

    def __init__(
        self,
        redactor: Redactor,
        directory: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._redactor = redactor
        self._directory = directory
        self._environment = os.environ if environment is None else environment
        self._warned: set[Path] = set()

    def get(self, namespace: str, name: str) -> Credentials:  # noqa: ARG002 as of the port
        """Return the secret of this name, which is the same for all namespaces.

        Raises Denied if it is missing or unusable; the message never shows content.
        """
        if not _NAME_PATTERN.fullmatch(name):
            raise _denied(name, wording.INVALID_NAME, wording.INVALID_NAME_REMEDY)
        secret = self._find(name)
        for content in (secret.password, secret.private_key):
            self._redactor.register(content, secret.username)
        return secret

    def _find(self, name: str) -> Credentials:
        path = None if self._directory is None else self._directory / name
        remedy = wording.format_secret_remedy(secret_variable(name), path)
        text = self._environment.get(secret_variable(name))
        if text is None and path is not None:
            if path.is_dir():
                return self._read_fields(name, path)
            text = self._read(name, path)
        if text is None:
            raise _denied(name, wording.NOT_FOUND, remedy)
        return _parse_secret(name, text.strip(), remedy)

    def _read_fields(self, name: str, directory: Path) -> Credentials:
        texts = {file: self._read(name, directory / file) or "" for file in SECRET_KEYS}
        secret = read_secret_keys(texts)
        if secret is None:
            problem = wording.describe_missing_fields(directory)
            raise _denied(name, problem, wording.MISSING_FIELDS_REMEDY)
        return secret

    def _read(self, name: str, path: Path) -> str | None:
        try:
            mode = path.stat().st_mode
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            # The original error carries the content.
            problem = wording.describe_binary_secret(path)
            raise _denied(name, problem, wording.NOT_TEXT_REMEDY) from None
        except OSError as error:
            problem = wording.describe_unreadable_file(f"{error.strerror} ({path})")
            raise _denied(name, problem) from error
        if mode & _OPEN_TO_OTHERS and path not in self._warned:
            self._warned.add(path)
            _log.warning("Other users can read the file of a secret; run chmod 600 %s", path)
        return text


def _parse_secret(name: str, text: str, remedy: str) -> Credentials:
    if not text:
        raise _denied(name, wording.EMPTY_CONTENT, remedy)
    if text.startswith(_KEY_HEADER):
        return Credentials(private_key=text)
    if len(text.splitlines()) > 1:
        raise _denied(name, wording.SEVERAL_LINES, wording.SEVERAL_LINES_REMEDY)
    username, colon, password = text.partition(":")
    return Credentials(username, password) if colon else Credentials(TOKEN_USER, text)


def _denied(name: str, problem: str, remedy: str = "") -> Denied:
    problem = wording.describe_secret(name, problem)
    return Denied(problem, reason="SecretUnusable", remedy=remedy)
