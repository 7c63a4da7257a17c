"""Access of git to a remote: its validated address and its secret.

A URL must not become an option or a command of git. The secret is passed by the child's environment
or a private file: arguments are visible to every user of the machine, and configuration files
outlive the process; neither ever has a secret.
"""

import fcntl
import os
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from fanout.api.field_errors import InvalidValue
from fanout.api.urls import GitProtocol, check_url, parse_protocol
from fanout.errors import ErrorLocation, InvalidInput
from fanout.ports import Credentials
from fanout.telemetry.redaction import Redactor
from fanout.values import Value


class RepositoryAddress(Value):
    """A validated URL with its protocol and the host that may receive the secret."""

    url: str
    protocol: GitProtocol
    host: str = ""

    @property
    def where(self) -> ErrorLocation:
        """The location for error messages."""
        return ErrorLocation(object=self.url)


def parse_address(url: str, allowed: Collection[str]) -> RepositoryAddress:
    """Validate a URL, even if it was validated before. Raises InvalidInput.

    A relative path is resolved against the working directory.
    """
    try:
        protocol = parse_protocol(check_url(url)) if url else None
    except InvalidValue as error:
        raise _refusal(url, error.problem, error.remedy) from error
    if protocol is None:
        raise _refusal(url, "the URL is empty", "set spec.url of the Repository")
    if protocol not in allowed:
        remedy = f"use one of {', '.join(sorted(allowed))}, or allow it in the FanoutConfiguration"
        raise _refusal(url, f"the protocol {protocol} is not allowed", remedy)
    if protocol is GitProtocol.FILE and "://" not in url:
        return RepositoryAddress(str(Path(url).absolute()), protocol)
    # With the port, as git names the host in its question to askpass.
    host = urlsplit(url).netloc.rpartition("@")[2] if "://" in url else ""
    return RepositoryAddress(url, protocol, host)


def _refusal(url: str, problem: str, remedy: str) -> InvalidInput:
    # Redacted: the URL may be refused because it contains a password.
    return InvalidInput(
        problem,
        reason="UrlRefused",
        remedy=remedy,
        where=ErrorLocation(object=Redactor().redact_text(url)[:200]),
    )


# Answers only for the host that the secret is for, so a redirect gets nothing.
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

_PREFIX, _LOCK_NAME = "secret-", "held"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class RemoteAccess(Value):
    """Address of a repository, the secret for it, and namespace and name of that secret.

    `is_anonymous`: the credentials of the user of this process are not for it.
    """

    address: RepositoryAddress
    secret: Credentials | None = None
    name: str = ""
    is_anonymous: bool = False

    def redact(self, text: str) -> str:
        """Return the text without the secret in any form in which git could show it."""
        redactor = Redactor()
        if self.secret is not None:
            redactor.register(self.secret.password, self.secret.username)
        return redactor.redact_text(text)


def write_askpass(directory: Path) -> Path:
    """Write the askpass program, which prints the secret of its environment. Return its path."""
    path = directory / "askpass"
    if not path.exists() or path.read_bytes() != _ASKPASS.encode():
        temporary = directory / "askpass.new"
        temporary.write_text(_ASKPASS, encoding="utf-8")
        temporary.chmod(0o700)
        temporary.replace(path)
    return path


def remove_stale_keys(directory: Path) -> None:
    """Remove the private directories of processes that were killed; those in use stay."""
    with _exclusive(directory):
        for private in directory.glob(f"{_PREFIX}*"):
            try:
                file = os.open(private / _LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
            except OSError:
                shutil.rmtree(private, ignore_errors=True)
                continue
            with ExitStack() as stack, suppress(BlockingIOError):
                stack.callback(os.close, file)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(private, ignore_errors=True)


@contextmanager
def _private_directory(directory: Path) -> Iterator[Path]:
    """Create a directory for the owner alone, locked for the duration of the block.

    The lock ends with the process, however it ends; `remove_stale_keys` relies on it.
    """
    with ExitStack() as stack:
        with _exclusive(directory):
            temporary = TemporaryDirectory(prefix=_PREFIX, dir=directory)
            file = os.open(Path(temporary.name) / _LOCK_NAME, _LOCK_FLAGS, 0o600)
            stack.callback(os.close, file)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield Path(stack.enter_context(temporary))


@contextmanager
def _exclusive(directory: Path) -> Iterator[None]:
    """Exclude other processes while a new directory has no lock and looks stale."""
    file = os.open(directory / "secrets.lock", _LOCK_FLAGS, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


@contextmanager
def provide_credentials(
    access: RemoteAccess, directory: Path, askpass: Path
) -> Iterator[Mapping[str, str]]:
    """Yield the environment variables that give one git process access.

    Keys and certificates are private files in `directory` for the duration of the block.
    """
    protocol, secret = access.address.protocol, access.secret
    if protocol is GitProtocol.FILE:
        yield {}
    elif secret is None:
        variables = _ssh_variables(Credentials(), Path(), is_anonymous=access.is_anonymous)
        yield {"GIT_ASKPASS": str(askpass), **variables}
    else:
        with _private_directory(directory) as private:
            if protocol is GitProtocol.SSH:
                yield _ssh_variables(secret, private, is_anonymous=access.is_anonymous)
            else:
                variables = {"GIT_ASKPASS": str(askpass)}
                if secret.certificate_authority:
                    path = _write_private(private / "authority.pem", secret.certificate_authority)
                    variables["GIT_SSL_CAINFO"] = path
                if secret.password or secret.username:
                    variables["FANOUT_GIT_HOST"] = access.address.host
                    variables["FANOUT_GIT_USERNAME"] = secret.username
                    variables["FANOUT_GIT_PASSWORD"] = secret.password
                yield variables


def _ssh_variables(secret: Credentials, private: Path, *, is_anonymous: bool) -> dict[str, str]:
    """Build the ssh command: the secret's key and no other, and no prompt at a terminal.

    Without a key the user's own are offered, unless the repository is to be reached anonymously.
    """
    command = ["ssh", "-o", "BatchMode=yes"]
    if secret.private_key:
        key = _write_private(private / "key", secret.private_key)
        # Keys of the user's agent would be tried first and could give access under another name.
        command += ["-i", key, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none"]
    elif is_anonymous:
        command += ["-o", "PreferredAuthentications=none"]
    if secret.known_hosts:
        hosts = _write_private(private / "known_hosts", secret.known_hosts)
        command += ["-o", f"UserKnownHostsFile={hosts}", "-o", "StrictHostKeyChecking=yes"]
    return {"GIT_SSH_COMMAND": shlex.join(command), "GIT_SSH_VARIANT": "ssh"}


def _write_private(path: Path, content: str) -> str:
    path.touch(mode=0o600)
    path.write_text(content if content.endswith("\n") else f"{content}\n", encoding="utf-8")
    return str(path)
