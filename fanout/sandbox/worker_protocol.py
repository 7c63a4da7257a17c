"""Protocol between a parent and its worker: limits, and framed requests and responses.

A frame is JSON in UTF-8 with its length in front. Requests go to stdin, responses to
stdout; the limits are the worker's first argument. A worker sets them for itself before its first
request; only the wall time is the parent's to enforce.

A worker is a new program (fork and exec), so it shares nothing with the parent but two pipes. It
works in a thread: celpy recurses, and a thread has a stack of known size and the same few frames
below every evaluation (a call that crosses the border of a stack chunk each time is slow).
"""

import gc
import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from fanout.sandbox.free_variables import FreeVariables
from fanout.values import Value

MAX_DESCRIPTORS = 16  # descriptors that may be open


class ExceededLimit(StrEnum):
    """Limit at which a worker or a program was ended; a label of a metric."""

    WALL_TIME = "wall_time"
    PROCESSOR_TIME = "processor_time"
    MEMORY = "memory"
    OUTPUT = "output"
    UNKNOWN = "unknown"  # a crash, or a signal from outside


class WorkerLimits(Value):
    """Limits of one expression over a chunk of rows. A text that exceeds one fails for all rows."""

    cpu: int = 2  # seconds of processor time
    memory: int = 256  # MiB of address space on top of an idle worker's
    wall_seconds: float = 10.0  # seconds, enforced by the parent
    processes: int = 2  # workers for one batch


def apply_limits(limits: WorkerLimits) -> None:
    """Limit memory, files, processes and core dumps to what an evaluation needs."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    memory = pages * resource.getpagesize() + (limits.memory << 20)
    for kind, limit in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NOFILE, MAX_DESCRIPTORS),
        # Set after the worker's own thread was started, which counts as a process.
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = _lower_limit(kind, limit)
        resource.setrlimit(kind, (allowed, allowed))


def _lower_limit(kind: int, limit: int) -> int:
    """Return the limit, or the hard limit of this process if that is lower."""
    hard = resource.getrlimit(kind)[1]
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def renew_cpu_limit(seconds: int) -> None:
    """Allow this much processor time from now on. The system counts a process's complete life."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = _lower_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.getrlimit(resource.RLIMIT_CPU)[1]))


# ---- frames -------------------------------------------------------------------------------------

HEADER_SIZE = 4  # bytes of the length, most significant first
CHUNK_SIZE = 1 << 16
MAX_RESPONSE = 32 << 20


class OversizeError(Exception):
    """The response of a worker is longer than MAX_RESPONSE."""


def encode_frame(text: str) -> bytes:
    """Encode a message as a frame."""
    data = text.encode()
    return len(data).to_bytes(HEADER_SIZE, "big") + data


def read_frame(stream: BinaryIO) -> bytes | None:
    """Read the next frame on the worker's side; None if the parent has closed the pipe."""
    header = stream.read(HEADER_SIZE)
    return stream.read(int.from_bytes(header, "big")) if len(header) == HEADER_SIZE else None


def exchange_frames(stdin_fd: int, stdout_fd: int, message: bytes, timeout: float) -> bytes:
    """Write a frame and return the response, on the parent's side.

    Raises TimeoutError after `timeout` seconds, EOFError if the worker has ended, OversizeError.
    """
    deadline = time.monotonic() + timeout
    unsent, response = memoryview(message), bytearray()
    # Writing and reading at once: a worker that has filled its output pipe no longer
    # reads its input.
    poll = select.poll()
    poll.register(stdout_fd, select.POLLIN)
    if unsent:
        poll.register(stdin_fd, select.POLLOUT)
    while True:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError
        for descriptor, _ in poll.poll(remaining * 1000):
            if descriptor == stdin_fd:
                try:
                    unsent = unsent[os.write(stdin_fd, unsent[:CHUNK_SIZE]) :]
                except BlockingIOError:
                    continue
                except BrokenPipeError:
                    raise EOFError from None
                if not unsent:
                    poll.unregister(stdin_fd)
                continue
            if not (chunk := os.read(stdout_fd, CHUNK_SIZE)):
                raise EOFError
            response += chunk
            if len(response) >= HEADER_SIZE:
                length = int.from_bytes(response[:HEADER_SIZE], "big")
                # Checked by the announced length, before the parent has stored the response.
                if length > MAX_RESPONSE:
                    raise OversizeError
                if len(response) >= HEADER_SIZE + length:
                    return bytes(response[HEADER_SIZE:])


# ---- worker -------------------------------------------------------------------------------------

OUT_OF_MEMORY = 86  # exit status
STACK_SIZE = 64 << 20
RECURSION_LIMIT = 5000  # Python frames; enough for the longest expression that is not refused
MAX_ANSWER_LENGTH = 1 << 20  # characters of one answer
MAX_STEPS = 500_000  # of one evaluation, and of a request with several; about half a second
STEPS_PER_SECOND = 2_000_000  # that the processor time of an evaluation counts as
FREE_STEPS = 1000  # of each evaluation, so that a fleet of any size has its values in one pass

