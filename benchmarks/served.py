"""Serves repositories over HTTP on this machine, in a process of its own, as slowly as is asked."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import DEADLINE, environment

_SERVER = Path(__file__).resolve().parent.parent / "tests" / "http_git.py"


@contextmanager
def over_http(place: Path, delay: float) -> Iterator[str]:
    """The URL of all repositories below a directory; `delay` seconds are added to each answer."""
    command = [sys.executable, str(_SERVER), str(place), f"--delay={delay}"]
    server = subprocess.Popen(
        command,
        env=environment(place),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert server.stdin is not None, "it is a pipe"
    assert server.stdout is not None, "it is a pipe"
    try:
        yield server.stdout.readline().strip()
    finally:
        server.stdin.close()  # it serves until then
        server.wait(DEADLINE)
        server.stdout.close()
