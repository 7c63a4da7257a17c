"""Runs command lines of fanout on terminals, each in a forked process: the modules load once.

Reads JSON lines `[terminal, environment, arguments]`. Answers with a line as soon as the terminal
is open, and with the exit code at the end.
"""

import fcntl
import json
import os
import sys
import termios

from fanout.cli import startup  # noqa: F401 - what nearly all verbs load
from fanout.cli.main import run


def become(terminal: int, environment: dict[str, str], arguments: list[str]) -> None:
    """Turn this process into one that a shell on the terminal would have started."""
    os.setsid()
    fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
    for number in (0, 1, 2):
        os.dup2(terminal, number)
    # Those of the driver are no terminals, and so have other buffers.
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["fanout", *arguments]


def main() -> None:
    """Fork a process per line and wait for it."""
    for text in sys.stdin:
        path, environment, arguments = json.loads(text)
        terminal = os.open(path, os.O_RDWR | os.O_NOCTTY)
        print("open", flush=True)
        child = os.fork()
        if child == 0:
            become(terminal, environment, arguments)
            run()
        os.close(terminal)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
