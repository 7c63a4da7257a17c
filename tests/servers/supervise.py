"""Run a server until this program's input ends: `python supervise.py COMMAND ARGUMENT...`.

A test that is killed runs no cleanup, but its end of the pipe is closed by the system. The server
and the processes that it started are then killed as one process group.
"""

import contextlib
import os
import signal
import subprocess
import sys
import threading


def main() -> int:
    # A group of its own: Ctrl-C at the terminal is for the tests, which end the server themselves.
    server = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, start_new_session=True)
    threading.Thread(target=_stop_at_end_of_input, args=(server,), daemon=True).start()
    return server.wait()


def _stop_at_end_of_input(server: subprocess.Popen[bytes]) -> None:
    sys.stdin.read()
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
