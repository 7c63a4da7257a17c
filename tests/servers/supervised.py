"""Server processes that end with the test run, also with one that is killed."""

import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, suppress
from pathlib import Path
from random import SystemRandom

START = 300  # seconds, on a busy machine
_PORTS = (20_000, 32_768)  # Linux gives clients those above, other systems those from 49,152
SUPERVISOR = Path(__file__).with_name("supervise.py")
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def choose_ports(count: int) -> list[int]:
    """Return different ports of loopback that nobody listens on.

    They are below those that the system gives to clients, one of which could else take a port
    before the server does.
    """
    ports: list[int] = []
    numbers = SystemRandom()  # tests seed the other one alike in all processes
    with ExitStack() as stack:
        while len(ports) < count:
            port = numbers.randrange(*_PORTS)
            with suppress(OSError):
                stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
                ports.append(port)
    return ports


def start_supervised(
    command: list[str], environment: dict[str, str], log: Path
) -> subprocess.Popen[bytes]:
    """Start a server under a supervisor, whose input ends when this process does."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, str(SUPERVISOR), *command],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
        )


def stop_supervised(supervisor: subprocess.Popen[bytes]) -> None:
    """Stop a server and wait for its end."""
    assert supervisor.stdin is not None
    supervisor.stdin.close()
    supervisor.wait(START)


def await_answer(
    request: str | urllib.request.Request,
    supervisor: subprocess.Popen[bytes],
    log: Path,
    opener: urllib.request.OpenerDirector = OPENER,
) -> None:
    """Wait until a server answers a request with success. Fails with the server's log."""
    end = time.monotonic() + START
    while time.monotonic() < end:
        assert supervisor.poll() is None, log.read_text()
        try:
            with opener.open(request, timeout=5):
                return
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            pass  # nobody listens yet
        time.sleep(0.1)
    raise AssertionError(f"no answer in {START} s: {log.read_text()}")


def list_children(pid: int) -> list[str]:
    """Return the process ids of a process's children."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def await_end(pids: list[str]) -> None:
    """Wait until none of the processes is there."""
    end = time.monotonic() + START
    while [it for it in pids if is_running(it)]:
        assert time.monotonic() < end, "the server is still there"
        time.sleep(0.1)


def is_running(pid: str) -> bool:
    """Return whether a process is there and no zombie, which nobody waits for in a container."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
