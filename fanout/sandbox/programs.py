"""Runs the functions that an administrator allows: executables, and images by a container runtime.

Each run has a directory of its own that goes with it, an environment with nothing of fanout's in
it, and limits. What an executable may read and reach is what fanout's own user may: allowing one is
trusting it. A container has no network, no privileges and nothing to write to.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from fanout.api.configuration import Functions
from fanout.api.functions import full_image
from fanout.sandbox.limits import Limits
from fanout.sandbox.process import Command, run
from fanout.sandbox.scripts import run_scripts
from fanout.telemetry.counters import Counters
from fanout.values import frozen
from fanout.variants.questions import Broken, Listed, Program, Programs, Ran, Run, Script

_MIB = 1 << 20
_AT_ONCE = 2 * (os.cpu_count() or 1)  # they work, so more would only take memory
_NOBODY = "65534:65534"
_PROCESSES = 256
_FAREWELL = 10.0  # seconds that the runtime has to end a container
_FILES = 1 << 30  # bytes of one file that an executable may write
# What a runtime's own client needs to find its images; nothing of it reaches a container.
_FOR_RUNTIMES = ("HOME", "PATH", "XDG_RUNTIME_DIR", "DOCKER_HOST", "CONTAINER_HOST")
_DIGITS = 16


def allowed_programs(allowed: Functions) -> Programs:
    """What may be run, by all names that a pipeline may use for it.

    An executable's version is its content, so that what it makes is made anew when it changes; that
    of an image is its name.
    """
    executables: dict[str, Program] = {}
    for item in allowed.executables:
        name = item.name or item.path.rpartition("/")[2]
        version, missing = _content(Path(item.path))
        program = Program(name, item.path, version=version, missing=missing)
        executables |= {name: program, item.path: program}
    missing = _without_runtime(allowed)
    images = {
        image: Program(image, image, image=True, version=image, missing=missing)
        for image in map(full_image, allowed.images)
    }
    return Programs(executables, images)


def _content(path: Path) -> tuple[str, str]:
    try:
        with path.open("rb") as file:
            digest = sha256()
            while piece := file.read(_MIB):
                digest.update(piece)
    except OSError as error:
        return "", f"{path}: {error.strerror}"
    if not os.access(path, os.X_OK):
        return "", f"{path} is not executable"
    return digest.hexdigest()[:_DIGITS], ""


def _without_runtime(allowed: Functions) -> str:
    if allowed.container_runtime is None:
        return "no containerRuntime is named"
    found = shutil.which(allowed.container_runtime)
    return "" if found else f"{allowed.container_runtime} is not on the PATH"


@frozen
class ProgramRunner:
    """Implements the running of programs for `fanout.ports.Workshop`."""

    allowed: Functions
    at_once: int
    counters: Counters
    script_limits: Limits

    def run(self, questions: Sequence[Run]) -> list[Ran | Broken]:
        """Run them, a few at a time; the answers in the order of the questions."""
        if not questions:
            return []
        self.counters.add("programs", len(questions))
        with ThreadPoolExecutor(min(self.at_once, _AT_ONCE, len(questions))) as threads:
            return list(threads.map(self._run, questions))

    def run_scripts(self, scripts: Sequence[Script]) -> list[Listed | Broken]:
        """Run scripts of packages in limited child processes."""
        self.counters.add("scripts", len(scripts))
        return run_scripts(scripts, self.script_limits)

    def _run(self, question: Run) -> Ran | Broken:
        program = question.program
        with tempfile.TemporaryDirectory(prefix="fanout-function-") as directory:
            work = self._container if program.image else self._executable
            answer = work(program.command, Path(directory), question.stdin)
        if isinstance(answer, Ran) and answer.status < 0:
            return Broken(f"it was ended by signal {-answer.status}", "see its limits")
        return answer

    def _executable(self, path: str, directory: Path, stdin: bytes) -> Ran | Broken:
        allowed = self.allowed
        limits = (allowed.wall_seconds + 1, allowed.memory_mib * _MIB, _FILES)
        confined = [sys.executable, "-I", "-m", "fanout.sandbox.confined", *map(str, limits)]
        home = str(directory)
        environment = {"PATH": os.defpath, "LANG": "C.UTF-8", "HOME": home, "TMPDIR": home}
        return run(self._command([*confined, path], directory, environment), stdin)

    def _container(self, image: str, directory: Path, stdin: bytes) -> Ran | Broken:
        runtime = shutil.which(str(self.allowed.container_runtime))
        if runtime is None:
            return Broken(f"{self.allowed.container_runtime} is not on the PATH")
        environment = {key: os.environ[key] for key in _FOR_RUNTIMES if key in os.environ}
        name = f"fanout-{uuid.uuid4().hex}"
        arguments = [runtime, "run", "--name", name, *self._flags(), image]
        answer = run(self._command(arguments, directory, environment), stdin)
        if isinstance(answer, Broken):  # the client is gone, the container may not be
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(
                    [runtime, "rm", "--force", name],
                    env=environment,
                    cwd=directory,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=_FAREWELL,
                    check=False,
                )
        return answer

    def _flags(self) -> list[str]:
        return [
            "--rm",
            "--interactive",
            "--network=none",
            f"--user={_NOBODY}",
            "--read-only",
            "--cap-drop=ALL",
            "--security-opt=no-new-privileges",
            f"--memory={self.allowed.memory_mib}m",
            f"--pids-limit={_PROCESSES}",
            "--tmpfs=/tmp",
        ]

    def _command(
        self, arguments: Sequence[str], directory: Path, environment: Mapping[str, str]
    ) -> Command:
        allowed = self.allowed
        most = allowed.output_mib * _MIB
        return Command(arguments, directory, environment, allowed.wall_seconds, most)
