"""One run of a foreign program: what it is given, what it may take, and its certain end."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from fanout.values import frozen
from fanout.variants.questions import Broken, Ran

_PIECE = 1 << 16
_LAST_WORDS = 4096  # bytes of stderr that are kept
_AFTER = 2.0  # seconds for what is in the pipes of a program that has ended


@frozen
class Command:
    """What is started: its arguments, directory and whole environment."""

    arguments: Sequence[str]
    directory: Path
    environment: Mapping[str, str]
    seconds: float
    most: int  # bytes of its answer


def run(command: Command, stdin: bytes) -> Ran | Broken:
    """Run it to its end, or end it with all that it has started where it takes too much."""
    try:
        process = subprocess.Popen(
            command.arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            cwd=command.directory,
            env=dict(command.environment),
            start_new_session=True,  # a group of its own, so that all of it can be ended
        )
    except OSError as error:
        return Broken(f"it cannot be started: {error.strerror}")
    try:
        return _Talk(process, command, memoryview(stdin)).finished()
    finally:
        _end(process)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Kill the whole group, then reap: until then nobody else can have its number."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


@dataclass(slots=True)
class _Talk:
    """What goes to a program and comes from it, at the same time."""

    process: "subprocess.Popen[bytes]"
    command: Command
    unsent: memoryview
    answer: bytearray = field(default_factory=bytearray)
    words: bytearray = field(default_factory=bytearray)
    gone: bool = False

    def finished(self) -> Ran | Broken:
        deadline = time.monotonic() + self.command.seconds
        end = os.pidfd_open(self.process.pid)
        try:
            with selectors.DefaultSelector() as watched:
                self._watch(watched, end)
                while len(watched.get_map()) > (0 if self.gone else 1):
                    left = deadline - time.monotonic()
                    if left <= 0 and self.gone:
                        break  # somebody else holds its pipes
                    if left <= 0:
                        return Broken(f"it took longer than {self.command.seconds:g} s")
                    for key, _ in watched.select(left):
                        if key.fd == end:
                            self._ended(watched, end)
                            deadline = min(deadline, time.monotonic() + _AFTER)
                        elif key.fd in watched.get_map():  # its end, told at once, closes pipes
                            self._move(watched, key.fileobj)  # type: ignore[arg-type]
                    if len(self.answer) > self.command.most:
                        return Broken(f"its output is longer than {self.command.most:,} bytes")
                if not self.gone and not self._wait(end, deadline):
                    return Broken(f"it took longer than {self.command.seconds:g} s")
        finally:
            os.close(end)
        return Ran(self._status(), bytes(self.answer), self.words.decode(errors="replace"))

    def _watch(self, watched: selectors.BaseSelector, end: int) -> None:
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        watched.register(end, selectors.EVENT_READ)
        os.set_blocking(process.stdin.fileno(), False)
        watched.register(process.stdin, selectors.EVENT_WRITE)
        for pipe in (process.stdout, process.stderr):
            watched.register(pipe, selectors.EVENT_READ)

    def _move(self, watched: selectors.BaseSelector, pipe: IO[bytes]) -> None:
        if pipe is self.process.stdin:
            with suppress(BlockingIOError):
                try:
                    self.unsent = self.unsent[os.write(pipe.fileno(), self.unsent[:_PIECE]) :]
                except BrokenPipeError:  # it does not want to know the rest
                    self.unsent = self.unsent[:0]
            if self.unsent:
                return
        elif piece := os.read(pipe.fileno(), _PIECE):
            if pipe is self.process.stdout:
                self.answer += piece
            else:
                self.words = (self.words + piece)[-_LAST_WORDS:]
            return
        watched.unregister(pipe)
        pipe.close()

    def _ended(self, watched: selectors.BaseSelector, end: int) -> None:
        """What it has left behind ends with it; it is not reaped yet, so the number is its own."""
        self.gone = True
        watched.unregister(end)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            watched.unregister(self.process.stdin)
            self.process.stdin.close()

    def _wait(self, end: int, deadline: float) -> bool:
        """Has it ended by itself? It has closed its pipes."""
        with selectors.DefaultSelector() as watched:
            watched.register(end, selectors.EVENT_READ)
            return bool(watched.select(max(0.0, deadline - time.monotonic())))

    def _status(self) -> int:
        found = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        assert found is not None, "it has ended"
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
