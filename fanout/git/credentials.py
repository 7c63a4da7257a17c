"""Secrets on their way to git: in the child's environment or a private file, nowhere else."""

import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from fanout.api.urls import Protocol
from fanout.git.address import Address
from fanout.ports import Secret
from fanout.telemetry.redact import Redactor
from fanout.values import frozen

# It answers the host that the secret is for and no other, so a redirect gets nothing.
_ASKPASS = """#!/bin/sh
case "$1" in
*"//$FANOUT_GIT_HOST'"* | *"@$FANOUT_GIT_HOST'"*) ;;
*) exit 1 ;;
esac
case "$1" in
Username*) printf '%s\\n' "$FANOUT_GIT_USERNAME" ;;
Password*) printf '%s\\n' "$FANOUT_GIT_PASSWORD" ;;
*) exit 1 ;;
esac
"""

_PREFIX, _HELD = "secret-", "held"
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


@frozen
class Access:
    """A place and what opens it."""

    address: Address
    secret: Secret | None = None

    def redact(self, text: str) -> str:
        """The text without the secret in any of the forms in which git could show it."""
        redactor = Redactor()
        if self.secret is not None:
            redactor.register(self.secret.password, self.secret.username)
        return redactor.text(text)


def write_askpass(directory: Path) -> Path:
    """The program that hands git the secret it finds in its environment."""
    path = directory / "askpass"
    if not path.exists() or path.read_bytes() != _ASKPASS.encode():
        fresh = directory / "askpass.new"
        fresh.write_text(_ASKPASS, encoding="utf-8")
        fresh.chmod(0o700)
        fresh.replace(path)
    return path


def remove_left_keys(directory: Path) -> None:
    """Remove the keys and certificates of processes that were killed; those in use stay."""
    with _one_at_a_time(directory):
        for private in directory.glob(f"{_PREFIX}*"):
            if not _is_held(private / _HELD):
                shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _private(directory: Path) -> Iterator[Path]:
    """A directory for the owner alone, locked for as long as the block lasts.

    The lock ends with the process, however that ends, and tells `remove_left_keys` what is in use.
    """
    with ExitStack() as stack:
        with _one_at_a_time(directory):
            private = TemporaryDirectory(prefix=_PREFIX, dir=directory)
            file = os.open(Path(private.name) / _HELD, _FLAGS, 0o600)
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield Path(stack.enter_context(private))


@contextmanager
def _one_at_a_time(directory: Path) -> Iterator[None]:
    """Keep a directory that is not locked yet from being taken for one that is left."""
    file = os.open(directory / "secrets.lock", _FLAGS, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


def _is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(file)


@contextmanager
def presented(access: Access, directory: Path, askpass: Path) -> Iterator[Mapping[str, str]]:
    """Variables for one git process that let it in; nothing of them is in its arguments.

    Keys and certificates are private files in `directory` for as long as the block lasts.
    """
    protocol, secret = access.address.protocol, access.secret
    if protocol is Protocol.FILE:
        yield {}
    elif secret is None:
        yield {"GIT_ASKPASS": str(askpass), **_ssh(Secret(), Path())}
    else:
        with _private(directory) as private:
            if protocol is Protocol.SSH:
                yield _ssh(secret, private)
            else:
                yield {"GIT_ASKPASS": str(askpass), **_http(access.address, secret, private)}


def _http(address: Address, secret: Secret, private: Path) -> dict[str, str]:
    variables: dict[str, str] = {}
    if secret.certificate_authority:
        path = _write(private / "authority.pem", secret.certificate_authority)
        variables["GIT_SSL_CAINFO"] = path
    if secret.password or secret.username:
        variables["FANOUT_GIT_HOST"] = address.host
        variables["FANOUT_GIT_USERNAME"] = secret.username
        variables["FANOUT_GIT_PASSWORD"] = secret.password
    return variables


def _ssh(secret: Secret, private: Path) -> dict[str, str]:
    """The key and no other, and no question to a terminal."""
    words = ["ssh", "-o", "BatchMode=yes"]
    if secret.private_key:
        key = _write(private / "key", secret.private_key)
        words += ["-i", key, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none"]
    if secret.known_hosts:
        hosts = _write(private / "known_hosts", secret.known_hosts)
        words += ["-o", f"UserKnownHostsFile={hosts}", "-o", "StrictHostKeyChecking=yes"]
    return {"GIT_SSH_COMMAND": shlex.join(words), "GIT_SSH_VARIANT": "ssh"}


def _write(path: Path, content: str) -> str:
    path.touch(mode=0o600)
    path.write_text(content if content.endswith("\n") else f"{content}\n", encoding="utf-8")
    return str(path)
