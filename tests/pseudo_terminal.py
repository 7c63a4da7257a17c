"""Commands that run on a terminal of a certain width."""

import atexit
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import fanout

DRIVER = Path(__file__).with_name("terminal_driver.py")


@dataclass(frozen=True)
class Screen:
    """Exit code of a command, and what it wrote to its terminal."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


@cache
def start_driver() -> "subprocess.Popen[str]":
    """Start the process that runs the commands of this one; it ends with its input."""
    driver = subprocess.Popen(
        [sys.executable, str(DRIVER)],
        env={**os.environ, "PYTHONPATH": str(Path(fanout.__file__).parent.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    atexit.register(driver.communicate)
    return driver


def run_on_terminal(
    arguments: Sequence[str],
    columns: int = 80,
    environment: Mapping[str, str] | None = None,
    typed: str = "",
) -> Screen:
    """Run `fanout` with a terminal as stdin, stdout and stderr; `typed` is what a person types."""
    driver = start_driver()
    assert driver.stdin is not None
    assert driver.stdout is not None
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {"TERM": "xterm-256color", **os.environ, **(environment or {})}
    request = [os.ttyname(slave), variables, list(arguments)]
    driver.stdin.write(json.dumps(request) + "\n")
    driver.stdin.flush()
    assert driver.stdout.readline() == "open\n"
    os.close(slave)
    if typed:
        os.write(master, typed.encode())
    chunks = []
    # Linux answers EIO when the last process that has the terminal open is gone.
    try:
        while chunk := os.read(master, 65536):
            chunks.append(chunk)
    except OSError:
        pass
    os.close(master)
    return Screen(int(driver.stdout.readline()), b"".join(chunks).decode().replace("\r\n", "\n"))
