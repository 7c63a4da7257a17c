"""Worker process from its parent's side: start, request and response, end."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from fanout.errors import Unavailable
from fanout.sandbox.worker_main import OUT_OF_MEMORY
from fanout.sandbox.worker_protocol import (
    MAX_RESPONSE,
    OversizeError,
    WorkerLimits,
    encode_frame,
    exchange_frames,
)

START_TIMEOUT = 60.0  # seconds until a worker must have reported that it is ready
EXIT_TIMEOUT = 1.0  # seconds that a worker has to exit by itself
WORKER_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": os.defpath}


class WorkerEndedError(Exception):
    """The worker ended and the request has no response.

    The message says what the request did. `is_unexplained`: no limit ended the worker, so
    the request may be tried again.
    """

    def __init__(self, sentence: str, *, is_unexplained: bool = False) -> None:
        super().__init__(sentence)
        self.is_unexplained = is_unexplained


class WorkerProcess:
    """One running worker process. It never outlives `kill`, whatever it is doing."""

    def __init__(self, module: str, limits: WorkerLimits) -> None:
        self._module = module
        self._limits = limits
        self.batches = 0
        # -I: neither the working directory nor PYTHON* variables decide what is imported.
        command = [sys.executable, "-I", "-m", module, json.dumps(asdict(limits))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Nobody would drain the pipe: a worker that fills it would block until its time
            # limit.
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env=WORKER_ENVIRONMENT,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin_fd = self._process.stdin.fileno()
        self._stdout_fd = self._process.stdout.fileno()
        # A worker that stops reading would otherwise block the parent in a write, past its
        # own deadline.
        os.set_blocking(self._stdin_fd, False)
        try:
            exchange_frames(self._stdin_fd, self._stdout_fd, b"", START_TIMEOUT)
        except (TimeoutError, EOFError, OversizeError):
            self.kill()
            status = self._process.returncode
            problem = f"the process {self._module} did not start (status {status})"
            raise Unavailable(problem) from None

    @property
    def is_alive(self) -> bool:
        """True while the process is running."""
        return self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def send_request(self, request: str) -> dict[str, Any]:
        """Send a request in JSON and return the response.

        Raises WorkerEndedError if there is none; the process has ended then.
        """
        try:
            data = exchange_frames(
                self._stdin_fd, self._stdout_fd, encode_frame(request), self._limits.wall_seconds
            )
        except TimeoutError:
            self.kill()
            raise WorkerEndedError(f"it took longer than {self._limits.wall_seconds:g} s") from None
        except OversizeError:
            self.kill()
            raise WorkerEndedError(f"its answers are longer than {MAX_RESPONSE} bytes") from None
        except EOFError:
            raise self._explain_end() from None
        # Also for KeyboardInterrupt: a worker with an unread response must never get
        # another request.
        except BaseException:
            self.kill()
            raise
        response: dict[str, Any] = json.loads(data)
        return response

    def _explain_end(self) -> WorkerEndedError:
        with suppress(subprocess.TimeoutExpired):  # it closed the pipe and is exiting
            self._process.wait(EXIT_TIMEOUT)
        self.kill()
        status = self._process.returncode
        if status == -signal.SIGXCPU:
            return WorkerEndedError(f"it took more than {self._limits.cpu} s of processor time")
        # Only the exit status tells which limit ended the worker: it has no memory left to
        # explain itself.
        if status in (OUT_OF_MEMORY, -signal.SIGABRT):  # Rust and C abort without memory
            return WorkerEndedError(f"it needed more than {self._limits.memory} MiB of memory")
        return WorkerEndedError(
            f"its process ended unexpectedly (status {status})", is_unexplained=True
        )

    def stop(self) -> None:
        """Stop an idle worker: it exits when its pipe is closed."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_TIMEOUT)
        self.kill()

    def kill(self) -> None:
        """Kill the process if it is running, reap it, close the pipes; may be called again."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
