"""The parent's hold on one child process: start it, ask it, end it."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from fanout.errors import Unavailable
from fanout.sandbox.limits import Limits
from fanout.sandbox.wire import LONGEST_ANSWER, OversizeError, exchange, frame
from fanout.sandbox.worker import OUT_OF_MEMORY

START = 60.0  # seconds until a child must have said that it is ready
GOODBYE = 1.0  # seconds a child gets to leave by itself
ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": os.defpath}


class EndedError(Exception):
    """The child is gone and the question has no answer; says what the question did.

    `unexplained`: no limit of ours ended it, so another try is fair.
    """

    def __init__(self, sentence: str, *, unexplained: bool = False) -> None:
        super().__init__(sentence)
        self.unexplained = unexplained


class Child:
    """One running process. It never outlives `end`, whatever it is doing."""

    def __init__(self, module: str, limits: Limits) -> None:
        self._module = module
        self._limits = limits
        self.batches = 0
        # -I: neither the working directory nor PYTHON* variables say what is imported.
        command = [sys.executable, "-I", "-m", module, json.dumps(asdict(limits))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=ENVIRONMENT,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to_child = self._process.stdin.fileno()
        self._from_child = self._process.stdout.fileno()
        os.set_blocking(self._to_child, False)
        try:
            exchange(self._to_child, self._from_child, b"", START)
        except (TimeoutError, EOFError, OversizeError):
            self.end()
            status = self._process.returncode
            problem = f"the process {self._module} did not start (status {status})"
            raise Unavailable(problem) from None

    @property
    def alive(self) -> bool:
        """Whether it is still running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    def ask(self, question: str) -> dict[str, Any]:
        """The answer to a question in JSON. EndedError: there is none and the child is no more."""
        try:
            data = exchange(self._to_child, self._from_child, frame(question), self._limits.wall)
        except TimeoutError:
            self.end()
            raise EndedError(f"it took longer than {self._limits.wall:g} s") from None
        except OversizeError:
            self.end()
            raise EndedError(f"its answers are longer than {LONGEST_ANSWER} bytes") from None
        except EOFError:
            raise self._epitaph() from None
        except BaseException:  # interrupted: its answer would be taken for the next question's
            self.end()
            raise
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _epitaph(self) -> EndedError:
        with suppress(subprocess.TimeoutExpired):  # it closed the pipe, it is on its way out
            self._process.wait(GOODBYE)
        self.end()
        status = self._process.returncode
        if status == -signal.SIGXCPU:
            return EndedError(f"it took more than {self._limits.cpu} s of processor time")
        if status in (OUT_OF_MEMORY, -signal.SIGABRT):  # libraries in Rust and C abort
            return EndedError(f"it needed more than {self._limits.memory} MiB of memory")
        return EndedError(f"its process ended unexpectedly (status {status})", unexplained=True)

    def leave(self) -> None:
        """End an idle child: it goes when its pipe is closed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GOODBYE)
        self.end()

    def end(self) -> None:
        """Kill it if it lives, reap it, close the pipes; may be called again."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
