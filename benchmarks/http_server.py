"""HTTP server of Git repositories in a process of its own, with an optional delay."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.processes import DEADLINE, environment

_SERVER = Path(__file__).resolve().parent.parent / "tests" / "http_git.py"


@contextmanager
def serve_over_http(directory: Path, delay: float) -> Iterator[str]:
    """Serve all repositories below a directory; yield their URL. `delay`: seconds per request."""
    command = [sys.executable, str(_SERVER), str(directory), f"--delay={delay}"]
    server = subprocess.Popen(
        command,
        env=environment(directory),
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
        server.stdin.close()  # the server stops then
        server.wait(DEADLINE)
        server.stdout.close()