AnswerList = list[Any]  # [value], or [reason, problem, remedy] of a refusal


class RefusedError(Exception):
    """A text that is not evaluated, or a value that is not returned.

    `remedy` is "" if correcting the text is the only remedy.
    """

    def __init__(self, reason: str, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.remedy = remedy

    @property
    def as_answer(self) -> "AnswerList":
        """The refusal as the parent reads it: [reason, problem, remedy]."""
        return [self.reason, self.problem, self.remedy]


class TextEngine(Protocol):
    """Evaluator of texts of one language."""

    @property
    def steps(self) -> int:
        """Steps of the last evaluation; 0 if the language counts none."""

    @property
    def time_steps(self) -> int:
        """Steps that the processor time of the last evaluation counts as; 0 if it does not."""

    def find_free_variables(self, text: str) -> FreeVariables:
        """Return the variables and fields that the text reads. Raises RefusedError."""

    def serialize_ast(self, text: str) -> list[Any] | None:
        """Return the AST as plain data, None unless it is simple. Raises RefusedError."""

    def evaluate(self, text: str, row: dict[str, Any]) -> Any:
        """Return the text's value over a row, as plain data. Raises RefusedError."""


def serve_requests(
    build_engine: Callable[[], Any],
    answer_request: Callable[[Any, dict[str, Any]], str] | None = None,
) -> None:
    """Run as a worker: limits in argv[1], requests on stdin, responses on stdout.

    `answer_request` gets the result of `build_engine` and a request; None: the engine is a
    `TextEngine` and requests are those of `answer_texts`.
    """
    # Ctrl-C goes to the whole process group. A worker that died of it would look like
    # one that failed.
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops its workers
    limits = WorkerLimits(**json.loads(sys.argv[1]))
    sys.setrecursionlimit(RECURSION_LIMIT)
    threading.stack_size(STACK_SIZE)
    answer = answer_request or answer_texts

    def work() -> None:
        try:
            engine = build_engine()
            # after celpy's environment, which sets another limit
            sys.setrecursionlimit(RECURSION_LIMIT)
            gc.freeze()  # keeps the grammar out of later garbage collections
            # After the imports and the engine, whose memory is not the expression's: the limit
            # is on top of what an idle worker has.
            apply_limits(limits)
            _send_frame("{}")
            while (request := read_frame(sys.stdin.buffer)) is not None:
                renew_cpu_limit(limits.cpu)
                _send_frame(answer(engine, json.loads(request)))
        except MemoryError:
            # Without cleanup, which would need memory: the exit status is all the parent has to
            # know.
            os._exit(OUT_OF_MEMORY)
        except BaseException:  # noqa: BLE001 - any failure must end the process
            os._exit(1)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join()


def _send_frame(text: str) -> None:
    sys.stdout.buffer.write(encode_frame(text))
    sys.stdout.buffer.flush()


def answer_texts(engine: TextEngine, request: dict[str, Any]) -> str:
    """Answer a request in JSON.

    `{texts}` asks for the free variables and AST of each text, `{text, rows}` for its value
    over each row. The answers end with the row whose steps are more than a request may take.
    """
    if "texts" in request:
        parsed: list[dict[str, Any]] = []
        for text in request["texts"]:
            try:
                names, ast = engine.find_free_variables(text), engine.serialize_ast(text)
                parsed.append({"reads": names, "outline": ast})
            except RefusedError as refusal:
                parsed.append({"broken": refusal.as_answer})
        return json.dumps({"texts": parsed})
    answers: list[str] = []
    steps = excess = 0
    for row in request["rows"]:
        answers.append(_evaluate_row(engine, request["text"], row))
        steps += engine.steps
        # Outside of macros nothing is counted, and one operator may handle a large value.
        excess += max(0, engine.steps - FREE_STEPS, engine.time_steps - FREE_STEPS)
        if steps > MAX_STEPS:
            break
    exceeded = json.dumps(engine.steps > MAX_STEPS)
    return f'{{"answers":[{",".join(answers)}],"steps":{excess},"exceeded":{exceeded}}}'


def _evaluate_row(engine: TextEngine, text: str, row: dict[str, Any]) -> str:
    try:
        encoded = json.dumps([engine.evaluate(text, row)], ensure_ascii=False, allow_nan=False)
        # `json.dumps` passes on halves of surrogate pairs, which cannot be sent as UTF-8.
        encoded.encode()
    except RefusedError as refusal:
        return json.dumps(refusal.as_answer)
    except UnicodeEncodeError:  # a lone surrogate cannot be encoded
        return json.dumps(["ExpressionError", "its value is not valid Unicode text"])
    if len(encoded) > MAX_ANSWER_LENGTH:
        return json.dumps(
            ["LimitExceeded", f"its value is longer than {MAX_ANSWER_LENGTH} characters"]
        )
    return encoded
