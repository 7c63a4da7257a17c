"""Starts the processes that are measured: with a deadline, a clean environment, a memory probe."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

DEADLINE = 1800.0  # seconds for any one process
_PROBE_EVERY = 0.1  # seconds between two looks at the memory
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NOT_YET_STARTED = 0x40  # PF_FORKNOEXEC: the memory is still its parent's
WHO = "fanout benchmark <benchmark@localhost>"


@dataclass(frozen=True, slots=True)
class Run:
    """Duration of a process, peak memory of it and its descendants, and its output."""

    seconds: float
    peak: int  # bytes; shared pages are counted once for each process
    leaving: float  # seconds from the last line on stderr to the end
    out: str
    err: str


def environment(home: Path) -> dict[str, str]:
    """Return an environment without the user's git configuration, with one identity."""
    name, _, mail = WHO.partition(" <")
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    for role in ("AUTHOR", "COMMITTER"):
        kept |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": mail.rstrip(">")}
        kept |= {f"GIT_{role}_DATE": "1760000000 +0000"}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    nothing = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    return {**kept, **nothing, "HOME": str(home)}


def git(place: Path, *arguments: str, stdin: Path | None = None) -> bytes:
    """Run git in a repository; raises CalledProcessError with its output."""
    with (stdin or Path(os.devnull)).open("rb") as stream:
        done = subprocess.run(
            ["git", *arguments],
            cwd=place,
            env=environment(place),
            stdin=stream,
            capture_output=True,
            check=False,
            timeout=DEADLINE,
        )
    if done.returncode:
        raise RuntimeError(f"git {arguments[0]} in {place}: {done.stderr.decode()}")
    return done.stdout


def timed(command: Sequence[str], place: Path, extra: Mapping[str, str], allowed: int) -> Run:
    """Run a process to its end; raises RuntimeError for an exit code above `allowed`.

    Its environment has no variables of git, like that of a process that cron starts.
    """
    kept = {key: it for key, it in environment(place).items() if not key.startswith("GIT_")}
    begin = time.perf_counter()
    out, err = place / "stdout", place / "stderr"
    with out.open("wb") as stdout, err.open("wb") as stderr:
        process = subprocess.Popen(
            command,
            cwd=place,
            env={**kept, **extra},
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
            seconds, ended = time.perf_counter() - begin, time.time()
            probe.finish()
    words = err.read_text(errors="replace")
    if not 0 <= status <= allowed:
        raise RuntimeError(f"{' '.join(command)} ended with {status}:\n{words[-2000:]}")
    leaving = max(0.0, ended - err.stat().st_mtime)
    return Run(seconds, probe.peak, leaving, out.read_text(errors="replace"), words)


class _Probe(threading.Thread):
    """Adds up the resident memory of a process and all below it, again and again."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._pid = pid
        self._ended = threading.Event()

    def run(self) -> None:
        while not self._ended.wait(_PROBE_EVERY):
            self.peak = max(self.peak, _resident(self._pid))

    def finish(self) -> None:
        self._ended.set()
        self.join()


def _resident(pid: int) -> int:
    process = Path("/proc") / str(pid)
    try:
        flags = int((process / "stat").read_text().rpartition(")")[2].split()[6])
        if flags & _NOT_YET_STARTED:
            return 0
        own = int((process / "statm").read_bytes().split()[1]) * _PAGE
        tasks = list((process / "task").iterdir())
        below = [child for task in tasks for child in (task / "children").read_text().split()]
    except (OSError, IndexError):
        return 0  # it has ended, or there is no /proc
    return own + sum(_resident(int(child)) for child in below)
