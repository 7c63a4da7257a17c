"""Runs of measured processes: with a deadline, a clean environment and a memory probe."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DEADLINE = 1800.0  # seconds for a single process
_PROBE_INTERVAL = 0.1  # seconds between two measurements of memory
_PAGE = os.sysconf("SC_PAGE_SIZE")
_FORKED = 0x40  # PF_FORKNOEXEC: the memory is still that of the parent
IDENTITY = "fanout benchmark <benchmark@localhost>"


@dataclass(frozen=True, slots=True)
class Run:
    """Duration of a process, peak memory of it and its descendants, and its output."""

    seconds: float
    peak: int  # bytes; shared pages are counted once for each process
    exit_seconds: float  # from the last line on stderr to the end of the process
    stdout: str
    stderr: str


def environment(home: Path) -> dict[str, str]:
    """Return an environment without the user's git configuration, with one identity."""
    name, _, mail = IDENTITY.partition(" <")
    inherited = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    for role in ("AUTHOR", "COMMITTER"):
        inherited |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": mail.rstrip(">")}
        inherited |= {f"GIT_{role}_DATE": "1760000000 +0000"}
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)
    no_configuration = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    return {**inherited, **no_configuration, "HOME": str(home)}


def git(directory: Path, *arguments: str, stdin: Path | None = None) -> bytes:
    """Run git in a repository. Return stdout; raises RuntimeError with stderr if it fails."""
    with (stdin or Path(os.devnull)).open("rb") as stream:
        completed = subprocess.run(
            ["git", *arguments],
            cwd=directory,
            env=environment(directory),
            stdin=stream,
            capture_output=True,
            check=False,
            timeout=DEADLINE,
        )
    if completed.returncode:
        raise RuntimeError(f"git {arguments[0]} in {directory}: {completed.stderr.decode()}")
    return completed.stdout


def run_timed(
    command: Sequence[str], directory: Path, extra: Mapping[str, str], allowed: int
) -> Run:
    """Run a process to its end. Raises RuntimeError for an exit code above `allowed`.

    The environment has no variables of Git, like that of a process that cron starts.
    """
    variables = {
        key: it for key, it in environment(directory).items() if not key.startswith("GIT_")
    }
    start = time.perf_counter()
    out, err = directory / "stdout", directory / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=directory,
            env={**variables, **extra},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        probe = _Probe(process.pid)
        probe.start()
        try:
            status = process.wait(DEADLINE)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        finally:
            seconds, ended = time.perf_counter() - start, time.time()
            probe.finish()
    messages = err.read_text(errors="replace")
    if not 0 <= status <= allowed:
        raise RuntimeError(f"{' '.join(command)} ended with {status}:\n{messages[-2000:]}")
    exit_seconds = max(0.0, ended - err.stat().st_mtime)
    return Run(seconds, probe.peak, exit_seconds, out.read_text(errors="replace"), messages)


class _Probe(threading.Thread):
    """Thread that measures the peak resident memory of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._pid = pid
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_PROBE_INTERVAL):
            self.peak = max(self.peak, _resident_memory(self._pid))

    def finish(self) -> None:
        self._ended.set()
        self.join()


def _resident_memory(pid: int) -> int:
    process = Path("/proc") / str(pid)
    try:
        flags = int((process / "stat").read_text().rpartition(")")[2].split()[6])
        if flags & _FORKED:
            return 0
        own = int((process / "statm").read_bytes().split()[1]) * _PAGE
        tasks = list((process / "task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except (OSError, IndexError):
        return 0  # the process has ended, or there is no /proc
    return own + sum(_resident_memory(int(child)) for child in children)
