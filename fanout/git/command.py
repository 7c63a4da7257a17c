"""The only place that starts git: scrubbed, with a deadline, counted, failures translated."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from git.cmd import Git
from git.exc import GitCommandNotFound

from fanout.errors import Unavailable
from fanout.git.credentials import Access, presented, write_askpass
from fanout.git.environment import scrubbed, strays
from fanout.git.failures import translate
from fanout.telemetry.counters import Counters


@dataclass(frozen=True, slots=True)
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
        self._environment = scrubbed(allowed, directory)
        self._askpass = write_askpass(directory)

    def run(
        self,
        mirror: Path,
        arguments: Sequence[str],
        access: Access | None = None,
        stdin: BinaryIO | None = None,
    ) -> Output:
        """Run `git <arguments>` in the mirror; `access` when the process talks to the remote.

        Raises an error of a family that says what to do (see `fanout.git.failures`).
        """
        with self.counters.times.work(f"git {arguments[0]}"):
            if access is None:
                return self._execute(mirror, arguments, {}, None, stdin)
            with presented(access, self._directory, self._askpass) as variables:
                return self._execute(mirror, arguments, variables, access, stdin)

    def _execute(
        self,
        mirror: Path,
        arguments: Sequence[str],
        extra: Mapping[str, str],
        access: Access | None,
        stdin: BinaryIO | None,
    ) -> Output:
        variables = {**self._environment, "GIT_DIR": str(mirror), **extra}
        # GitPython adds to the surroundings and cannot take away: env(1) does.
        unwanted = [word for name in strays(os.environ, variables) for word in ("-u", name)]
        prefix = ["env", *unwanted] if unwanted else []
        self.counters.add("git_processes")
        try:
            status, stdout, stderr = Git(str(mirror)).execute(
                [*prefix, "git", *arguments],
                istream=stdin,
                env=variables,
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                kill_after_timeout=self._timeout,
            )
        except GitCommandNotFound as error:
            raise Unavailable(
                "the program git was not found", reason="GitMissing", remedy="install git"
            ) from error
        assert isinstance(stdout, bytes)
        if status != 0:
            raise translate(stdout.decode(errors="replace"), _text(stderr), access)
        return Output(stdout, _text(stderr))


def _text(stream: str | bytes) -> str:
    return stream.decode(errors="replace") if isinstance(stream, bytes) else stream
