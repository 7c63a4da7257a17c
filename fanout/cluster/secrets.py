"""Secrets of file mode, by name: from the environment or a directory, never from a declared file.

`secretRef: {name: edge-eu-token}` is the variable `FANOUT_SECRET_EDGE_EU_TOKEN`, or the file
`edge-eu-token` in the directory of secrets; the variable wins. The content is

* `user:password`,
* a token alone, which goes out as the password of a user name that every forge accepts, or
* a private SSH key, which only a file can hold: ssh reads it from there itself.
"""

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

import structlog

from fanout.errors import Denied
from fanout.ports import Secret
from fanout.telemetry.redact import Redactor

PREFIX = "FANOUT_SECRET_"
# GitHub takes any name beside a token, GitLab and Gitea any that is not empty.
TOKEN_USER = "x-access-token"  # noqa: S105 a user name
_KEY = "-----BEGIN "
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_OPEN_TO_OTHERS = stat.S_IRWXG | stat.S_IRWXO

_log = structlog.get_logger()


def variable(name: str) -> str:
    """The environment variable for a secret's name; every character but A-Z 0-9 is `_`."""
    return PREFIX + re.sub(r"[^A-Z0-9]", "_", name.upper())


class FileSecrets:
    """Looks secrets up, and tells the redactor each one it has seen.

    Nothing is kept: a rotated secret is used from its next look-up on.
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

    def get(self, name: str) -> Secret:
        """The secret of this name.

        Raises Denied when there is none or it cannot be used; the sentence never shows content.
        """
        if not _NAME.fullmatch(name):
            raise _denied(name, "is no name of a secret", "use lower-case letters, digits, - and .")
        text = self._environment.get(variable(name))
        if text is not None:
            return self._secret(name, text, None)
        if self._directory is not None:
            path = self._directory / name
            text = self._read(name, path)
            if text is not None:
                return self._secret(name, text, path)
        raise _denied(name, "was not found", self._remedy(name))

    def _remedy(self, name: str) -> str:
        remedy = f"set the environment variable {variable(name)}"
        return f"{remedy} or write the file {self._directory / name}" if self._directory else remedy

    def _read(self, name: str, path: Path) -> str | None:
        try:
            mode = path.stat().st_mode
            text = path.read_text("utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            # The original error carries the content.
            raise _denied(name, f"is no text ({path})", "write a token or a key to it") from None
        except OSError as error:
            raise _denied(name, f"cannot be read: {error.strerror} ({path})") from error
        if mode & _OPEN_TO_OTHERS and path not in self._warned:
            self._warned.add(path)
            _log.warning("A secret's file can be read by others; chmod 600 it", file=str(path))
        return text

    def _secret(self, name: str, text: str, path: Path | None) -> Secret:
        text = text.strip()
        if not text:
            raise _denied(name, "is empty", self._remedy(name))
        if text.startswith(_KEY):
            if path is None:
                remedy = "write it to a file in the directory of secrets, with mode 0600"
                raise _denied(name, "is an SSH key in an environment variable", remedy)
            return Secret(ssh_key_file=str(path.absolute()))
        if len(text.splitlines()) > 1:
            raise _denied(name, "has several lines", "write user:password, a token, or an SSH key")
        username, colon, password = text.partition(":")
        secret = Secret(username, password) if colon else Secret(TOKEN_USER, text)
        self._redactor.register(secret.password, secret.username)
        return secret


def _denied(name: str, problem: str, remedy: str = "") -> Denied:
    return Denied(f"secret {name!r} {problem}", reason="SecretUnusable", remedy=remedy)
