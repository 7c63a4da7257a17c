"""Runner of git processes: environment, deadline, counters and failures.

No other module starts git. The environment of each process is built from a fixed list: the caller's
settings must not change results, and tokens of a pipeline or secrets of other repositories must not
reach git, its helpers, or hooks of local repositories. docs/concepts/security.md has the same list.
"""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from threading import Lock
from typing import BinaryIO

from fanout.api.urls import GitProtocol
from fanout.errors import Unavailable
from fanout.git.git_errors import translate_failure
from fanout.git.remote_access import RemoteAccess, provide_credentials, write_askpass
from fanout.git.remote_workers import note_process, waiting_for_remote
from fanout.telemetry.metrics import Counters, EventName

# Inherited if set. GIT_TRACE2_EVENT is for measurements.
_ALWAYS_INHERITED = ("PATH", "TMPDIR", "GIT_TRACE2_EVENT")
# Read by curl, which takes the proxy for http:// from the lower-case name only.
_HTTP_VARIABLES = (
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_INHERITED: Mapping[GitProtocol | None, tuple[str, ...]] = {
    None: _ALWAYS_INHERITED,
    GitProtocol.FILE: _ALWAYS_INHERITED,
    GitProtocol.HTTP: (*_ALWAYS_INHERITED, *_HTTP_VARIABLES),
    GitProtocol.HTTPS: (*_ALWAYS_INHERITED, *_HTTP_VARIABLES),
    # The agent serves a user's own key; a key from a Secret is passed without it.
    GitProtocol.SSH: (*_ALWAYS_INHERITED, "SSH_AUTH_SOCK"),
}


def build_fixed_environment(allowed: Collection[str], home: Path) -> dict[str, str]:
    """Build the variables that every git process has.

    `allowed` are URL protocols. `home` is an empty directory of fanout's own, so that no ``.netrc``
    supplies a credential in place of the secret.
    """
    return {
        "GIT_ALLOW_PROTOCOL": ":".join(allowed),
        "GIT_ASKPASS": "",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LFS_SKIP_SMUDGE": "1",
        # Replace refs of a remote would make git show other objects than the ids name.
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PROTOCOL_FROM_USER": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": str(home),
        "LANGUAGE": "C",
        "LC_ALL": "C",
        "TZ": "UTC",
    }


def select_inherited(ambient: Mapping[str, str], protocol: GitProtocol | None) -> dict[str, str]:
    """Select the variables of `ambient` for a process; `protocol` is that of its remote, if any."""
    variables = {name: ambient[name] for name in _INHERITED[protocol] if name in ambient}
    return {"PATH": os.defpath, **variables}


PUSH_GRACE = 10.0  # seconds that a push has to finish before it is terminated
_TERMINATION_GRACE = 5.0  # seconds that git has to remove its locks before it is killed
_POLL_SECONDS = 0.01  # seconds between checks whether it has ended


class GitProgram:
    """Runner of git on the bare mirrors below one directory. Thread-safe."""

    def __init__(
        self, directory: Path, allowed: Collection[str], counters: Counters, timeout: float
    ) -> None:
        """Prepare the environment; `directory`, the home of every process, has no configuration.

        `allowed` are URL protocols; `timeout` is in seconds per process.
        """
        self.counters = counters
        self._timeout = timeout
        self._directory = directory
        self._environment = build_fixed_environment(allowed, directory)
        write_askpass(directory)
        self._lock = Lock()
        self._running: dict[int, bool] = {}  # by process group: whether it is a push

    def run(
        self,
        mirror: Path,
        arguments: Sequence[str],
        access: RemoteAccess | None = None,
        stdin: BinaryIO | None = None,
        timeout: float | None = None,
        settings: Sequence[str] = (),
    ) -> bytes:
        """Run `git <arguments>` in the mirror and return what it prints on stdout.

        `access` is given if the process talks to the remote. `timeout` is in seconds and can only
        shorten the default one. `settings` are `name=value` configuration. Raises the errors of
        `fanout.git.git_errors`.
        """
        seconds = min(timeout or self._timeout, self._timeout)
        command_line = [word for setting in settings for word in ("-c", setting)] + [*arguments]
        operation = arguments[0]
        with (
            self.counters.times.work(f"git {operation}"),
            self.counters.events.operation(
                EventName.GIT_OPERATION, EventName.GIT_SECONDS, operation
            ),
        ):
            if access is None:
                return self._execute(mirror, command_line, {}, None, stdin, seconds)
            # Written again if the directory was deleted while this process runs.
            askpass = write_askpass(self._directory)
            with (
                provide_credentials(access, self._directory, askpass) as variables,
                waiting_for_remote(mirror),
            ):
                return self._execute(mirror, command_line, variables, access, stdin, seconds)

    def stop(self, push_grace: float = PUSH_GRACE) -> None:
        """End all running processes after an interrupt.

        A push to a local repository has the server's part among its children, which holds a
        lock file per ref. A killed process leaves all of them, a terminated one only the one
        that it is creating. So a push has `push_grace` seconds to end by itself.
        """
        started = time.monotonic()
        try:
            terminated: set[int] = set()
            while running := self._running_groups():
                overdue = time.monotonic() - started - push_grace
                if overdue > _TERMINATION_GRACE:
                    return
                for group, pushes in running.items():
                    if group not in terminated and (overdue > 0 or not pushes):
                        terminated.add(group)
                        _signal(group, SIGTERM)
                time.sleep(_POLL_SECONDS)
        finally:
            for group in self._running_groups():
                _signal(group, SIGKILL)

    def _running_groups(self) -> dict[int, bool]:
        with self._lock:
            return dict(self._running)

    def _execute(
        self,
        mirror: Path,
        arguments: Sequence[str],
        extra: Mapping[str, str],
        access: RemoteAccess | None,
        stdin: BinaryIO | None,
        seconds: float,
    ) -> bytes:
        ambient = select_inherited(os.environ, access.address.protocol if access else None)
        variables = {**ambient, **self._environment, "GIT_DIR": str(mirror), **extra}
        command, is_push = ["git", *arguments], "push" in arguments
        # Loaded here: it takes 45 ms, and a pass without work on local repositories starts no git.
        from git.cmd import Git, safer_popen  # noqa: PLC0415

        self.counters.add("git_processes")
        try:
            # Not `Git.execute`: it extends the environment and cannot remove variables from it.
            guard = Git.AutoInterrupt(
                safer_popen(
                    command,
                    env=variables,
                    cwd=mirror if mirror.is_dir() else None,  # another process may have deleted it
                    stdin=stdin or DEVNULL,
                    stdout=PIPE,
                    stderr=PIPE,
                    # A session of its own makes git and its children one process group, which can
                    # be signaled as a whole and which a Ctrl-C of the terminal does not reach.
                    start_new_session=True,
                ),
                command,
            )
        except FileNotFoundError as error:
            raise Unavailable(
                "git is not in PATH", reason="GitMissing", remedy="install git"
            ) from error
        process = guard.proc  # GitPython kills the process once `guard` is garbage-collected
        assert process is not None
        with self._lock:
            self._running[process.pid] = is_push
        note_process(process.pid)
        with process:
            try:
                stdout, stderr = process.communicate(timeout=seconds)
            except TimeoutExpired as error:
                is_push = False  # the grace period is over
                raise Unavailable(
                    f"git did not finish within {seconds:g} s",
                    reason="GitTimeout",
                    remedy="check that the server responds; the next pass tries again",
                    where=access.address.where if access else None,
                ) from error
            finally:
                with self._lock:
                    self._running.pop(process.pid, None)
                if process.returncode is None:
                    _terminate(process, PUSH_GRACE if is_push else 0.0)
        if process.returncode != 0:
            messages = stderr.decode(errors="replace")
            raise translate_failure(stdout.decode(errors="replace"), messages, access)
        output: bytes = stdout
        return output


def _terminate(process: "Popen[bytes]", grace: float) -> None:
    """End a process and its children: wait `grace` seconds, then terminate, then kill."""
    try:
        for seconds in (grace, _TERMINATION_GRACE):
            with suppress(TimeoutExpired):
                process.communicate(timeout=seconds)
                return
            _signal(process.pid, SIGTERM)
    finally:
        if process.returncode is None:
            _signal(process.pid, SIGKILL)


def _signal(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
