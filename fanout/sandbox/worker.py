"""The child's side: confine the process, then answer questions until the parent closes the pipe.

It is started anew (fork and exec), so it shares nothing with the parent but two pipes. It does its
work in a thread: celpy recurses, and a thread has a stack of known size and the same few frames
below every evaluation (a call that crosses the border of a stack chunk each time is slow).
"""

import gc
import json
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from fanout.sandbox.limits import Limits
from fanout.sandbox.projection import Reads
from fanout.sandbox.wire import frame, receive

OUT_OF_MEMORY = 86  # exit status
STACK = 64 << 20
DEEPEST = 5000  # Python frames; enough for the longest expression that is not refused
LONGEST = 1 << 20  # characters of one answer
FILES = 16  # descriptors that may be open

Answer = list[Any]  # [value], or [reason, problem, remedy] when there is none


class RefusedError(Exception):
    """A text that is not evaluated, or a value that is not handed out.

    `remedy` is "" where there is nothing more to say than that the text has to be corrected.
    """

    def __init__(self, reason: str, problem: str, remedy: str = "") -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem
        self.remedy = remedy

    @property
    def answer(self) -> "Answer":
        """As the parent reads it."""
        return [self.reason, self.problem, self.remedy]


class Engine(Protocol):
    """What evaluates texts of one kind."""

    def reads(self, text: str) -> Reads:
        """Which variables and fields the text reads. Raises RefusedError."""

    def outline(self, text: str) -> list[Any] | None:
        """What the parent can compute by itself, as plain data. Raises RefusedError."""

    def evaluate(self, text: str, row: dict[str, Any]) -> Any:
        """Plain data. Raises RefusedError."""


def serve(
    build: Callable[[], Any], reply: Callable[[Any, dict[str, Any]], str] | None = None
) -> None:
    """Be a child: limits in the first argument, questions on stdin, answers on stdout.

    `reply` is given what `build` returns and a question; None: it is an `Engine`, asked as `answer`
    says.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides what a Ctrl-C ends
    limits = Limits(**json.loads(sys.argv[1]))
    sys.setrecursionlimit(DEEPEST)
    threading.stack_size(STACK)
    worker = threading.Thread(target=_work, args=(build, reply or answer, limits), daemon=True)
    worker.start()
    worker.join()


def _work(
    build: Callable[[], Any], reply: Callable[[Any, dict[str, Any]], str], limits: Limits
) -> None:
    try:
        engine = build()
        sys.setrecursionlimit(DEEPEST)  # celpy's environment sets its own
        gc.freeze()  # the grammar is not searched for garbage at every collection
        _confine(limits)
        _send("{}")
        while (question := receive(sys.stdin.buffer)) is not None:
            _renew_cpu(limits.cpu)
            _send(reply(engine, json.loads(question)))
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except BaseException:  # noqa: BLE001 - the thread must not outlive its purpose
        os._exit(1)


def _confine(limits: Limits) -> None:
    """No more memory, files, processes or core dumps than an evaluation needs."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    memory = pages * resource.getpagesize() + (limits.memory << 20)
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_NOFILE, FILES),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        allowed = _at_most(kind, most)
        resource.setrlimit(kind, (allowed, allowed))


def _at_most(kind: int, most: int) -> int:
    """The limit, or the lower one that somebody has set for this process already."""
    hard = resource.getrlimit(kind)[1]
    return most if hard == resource.RLIM_INFINITY else min(most, hard)


def _renew_cpu(seconds: int) -> None:
    """A question may take so much processor time from now on; the limit counts a whole life."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = _at_most(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + seconds + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _send(text: str) -> None:
    sys.stdout.buffer.write(frame(text))
    sys.stdout.buffer.flush()


def answer(engine: Engine, question: dict[str, Any]) -> str:
    """`{texts}` asks what each reads and its outline, `{text, rows}` for its value over each row;
    JSON."""
    if "texts" in question:
        return json.dumps({"texts": [_learnt(engine, text) for text in question["texts"]]})
    return _joined([_answer(engine, question["text"], row) for row in question["rows"]])


def _learnt(engine: Engine, text: str) -> dict[str, Any]:
    try:
        return {"reads": engine.reads(text), "outline": engine.outline(text)}
    except RefusedError as refusal:
        return {"broken": refusal.answer}


def _joined(answers: Sequence[str]) -> str:
    return f'{{"answers":[{",".join(answers)}]}}'


def _answer(engine: Engine, text: str, row: dict[str, Any]) -> str:
    try:
        encoded = json.dumps([engine.evaluate(text, row)], ensure_ascii=False, allow_nan=False)
        encoded.encode()
    except RefusedError as refusal:
        return json.dumps(refusal.answer)
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        return json.dumps(["ExpressionError", "its value is no valid Unicode text"])
    if len(encoded) > LONGEST:
        return json.dumps(["LimitExceeded", f"its value is longer than {LONGEST} characters"])
    return encoded
