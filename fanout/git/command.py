"""The only place that starts git: its environment made anew, with a deadline, counted, failures
translated."""

import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM
from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired
from threading import Lock
from typing import BinaryIO

from git.cmd import Git, safer_popen

from fanout.errors import Unavailable
from fanout.git.credentials import Access, presented, write_askpass
from fanout.git.environment import fixed, inherited
from fanout.git.failures import translate
from fanout.telemetry.counters import Counters
from fanout.values import frozen

PUSHED_WITHIN = 10.0  # seconds for a push to come to its end by itself, when it is to end
_GRACE = 5.0  # seconds for git to take its locks away
_GLANCE = 0.01  # seconds between two looks whether it has


@frozen
class Output:
    """What a process that ended well wrote."""

    stdout: bytes
    stderr: str


class GitProgram:
    """git on the bare mirrors below one directory. Thread-safe."""

    def __init__(
        self, directory: Path, allowed: Collection[str], counters: Counters, timeout: float
    ) -> None:
        """`directory` is the home of every process; it has nothing in it that git would read."""
        self.counters = counters
        self._timeout = timeout
        self._directory = directory
        self._environment = fixed(allowed, directory)
        self._askpass = write_askpass(directory)
        self._lock = Lock()
        self._running: dict[int, bool] = {}  # groups of processes, and whether it is a push

    def run(
        self,
        mirror: Path,
        arguments: Sequence[str],
        access: Access | None = None,
        stdin: BinaryIO | None = None,
        timeout: float | None = None,
        settings: Sequence[str] = (),
    ) -> Output:
        """Run `git <arguments>` in the mirror; `access` when the process talks to the remote.

        `timeout` in seconds is for what may take less long than everything else; `settings` are
        `name=value`, beside those of the mirror.
        Raises an error of a family that says what to do (see `fanout.git.failures`).
        """
        patience = min(timeout or self._timeout, self._timeout)
        words = [word for setting in settings for word in ("-c", setting)] + [*arguments]
        with self.counters.times.work(f"git {arguments[0]}"):
            if access is None:
                return self._execute(mirror, words, {}, None, stdin, patience)
            with presented(access, self._directory, self._askpass) as variables:
                return self._execute(mirror, words, variables, access, stdin, patience)

    def stop(self) -> None:
        """End what runs: whoever waited for it was interrupted.

        A push to a repository on this machine has the server's part among its helpers. That holds a
        lock for each ref, and a lock that stays is in everybody's way. Who is killed leaves all of
        them; who is asked to end leaves the one that it is just making. So a push has time to end.
        """
        begin = time.monotonic()
        try:
            asked: set[int] = set()
            while running := self._groups():
                late = time.monotonic() - begin - PUSHED_WITHIN
                if late > _GRACE:
                    return
                for group, pushes in running.items():
                    if group not in asked and (late > 0 or not pushes):
                        asked.add(group)
                        _signal(group, SIGTERM)
                time.sleep(_GLANCE)
        finally:
            for group in self._groups():
                _signal(group, SIGKILL)

    def _groups(self) -> dict[int, bool]:
        with self._lock:
            return dict(self._running)

    def _execute(
        self,
        mirror: Path,
        arguments: Sequence[str],
        extra: Mapping[str, str],
        access: Access | None,
        stdin: BinaryIO | None,
        patience: float,
    ) -> Output:
        ambient = inherited(os.environ, access.address.protocol if access else None)
        variables = {**ambient, **self._environment, "GIT_DIR": str(mirror), **extra}
        command = ["git", *arguments]
        self.counters.add("git_processes")
        try:
            # `Git.execute` would add to the surroundings, and can take nothing away from them.
            started = Git.AutoInterrupt(
                safer_popen(
                    command,
                    env=variables,
                    cwd=mirror if mirror.is_dir() else None,  # one may be dropped under us
                    stdin=stdin or DEVNULL,
                    stdout=PIPE,
                    stderr=PIPE,
                    start_new_session=True,
                ),
                command,
            )
        except FileNotFoundError as error:
            raise Unavailable(
                "the program git was not found", reason="GitMissing", remedy="install git"
            ) from error
        process = started.proc  # which GitPython ends when nobody holds `started` any more
        assert process is not None
        stdout, stderr = self._answer(process, access, patience, pushes="push" in arguments)
        if process.returncode != 0:
            raise translate(_text(stdout), _text(stderr), access)
        return Output(stdout, _text(stderr))

    def _answer(
        self, process: "Popen[bytes]", access: Access | None, patience: float, *, pushes: bool
    ) -> tuple[bytes, bytes]:
        """What it writes until it ends; after `patience` it is ended, with all its helpers.

        They are a group of their own, which also makes a Ctrl-C no signal for what has begun.
        """
        with self._lock:
            self._running[process.pid] = pushes
        with process:
            try:
                return process.communicate(timeout=patience)
            except TimeoutExpired as error:
                pushes = False  # it had its time
                raise Unavailable(
                    f"git gave no answer within {patience:g} s",
                    reason="GitTimeout",
                    remedy="see whether the server answers; the next pass tries again",
                    where=access.address.where if access else None,
                ) from error
            finally:
                with self._lock:
                    self._running.pop(process.pid, None)
                if process.returncode is None:
                    _end(process, PUSHED_WITHIN if pushes else 0.0)


def _end(process: "Popen[bytes]", by_itself: float) -> None:
    """See to it that it and its helpers end, by themselves within so many seconds, or asked to."""
    try:
        for seconds in (by_itself, _GRACE):
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


def _text(stream: bytes) -> str:
    return stream.decode(errors="replace")
