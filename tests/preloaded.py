"""Commands of fanout as processes of their own that do not load its modules again.

A process of fanout spends most of its time loading modules; here it is forked from one that has
loaded them. Everything else is its own: arguments, directory, environment, descriptors, signals and
exit code. That `fanout` starts as it is installed is tested in tests/test_installed_wheel.py and
tests/cli/test_main.py.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from interrupting import start_interruptible

FANOUT = ("-m", "fanout")
PATIENCE = 300  # seconds, for a slow machine
COMMANDS = ("fanout.cli",)  # packages, whose modules load most of the others
DRIVER = Path(__file__).with_name("preloaded_driver.py")
# A program `fanout` for a shell. It loads nothing but what it needs, and passes on what it has.
PROGRAM = """\
#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    command, directory = ["-m", "fanout", *sys.argv[1:]], os.getcwd()
    request = {{"command": command, "directory": directory, "environment": dict(os.environ)}}
    socket.send_fds(connection, [json.dumps(request).encode() + b"\\n"], [0, 1, 2])
    with connection.makefile() as answers:
        process, status = answers
sys.exit(int(status) if int(status) >= 0 else 128 - int(status))
"""


@cache
def start_driver(python: str, packages: tuple[str, ...]) -> Path:
    """Start the process that forks commands of the fanout that a Python has; return its socket.

    It has loaded all modules of `packages`.
    """
    directory = tempfile.TemporaryDirectory(prefix="preloaded")
    address = Path(directory.name, "socket")
    driver = start_interruptible(
        # Without the modules of this directory.
        [python, "-P", str(DRIVER), str(address), *packages],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert driver.stdout is not None
    assert driver.stdout.readline() == "ready\n"

    def end() -> None:
        driver.communicate()
        directory.cleanup()

    atexit.register(end)
    return address


def write_program(directory: Path, python: str = sys.executable) -> Path:
    """Write a program `fanout` for a shell that is to run the fanout of a Python."""
    path = directory / "fanout"
    address = str(start_driver(python, COMMANDS))
    path.write_text(PROGRAM.format(python=sys.executable, address=address), encoding="utf-8")
    path.chmod(0o755)
    return path


class PreloadedProcess:
    """A process of fanout, with those of `subprocess.Popen`'s methods that tests need."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        environment: Mapping[str, str],
        stdout: int = subprocess.DEVNULL,
        stderr: int = subprocess.DEVNULL,
    ) -> None:
        """Start it; `command` is what would follow `python`. Its stdin is empty."""
        # Nothing else loads the libraries for a cluster.
        packages = (*COMMANDS, "fanout.kube") if "controller" in command else COMMANDS
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(str(start_driver(sys.executable, packages)))
        request = {
            "command": list(command),
            "directory": str(directory),
            "environment": dict(environment),
        }
        text = json.dumps(request).encode() + b"\n"
        with Path(os.devnull).open("r+b", buffering=0) as nothing:
            outputs = [nothing.fileno() if it < 0 else it for it in (stdout, stderr)]
            sent = socket.send_fds(self._connection, [text], [nothing.fileno(), *outputs])
        self._connection.sendall(text[sent:])
        self._answers = self._connection.makefile()
        self.pid = int(self._answers.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code if it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return its exit code."""
        if self.returncode is None:
            ready, _, _ = select.select([self._connection], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("fanout", timeout or 0)
            with self._connection, self._answers:
                self.returncode = int(self._answers.readline())
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it, if it has not ended."""
        self.send_signal(signal.SIGKILL)


def run_preloaded(
    command: Sequence[str], *, directory: Path, environment: Mapping[str, str]
) -> tuple[int, str]:
    """Run a command that ends by itself; return its exit code and its output."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        process = PreloadedProcess(
            command,
            directory=directory,
            environment=environment,
            stdout=output.fileno(),
            stderr=output.fileno(),
        )
        try:
            code = process.wait(PATIENCE)
        finally:
            process.kill()
        output.seek(0)
        return code, output.read()
