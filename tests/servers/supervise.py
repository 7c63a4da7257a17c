"""Run a server until this program's input ends: `python supervise.py COMMAND ARGUMENT...`.

A test that is killed runs no cleanup, but its end of the pipe is closed by the system. The server
and the processes that it started are then killed as one process group, also when this program is
terminated itself. Where it is killed, the system ends the server (on Linux).
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading

PR_SET_PDEATHSIG = 1  # of Linux: a signal for the child when its parent ends


def main() -> int:
    # A group of its own: Ctrl-C at the terminal is for the tests, which end the server themselves.
    server = subprocess.Popen(
        sys.argv[1:],
        stdin=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
    )
    # In a thread: what a handler would wait for is waited for below.
    stop = threading.Thread(target=_stop, args=(server,), daemon=True)
    signal.signal(signal.SIGTERM, lambda *_: stop.start())
    threading.Thread(target=_stop_at_end_of_input, args=(server,), daemon=True).start()
    return server.wait()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _stop_at_end_of_input(server: subprocess.Popen[bytes]) -> None:
    sys.stdin.read()
    _stop(server)


def _stop(server: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(server.pid, signal.SIGTERM)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(main())
