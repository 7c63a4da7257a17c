"""Commands that run on a terminal of a certain width."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Screen:
    """Exit code of a command, and what it wrote to its terminal."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def run_on_terminal(
    arguments: Sequence[str],
    columns: int = 80,
    environment: Mapping[str, str] | None = None,
    typed: str = "",
) -> Screen:
    """Run `fanout` with a terminal as stdin, stdout and stderr; `typed` is what a person types."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = {"TERM": "xterm-256color", **os.environ, **(environment or {})}
    process = subprocess.Popen(
        [sys.executable, "-m", "fanout", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=variables,
        start_new_session=True,
    )
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
    return Screen(process.wait(), b"".join(chunks).decode().replace("\r\n", "\n"))
