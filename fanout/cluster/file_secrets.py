"""Secrets of file mode, from the environment or a directory of secrets.

`secretRef: {name: edge-eu-token}` is the variable `FANOUT_SECRET_EDGE_EU_TOKEN`, or `edge-eu-token`
in the directory of secrets; the variable has precedence. The content is `user:password`, a token
alone (sent as the password of a user name that every forge accepts), or a private SSH key. In the
directory it may also be a directory with one file per field, as Kubernetes mounts a Secret.
"""

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from fanout.errors import Denied
from fanout.ports import SECRET_KEYS, TOKEN_USER, Credentials, read_secret_keys
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
        """Return the secret of this name, the same for all namespaces. Raises Denied."""
        if not _NAME_PATTERN.fullmatch(name):
            problem = "is not a valid name of a secret"
            raise _denied(name, problem, "use lowercase letters, digits, - and .")
        secret = self._find(name)
        for content in secret.secret_texts:
            self._redactor.register(content, secret.username)
        return secret

    def _find(self, name: str) -> Credentials:
        path = None if self._directory is None else self._directory / name
        remedy = f"set the environment variable {secret_variable(name)}"
        if path is not None:
            remedy += f", or write the file {path}"
        if (text := self._environment.get(secret_variable(name))) is None and path is not None:
            if path.is_dir():
                texts = {file: self._read(name, path / file) or "" for file in SECRET_KEYS}
                if (secret := read_secret_keys(texts)) is None:
                    problem = f"has neither a file password nor a file key in {path}"
                    raise _denied(name, problem, "add one of them")
                return secret
            text = self._read(name, path)
        if text is None:
            raise _denied(name, "was not found", remedy)
        if not (text := text.strip()):
            raise _denied(name, "is empty", remedy)
        if text.startswith(_KEY_HEADER):
            return Credentials(private_key=text)
        if len(text.splitlines()) > 1:
            raise _denied(name, "has several lines", "write user:password, a token, or an SSH key")
        username, colon, password = text.partition(":")
        return Credentials(username, password) if colon else Credentials(TOKEN_USER, text)

    def _read(self, name: str, path: Path) -> str | None:
        try:
            mode = path.stat().st_mode
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            # The original error carries the content.
            problem = f"is not UTF-8 text ({path})"
            raise _denied(name, problem, "write a token or a key to it") from None
        except OSError as error:
            problem = f"cannot be read: {error.strerror} ({path})"
            raise _denied(name, problem) from error
        if mode & _OPEN_TO_OTHERS and path not in self._warned:
            self._warned.add(path)
            _log.warning("Other users can read the file of a secret; run chmod 600 %s", path)
        return text


def _denied(name: str, problem: str, remedy: str = "") -> Denied:
    return Denied(f"secret {name!r} {problem}", reason="SecretUnusable", remedy=remedy)
